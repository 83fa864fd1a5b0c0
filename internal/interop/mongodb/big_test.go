package mongodb

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/wire"
)

const maxMessage = 48_000_000 // maxMessageSizeBytes, header included

// stretch is a part of a message: some bytes, then filler, which is never in
// memory as a whole.
type stretch struct {
	b      []byte
	filler int
}

// filler is what documents are filled with.
var filler = func() []byte {
	b := make([]byte, 64<<10)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(b)
	return b
}()

func u32(b []byte, n int) []byte { return binary.LittleEndian.AppendUint32(b, uint32(n)) }

// document is {a: binary} of n bytes in all, and what closes it.
func document(n int) []stretch {
	d := u32(append(u32(nil, n), 5, 'a', 0), n-13)
	return []stretch{{append(d, 0), n - 13}, {[]byte{0}, 0}}
}

// insertMessage is an insert of exactly 48,000,000 bytes, the command before its
// three documents; replyMessage is its answer, as big.
func insertMessage(t *testing.T, id int) []stretch {
	t.Helper()
	command, err := bson.Marshal(bson.D{{Key: "insert", Value: "c"},
		{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}}, {Key: "$db", Value: "d"}})
	if err != nil {
		t.Fatal(err)
	}
	head := u32(u32(u32(u32(u32(nil, maxMessage), id), 0), 2013), 0)
	head = append(append(head, 0), command...)
	head = append(head, 1)
	left := maxMessage - len(head)
	head = append(u32(head, left), "documents\x00"...)
	left -= 4 + len("documents\x00")
	m := []stretch{{head, 0}}
	for i := range 3 {
		n := left / (3 - i)
		left -= n
		m = append(m, document(n)...)
	}
	return m
}

func replyMessage(to int) []stretch {
	// {ok: 1.0, a: binary}: 11 bytes for ok.
	n := maxMessage - 21
	head := u32(u32(u32(u32(u32(nil, maxMessage), 1000+to), to), 2013), 0)
	d := u32(append(head, 0), n)
	d = append(d, 1, 'o', 'k', 0, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f)
	d = u32(append(d, 5, 'a', 0), n-25)
	return []stretch{{append(d, 0), n - 25}, {[]byte{0}, 0}}
}

// send writes a message and returns the checksum of its bytes.
func send(w io.Writer, m []stretch) (uint32, error) {
	sum := uint32(0)
	put := func(b []byte) error {
		sum = crc32.Update(sum, crc32.IEEETable, b)
		_, err := w.Write(b)
		return err
	}
	for _, s := range m {
		if err := put(s.b); err != nil {
			return 0, err
		}
		for s.filler > 0 {
			n := min(s.filler, len(filler))
			s.filler -= n
			if err := put(filler[:n]); err != nil {
				return 0, err
			}
		}
	}
	return sum, nil
}

// receive reads one message of the biggest size and returns its checksum.
func receive(r io.Reader, buf []byte) (uint32, error) {
	sum := uint32(0)
	for left := maxMessage; left > 0; {
		n, err := r.Read(buf[:min(left, len(buf))])
		sum = crc32.Update(sum, crc32.IEEETable, buf[:n])
		if left -= n; err != nil {
			return 0, err
		}
	}
	return sum, nil
}

// serveBig answers so many requests and returns their checksums, then those of
// its replies.
func serveBig(l net.Listener, rounds int) (in, out []uint32, err error) {
	c, err := l.Accept()
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	buf := make([]byte, 64<<10)
	for i := range rounds {
		sum, err := receive(c, buf)
		if err != nil {
			return in, out, fmt.Errorf("request %d: %w", i, err)
		}
		in = append(in, sum)
		if sum, err = send(c, replyMessage(i)); err != nil {
			return in, out, fmt.Errorf("reply %d: %w", i, err)
		}
		out = append(out, sum)
	}
	return in, out, nil
}

// The largest message that there is, both ways through a proxy, again and again:
// it arrives whole, and memory doesn't grow with it.
func TestBiggestMessages_FlatMemory(t *testing.T) {
	const rounds = 6
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	l := startLink(t, server.Addr().String())
	var in, out []uint32
	var serverErr error
	done := make(chan struct{})
	go func() {
		defer close(done)
		in, out, serverErr = serveBig(server, rounds)
	}()
	c, err := net.Dial("tcp", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var sent, got []uint32
	var before, after runtime.MemStats
	buf := make([]byte, 64<<10)
	for i := range rounds {
		if i == 1 { // the first round fills the buffers that are used again
			runtime.ReadMemStats(&before)
		}
		s, err := send(c, insertMessage(t, i))
		if err != nil {
			t.Fatal(err)
		}
		g, err := receive(c, buf)
		if err != nil {
			t.Fatal(err)
		}
		sent, got = append(sent, s), append(got, g)
	}
	runtime.ReadMemStats(&after)
	<-done
	c.Close()
	if serverErr != nil {
		t.Fatal(serverErr)
	}
	if fmt.Sprint(sent) != fmt.Sprint(in) || fmt.Sprint(out) != fmt.Sprint(got) {
		t.Errorf("checksums: sent %x, arrived %x; answered %x, arrived %x", sent, in, out, got)
	}
	t.Logf("%d MB passed; %d KiB allocated", (rounds-1)*2*maxMessage>>20, (after.TotalAlloc-before.TotalAlloc)>>10)
	if used := after.TotalAlloc - before.TotalAlloc; used > maxMessage/2 {
		t.Errorf("%d messages of 48 MB took %d MB of memory", 2*(rounds-1), used>>20)
	}
	l.stop(t, plain)
	for i := range l.got.All {
		x := &l.got.All[i]
		if x.Operation != "insert" || x.Batch != 3 || x.Mongo.WriteConcern.W != "majority" || !x.Answered || !x.OK ||
			x.Sides[wire.ToServer].Bytes != maxMessage || x.Sides[wire.ToClient].Bytes != maxMessage {
			t.Errorf("read as %+v", x)
		}
	}
	if len(l.got.All) != rounds {
		t.Errorf("%d exchanges, want %d", len(l.got.All), rounds)
	}
}
