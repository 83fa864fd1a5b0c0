//go:build unix

package proxy_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/wire"
)

// upstream is a server that does with each connection what the test says.
func upstream(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	return proxy.Serve(t, "tcp", "127.0.0.1:0", serve)
}

func dialRig(t *testing.T, r *rig) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", r.addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

// badInput is what a client sends and what the proxy is to count for it.
type badInput struct {
	protocol wire.Protocol
	name     string
	bytes    []byte
	count    string // "opaque", "encrypted", a reason for a decode failure, or ""
}

func badInputs(t *testing.T) []badInput {
	noise := make([]byte, 300_000)
	_, _ = rand.NewChaCha8([32]byte{3}).Read(noise)
	hello := clientHello(t)
	return append(append(mongoBadInputs(), postgresBadInputs()...),
		badInput{wire.MongoDB, "random bytes", noise, "opaque"},
		badInput{wire.Postgres, "random bytes", noise, "opaque"},
		badInput{"", "random bytes", noise, ""},
		badInput{wire.MongoDB, "TLS", hello, "encrypted"},
		badInput{wire.Postgres, "TLS", hello, "encrypted"},
		badInput{"", "TLS", hello, "encrypted"},
	)
}

// clientHello is what a real TLS client sends first.
func clientHello(t *testing.T) []byte {
	t.Helper()
	a, b := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = tls.Client(a, &tls.Config{ServerName: "db.example"}).Handshake() // never answered
	}()
	hello := make([]byte, 16<<10)
	n, err := b.Read(hello)
	if err != nil || n < 100 {
		t.Fatalf("client hello: %d bytes, %v", n, err)
	}
	b.Close()
	<-done
	return hello[:n]
}

// Every byte arrives as it was sent, and what could not be read is counted and
// said, with little memory.
func TestBadInput_PassesAndIsCounted(t *testing.T) {
	inputs := badInputs(t)
	peak := heapPeak()
	for _, in := range inputs {
		for _, delay := range []inject.Settings{{}, inject.Symmetric(4*time.Millisecond, time.Millisecond)} {
			t.Run(fmt.Sprintf("%s/%s/%v", in.protocol, in.name, delay.RTT()), func(t *testing.T) {
				testBadInput(t, in, delay)
			})
		}
	}
	if grew := peak(); grew > 64<<20 {
		t.Errorf("the heap grew by %d MB", grew>>20)
	}
}

func testBadInput(t *testing.T, in badInput, delay inject.Settings) {
	// A server that only listens: what is counted comes from the client alone.
	got := make(chan []byte, 1)
	r := newRig(t, proxy.LinkConfig{Protocol: in.protocol, Delay: delay, Upstream: upstream(t, func(c net.Conn) {
		b, _ := io.ReadAll(c)
		got <- b
	})})
	c := dialRig(t, r)
	_, _ = c.Write(in.bytes)
	_ = c.CloseWrite()
	if b := <-got; !bytes.Equal(b, in.bytes) {
		t.Errorf("the server got %d bytes, %d were sent, or others", len(b), len(in.bytes))
	}
	if b, err := io.ReadAll(c); len(b) > 0 || err != nil {
		t.Errorf("the client got %d bytes, %v", len(b), err)
	}
	soon(t, "the connection ends", func() bool { return r.Counters().ConnectionsOpen == 0 })
	checkCounted(t, r, in.count)

	// A server that sends the same back: garbage in both directions.
	e := newRig(t, proxy.LinkConfig{Protocol: in.protocol, Delay: delay, Upstream: upstream(t, func(c net.Conn) {
		_, _ = io.Copy(c, struct{ io.Reader }{c})
	})})
	c = dialRig(t, e)
	go func() { // alongside: the echo must not wait for the end
		_, _ = c.Write(in.bytes)
		_ = c.CloseWrite()
	}()
	if b, err := io.ReadAll(c); !bytes.Equal(b, in.bytes) || err != nil {
		t.Errorf("%d bytes came back of %d, or others; %v", len(b), len(in.bytes), err)
	}
	soon(t, "the connection ends", func() bool { return e.Counters().ConnectionsOpen == 0 })
	if n := e.Counters(); n.BytesLive != 0 {
		t.Errorf("%d bytes left", n.BytesLive)
	}
}

