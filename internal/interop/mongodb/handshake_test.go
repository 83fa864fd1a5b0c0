package mongodb

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/wirewait/wirewait/internal/lab"
)

// maxBeforeLogin is the largest message that a server with access control takes
// of a client which has not logged in yet (preAuthMaximumMessageSizeBytes).
const maxBeforeLogin = 16_384

// tap is a relay that keeps what passes, each way of each connection.
type tap struct {
	listener net.Listener
	relays   sync.WaitGroup

	mu    sync.Mutex
	conns []*[2]bytes.Buffer // to the server, to the client
}

func startTap(t *testing.T, upstream string) *tap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tap{listener: l}
	p.relays.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.relays.Go(func() { p.relay(client, upstream) })
		}
	})
	t.Cleanup(p.stop)
	return p
}

func (p *tap) addr() string { return p.listener.Addr().String() }

func (p *tap) relay(client net.Conn, upstream string) {
	defer client.Close()
	server, err := net.Dial("tcp", upstream)
	if err != nil {
		return
	}
	defer server.Close()
	kept := &[2]bytes.Buffer{}
	p.mu.Lock()
	p.conns = append(p.conns, kept)
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { copyAll(server, client, &kept[0]) })
	both.Go(func() { copyAll(client, server, &kept[1]) })
	both.Wait()
}

// copyAll copies to the end of one way, and closes that.
func copyAll(to, from net.Conn, kept *bytes.Buffer) {
	_, _ = io.Copy(to, io.TeeReader(from, kept))
	_ = to.(*net.TCPConn).CloseWrite()
}

// stop waits until all connections have ended by themselves.
func (p *tap) stop() {
	p.listener.Close()
	p.relays.Wait()
}

// sent are the streams of all connections that carried something, each whole,
// by what the clients sent.
func (p *tap) sent() []*[2]bytes.Buffer {
	conns := slices.DeleteFunc(slices.Clone(p.conns), func(c *[2]bytes.Buffer) bool { return c[0].Len() == 0 })
	slices.SortFunc(conns, func(a, b *[2]bytes.Buffer) int { return bytes.Compare(a[0].Bytes(), b[0].Bytes()) })
	return conns
}

