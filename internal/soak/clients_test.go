package soak

import (
	"bufio"
	"context"
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// A client is one session: it works until an operation fails, since its
// connection was dropped, or ctx ends. It returns how many operations
// succeeded, and an error only if one succeeded with a wrong outcome.
type client func(ctx context.Context, addr string, rnd *rand.Rand) (done int, wrong error)

func payload(rnd *rand.Rand, most int) []byte {
	n := rnd.IntN(most)
	if rnd.IntN(20) == 0 {
		n *= 20
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

// frames is a protocol of its own: length, payload, checksum; the server sends
// each back with its bytes turned around.
func frames(ctx context.Context, addr string, rnd *rand.Rand) (done int, wrong error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return 0, nil
	}
	defer context.AfterFunc(ctx, func() { c.Close() })()
	defer c.Close()
	r := bufio.NewReader(c)
	for ; ctx.Err() == nil; done++ {
		b := payload(rnd, 8<<10)
		if _, err := c.Write(frame(b)); err != nil {
			return done, nil
		}
		got, err := readFrame(r)
		if err != nil {
			return done, broken(err)
		}
		for i := range b {
			if got[len(b)-1-i] != b[i] {
				return done, fmt.Errorf("byte %d of %d came back wrong", i, len(b))
			}
		}
	}
	return done, nil
}

func frame(b []byte) []byte {
	f := binary.BigEndian.AppendUint32(nil, uint32(len(b)))
	f = append(f, b...)
	return binary.BigEndian.AppendUint32(f, crc32.ChecksumIEEE(b))
}

type wrongSum struct{ n int }

func (e wrongSum) Error() string { return fmt.Sprintf("wrong checksum of %d bytes", e.n) }

// broken lets a lost connection pass, but not a changed payload.
func broken(err error) error {
	if _, ok := err.(wrongSum); ok {
		return err
	}
	return nil
}

func readFrame(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > 1<<24 {
		return nil, wrongSum{int(n)}
	}
	b := make([]byte, n+4)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	if b = b[:n]; crc32.ChecksumIEEE(b) != binary.BigEndian.Uint32(b[n:n+4]) {
		return nil, wrongSum{int(n)}
	}
	return b, nil
}

// frameServer serves frames on loopback until it is closed. Frames that arrive
// changed are reported.
func frameServer(t *testing.T) (addr string, stop func()) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	serve := func(c net.Conn) {
		defer c.Close()
		for r := bufio.NewReader(c); ; {
			b, err := readFrame(r)
			if broken(err) != nil {
				t.Error("at the server:", err)
			}
			if err != nil {
				return
			}
			for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
				b[i], b[j] = b[j], b[i]
			}
			if _, err := c.Write(frame(b)); err != nil {
				return
			}
		}
	}
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { serve(c) })
		}
	})
	return ln.Addr().String(), func() { ln.Close(); wg.Wait() }
}

// postgresClient writes rows in autocommit, blocks and batches, and reads their
// digests back, which the server has computed.
func postgresClient(url func(addr string) string) client {
	return func(ctx context.Context, addr string, rnd *rand.Rand) (done int, wrong error) {
		c, err := pgx.Connect(ctx, url(addr)+"&connect_timeout=20")
		if err != nil {
			return 0, nil
		}
		defer func() {
			last, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = c.Close(last)
		}()
		for ; ctx.Err() == nil; done++ {
			b := payload(rnd, 4<<10)
			var digest string
			var err error
			switch rnd.IntN(3) {
			case 0:
				err = c.QueryRow(ctx, "insert into soak (b) values ($1) returning md5(b)", b).Scan(&digest)
			case 1:
				err = pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
					return tx.QueryRow(ctx, "insert into soak (b) values ($1) returning md5(b)", b).Scan(&digest)
				})
			case 2:
				var batch pgx.Batch
				for range rnd.IntN(20) {
					batch.Queue("insert into soak (b) values ($1)", b)
				}
				batch.Queue("select md5($1::bytea)", b)
				res := c.SendBatch(ctx, &batch)
				for range batch.Len() - 1 {
					if _, err = res.Exec(); err != nil {
						break
					}
				}
				if err == nil {
					err = res.QueryRow().Scan(&digest)
				}
				_ = res.Close()
			}
			if err != nil {
				return done, nil
			}
			if sum := md5.Sum(b); digest != hex.EncodeToString(sum[:]) {
				return done, fmt.Errorf("the server's digest of %d bytes is %s", len(b), digest)
			}
		}
		return done, nil
	}
}

// mongoClient inserts documents with several write concerns and reads them back.
func mongoClient(compressors ...string) client {
	return func(ctx context.Context, addr string, rnd *rand.Rand) (done int, wrong error) {
		c, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + addr + "/?directConnection=true&serverSelectionTimeoutMS=20000").
			SetCompressors(compressors).SetMaxPoolSize(2))
		if err != nil {
			return 0, nil
		}
		defer func() {
			last, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = c.Disconnect(last)
		}()
		concerns := []*writeconcern.WriteConcern{writeconcern.W1(), writeconcern.Majority(), writeconcern.Journaled()}
		for ; ctx.Err() == nil; done++ {
			coll := c.Database("soak").Collection(fmt.Sprintf("c%d", rnd.IntN(4)),
				options.Collection().SetWriteConcern(concerns[rnd.IntN(len(concerns))]))
			id, b := bson.NewObjectID(), payload(rnd, 4<<10)
			if _, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: id}, {Key: "b", Value: b}}); err != nil {
				return done, nil
			}
			var got struct{ B []byte }
			if err := coll.FindOne(ctx, bson.D{{Key: "_id", Value: id}}).Decode(&got); err != nil {
				return done, nil
			}
			if string(got.B) != string(b) {
				return done, fmt.Errorf("%d bytes came back as %d others", len(b), len(got.B))
			}
			if _, err := coll.DeleteOne(ctx, bson.D{{Key: "_id", Value: id}}); err != nil {
				return done, nil
			}
		}
		return done, nil
	}
}