func checkCounted(t *testing.T, r *rig, want string) {
	t.Helper()
	n, log := r.Counters(), r.log.String()
	opaque, encrypted, failures, said := uint64(0), uint64(0), 0, ""
	switch want {
	case "":
	case "opaque":
		opaque, said = 1, "not decoded any further"
	case "encrypted":
		encrypted, said = 1, "encrypted, not decoded: use --tls decline or --tls-cert/--tls-key"
	default:
		failures = 1
	}
	if n.Opaque != opaque || n.Encrypted != encrypted {
		t.Errorf("opaque %d, encrypted %d, want %d and %d", n.Opaque, n.Encrypted, opaque, encrypted)
	}
	if len(n.DecodeFailures) != failures || failures > 0 && n.DecodeFailures[want] == 0 {
		t.Errorf("decode failures %v, want %q only", n.DecodeFailures, want)
	}
	if strings.Count(log, "level=WARN") != min(1, len(said)) || !strings.Contains(log, said) {
		t.Errorf("the log says %q, want one warning with %q", log, said)
	}
}

func mongoMessage(op int32, body []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(16+len(body)))
	b = binary.LittleEndian.AppendUint32(b, 7)
	b = binary.LittleEndian.AppendUint32(b, 0)
	return append(binary.LittleEndian.AppendUint32(b, uint32(op)), body...)
}

func mongoHeader(length uint32) []byte {
	b := binary.LittleEndian.AppendUint32(nil, length)
	return append(append(b, 1, 0, 0, 0, 0, 0, 0, 0, 0xdd, 0x07, 0, 0), "and more"...)
}

func postgresMessage(typ byte, length uint32, body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{typ}, length), body...)
}

// startupMessage is one, after which types and lengths count.
func startupMessage() []byte {
	body := "\x00\x03\x00\x00user\x00a\x00\x00"
	return append(binary.BigEndian.AppendUint32(nil, uint32(4+len(body))), body...)
}

func postgresBadInputs() []badInput {
	after := func(b ...byte) []byte { return append(startupMessage(), b...) }
	var in []badInput
	for name, b := range map[string][]byte{
		"start-up length 7":     {0, 0, 0, 7, 0, 3, 0, 0, 1, 2, 3},
		"start-up length 10001": {0, 0, 0x27, 0x11, 0, 3, 0, 0, 1, 2, 3},
		"start-up version 99":   {0, 0, 0, 9, 0, 99, 0, 0, 0},
		"length 3":              after(postgresMessage('Q', 3, "select 1\x00")...),
		"length 0":              after(postgresMessage('Q', 0, "select 1\x00")...),
		"length 0x40000000":     after(postgresMessage('Q', 0x40000000, "select 1\x00")...),
		"length 0xffffffff":     after(postgresMessage('B', 0xffffffff, "\x00\x00")...),
		"unknown type":          after(postgresMessage(0xfe, 8, "abcd")...),
	} {
		in = append(in, badInput{wire.Postgres, name, b, "opaque"})
	}
	return append(in,
		badInput{wire.Postgres, "start-up cut", startupMessage()[:11], ""},
		badInput{wire.Postgres, "message cut", after(postgresMessage('Q', 500_000_000, "select 1")...), ""},
		badInput{wire.Postgres, "strings without an end", after(postgresMessage('P', 10, "abcdef")...), "body"},
	)
}