// Nothing of a handshake is changed, above all not its length: what a driver
// sends is what a server gets, byte for byte, and back. The driver says as much
// as one may: a long name, three compressors, a login.
func TestHandshake_SameBytes(t *testing.T) {
	m, err := lab.StartMongo(lab.MongoOptions{Compressors: []string{"snappy", "zlib", "zstd"}, SetName: "rs0", StreamHello: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Stop)
	behind := startTap(t, m.Addr())
	l := startLink(t, behind.addr())
	before := startTap(t, l.Addr())
	for _, o := range []*options.ClientOptions{
		options.Client(),
		options.Client().SetServerAPIOptions(options.ServerAPI(options.ServerAPIVersion1)), // OP_MSG from the start
		options.Client().SetAuth(options.Credential{Username: "ann", Password: "secret", AuthMechanism: "SCRAM-SHA-256"}),
		options.Client().SetAuth(options.Credential{Username: "ann", Password: "secret"}),
	} {
		login := o.Auth != nil
		o.ApplyURI(m.URI(before.addr()) + "&heartbeatFrequencyMS=500&compressors=zstd,zlib,snappy").SetAppName(strings.Repeat("n", 128))
		client, err := mongo.Connect(o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		_, err = client.Database("shop").Collection("orders").InsertOne(ctx, bson.D{{Key: "a", Value: 1}})
		cancel()
		if login == (err == nil) { // the peer has no users; how far the client got is enough
			t.Errorf("login %v: %v", login, err)
		}
		if err := client.Disconnect(context.Background()); err != nil {
			t.Error(err)
		}
	}
	before.stop()
	l.stop(t, plain)
	behind.stop()
	checkSame(t, before.sent(), behind.sent())
}

func checkSame(t *testing.T, before, behind []*[2]bytes.Buffer) {
	t.Helper()
	if len(before) < 8 || len(before) != len(behind) {
		t.Fatalf("%d connections to the proxy, %d from it; want as many, and at least two of each client", len(before), len(behind))
	}
	handshakes, logins := 0, 0
	for i := range before {
		sent, got := before[i][0].Bytes(), behind[i][0].Bytes()
		if !bytes.Equal(sent, got) {
			t.Errorf("connection %d: %d bytes were sent, %d arrived, or others", i, len(sent), len(got))
		}
		// A client that leaves doesn't read all that was on its way.
		if said, got := behind[i][1].Bytes(), before[i][1].Bytes(); !bytes.HasPrefix(said, got) || len(got) < 100 {
			t.Errorf("connection %d: %d bytes were answered, %d arrived, or others", i, len(said), len(got))
		}
		if n := int(binary.LittleEndian.Uint32(got)); n > maxBeforeLogin {
			t.Errorf("connection %d begins with a message of %d bytes", i, n)
		}
		handshakes += bytes.Count(got, []byte("helloOk")) + bytes.Count(got, []byte("apiVersion"))
		logins += bytes.Count(got, []byte("speculativeAuthenticate")) + bytes.Count(got, []byte("saslStart"))
	}
	if handshakes < 8 || logins < 2 {
		t.Errorf("%d handshakes and %d logins were in it", handshakes, logins)
	}
}

// serveBeforeLogin answers messages as a server does before the login: one that
// is too large ends the connection without a word. It returns the sizes.
func serveBeforeLogin(l net.Listener, sizes chan<- int) {
	for {
		c, err := l.Accept()
		if err != nil {
			close(sizes)
			return
		}
		for head := make([]byte, 16); ; {
			if _, err := io.ReadFull(c, head); err != nil {
				break
			}
			n := int(binary.LittleEndian.Uint32(head))
			sizes <- n
			if n > maxBeforeLogin {
				break
			}
			if _, err := io.CopyN(io.Discard, c, int64(n-len(head))); err != nil {
				break
			}
			reply := append([]byte(nil), head...)
			binary.LittleEndian.PutUint32(reply, uint32(len(okReply)+16))
			copy(reply[8:], head[4:8])
			binary.LittleEndian.PutUint32(reply[12:], 2013)
			if _, err := c.Write(append(reply, okReply...)); err != nil {
				break
			}
		}
		c.Close()
	}
}

// okReply is the body of an OP_MSG with {ok: 1.0}.
var okReply = append([]byte{0, 0, 0, 0, 0, 17, 0, 0, 0, 1, 'o', 'k', 0}, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0)

// commandOf is an OP_MSG of exactly n bytes.
func commandOf(t *testing.T, name string, n int) []byte {
	t.Helper()
	for pad := n; ; {
		d, err := bson.Marshal(bson.D{{Key: name, Value: 1}, {Key: "$db", Value: "admin"}, {Key: "pad", Value: make([]byte, pad)}})
		if err != nil {
			t.Fatal(err)
		}
		if over := 16 + 5 + len(d) - n; over != 0 {
			pad -= over
			continue
		}
		head := u32(u32(u32(u32(u32(nil, n), 3), 0), 2013), 0)
		return append(append(head, 0), d...)
	}
}

// What is just within the limit before a login stays so, and what is beyond
// fails as it does directly.
func TestHandshake_LargestBeforeLogin(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	sizes := make(chan int, 16)
	go serveBeforeLogin(listener, sizes)
	l := startLink(t, listener.Addr().String())
	c, err := net.Dial("tcp", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, name := range []string{"hello", "saslStart", "saslContinue"} {
		if _, err := c.Write(commandOf(t, name, maxBeforeLogin)); err != nil {
			t.Fatal(err)
		}
		if reply, err := io.ReadAll(io.LimitReader(c, int64(16+len(okReply)))); len(reply) != 16+len(okReply) {
			t.Fatalf("%s: %d bytes of a reply, %v", name, len(reply), err)
		}
		if n := <-sizes; n != maxBeforeLogin {
			t.Errorf("%s of %d bytes arrived as %d", name, maxBeforeLogin, n)
		}
	}
	if _, err := c.Write(commandOf(t, "saslContinue", maxBeforeLogin+1)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Errorf("%d bytes, %v; want the connection closed", n, err)
	}
	if n := <-sizes; n != maxBeforeLogin+1 {
		t.Errorf("%d bytes arrived as %d", maxBeforeLogin+1, n)
	}
	c.Close()
	l.stop(t, plain)
	listener.Close()
	for range sizes {
	}
}

// Members of a replica set put a checksum on what they say to each other
// (mongo/src/mongo/client/async_client.cpp). It holds behind the proxy, there
// and back, and a wrong one is the server's to refuse.
func TestHandshake_ChecksumsStayRight(t *testing.T) {
	m, err := lab.StartMongo(lab.MongoOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Stop)
	l := startLink(t, m.Addr())
	b := commandOf(t, "hello", 2000)
	b = append(b, 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	b[16] = 1
	table := crc32.MakeTable(crc32.Castagnoli)
	binary.LittleEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[:len(b)-4], table))
	c, err := net.Dial("tcp", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 4)
	if _, err := io.ReadFull(c, head); err != nil {
		t.Fatalf("no reply: %v", err)
	}
	reply := append(head, make([]byte, binary.LittleEndian.Uint32(head)-4)...)
	if _, err := io.ReadFull(c, reply[4:]); err != nil {
		t.Fatal(err)
	}
	end := len(reply) - 4
	if got, want := binary.LittleEndian.Uint32(reply[end:]), crc32.Checksum(reply[:end], table); got != want || reply[16] != 1 {
		t.Errorf("the reply's checksum is %#x, want %#x; flags %x", got, want, reply[16:20])
	}
	b[len(b)-1]++
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(head); n > 0 || err == nil {
		t.Errorf("a wrong checksum was answered with %d bytes, %v", n, err)
	}
	c.Close()
	l.stop(t, plain)
}