func TestBadInput_OneByteAtATime(t *testing.T) {
	insert := mongoMessage(2013, opMsgBody(document("insert", "orders", "$db", "shop")))
	query := append(startupMessage(), postgresMessage('Q', 4+uint32(len("delete from t\x00")), "delete from t\x00")...)
	for p, in := range map[wire.Protocol]struct {
		bytes []byte
		write string
	}{wire.MongoDB: {insert, "insert"}, wire.Postgres: {query, "DELETE"}} {
		t.Run(string(p), func(t *testing.T) {
			got := make(chan []byte, 1)
			r := newRig(t, proxy.LinkConfig{Protocol: p, Delay: inject.Symmetric(2*time.Millisecond, 0), Upstream: upstream(t, func(c net.Conn) {
				b, _ := io.ReadAll(c)
				got <- b
			})})
			c := dialRig(t, r)
			slow := time.NewTicker(3 * time.Millisecond)
			defer slow.Stop()
			for i := range in.bytes {
				_, _ = c.Write(in.bytes[i : i+1])
				<-slow.C
			}
			_ = c.CloseWrite()
			if b := <-got; !bytes.Equal(b, in.bytes) {
				t.Errorf("the server got %d bytes of %d, or others", len(b), len(in.bytes))
			}
			_, _ = io.ReadAll(c)
			if writes := r.writes(t); writes[in.write] != 1 || len(writes) != 1 {
				t.Errorf("writes %v, want one %s, unanswered", writes, in.write)
			}
		})
	}
}

// A peer that never reads holds up the one that sends, and little is kept.
func TestBadInput_NobodyReads(t *testing.T) {
	for _, p := range []wire.Protocol{wire.MongoDB, wire.Postgres, wire.TCP} {
		for _, dir := range []wire.Direction{wire.ToServer, wire.ToClient} {
			t.Run(fmt.Sprintf("%s/%s", p, dir), func(t *testing.T) { testNobodyReads(t, p, dir) })
		}
	}
}

// mostTaken is more than four kernel buffers and a line may hold.
const mostTaken = 48 << 20

// flood sends until nothing more is taken although the line holds a megabyte,
// or far too much was. It returns how much that was.
func flood(c net.Conn, r *rig) (total int) {
	b := bytes.Repeat(mongoMessage(2013, make([]byte, 8<<10)), 8)
	for deadline := time.Now().Add(time.Minute); total < mostTaken && time.Now().Before(deadline); {
		_ = c.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
		n, err := c.Write(b)
		total += n
		b = append(b[n:], b[:n]...) // a cut message goes on where it was cut
		if err != nil && (n == 0 && r.Counters().BytesLive >= 1<<20 || !errors.Is(err, os.ErrDeadlineExceeded)) {
			break
		}
	}
	return total
}

func testNobodyReads(t *testing.T, p wire.Protocol, dir wire.Direction) {
	rigs, sent, release := make(chan *rig, 1), make(chan int, 1), make(chan struct{})
	r := newRig(t, proxy.LinkConfig{Protocol: p, Delay: inject.Symmetric(4*time.Millisecond, 0), Upstream: upstream(t, func(c net.Conn) {
		if dir == wire.ToClient {
			sent <- flood(c, <-rigs)
		}
		<-release
	})})
	rigs <- r
	peak := heapPeak()
	c := dialRig(t, r)
	if dir == wire.ToServer {
		sent <- flood(c, r)
	}
	total := <-sent
	if n := r.Counters().BytesLive; total >= mostTaken || n < 1<<20 || n > 16<<20 {
		t.Errorf("%d MB were taken from the sender and %d bytes are held, want it held up", total>>20, n)
	}
	if grew := peak(); grew > 48<<20 {
		t.Errorf("the heap grew by %d MB", grew>>20)
	}
	c.Close()
	close(release)
	r.cut()
	if n := r.Counters(); n.ConnectionsOpen != 0 || n.BytesLive != 0 {
		t.Errorf("afterwards %d connections, %d bytes", n.ConnectionsOpen, n.BytesLive)
	}
}

// Said once for a link, counted for each connection.
func TestBadInput_TLSIsSaidOnce(t *testing.T) {
	hello := clientHello(t)
	r := newRig(t, proxy.LinkConfig{Upstream: upstream(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })})
	for range 3 {
		c := dialRig(t, r)
		_, _ = c.Write(hello)
		_ = c.CloseWrite()
		_, _ = io.ReadAll(c)
	}
	soon(t, "the connections end", func() bool { return r.Counters().ConnectionsOpen == 0 })
	if n := r.Counters().Encrypted; n != 3 || strings.Count(r.log.String(), "encrypted, not decoded") != 1 {
		t.Errorf("counted %d, want 3; log %s", n, r.log.String())
	}
}
