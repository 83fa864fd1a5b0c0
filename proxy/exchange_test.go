//go:build unix

package proxy

import (
	"fmt"
	"io"
	"net"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/internal/testenv"
	"github.com/wirewait/wirewait/wire"
)

// shuttle is a request and its reply, over and over, after a greeting that is
// answered as well; see shuttles.
type shuttle struct {
	protocol                          wire.Protocol
	hello, welcome, request, response []byte
}

// shuttles are what an application does most, by name.
func shuttles() map[string]shuttle {
	ready := pgMessage('Z', "I")
	hello, welcome := pgStartup("u"), join(pgMessage('R', "\x00\x00\x00\x00"), ready)
	row := pgMessage('D', "\x00\x01\x00\x00\x00\x011")
	return map[string]shuttle{
		"tcp": {wire.TCP, nil, nil, make([]byte, 128), make([]byte, 128)},
		"postgres query": {wire.Postgres, hello, welcome,
			pgMessage('Q', "INSERT INTO orders (id, who) VALUES (7, 'somebody') RETURNING id\x00"),
			join(pgMessage('T', "\x00\x01id\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x17\x00\x04\xff\xff\xff\xff\x00\x00"),
				row, pgMessage('C', "INSERT 0 1\x00"), ready)},
		"postgres prepared": {wire.Postgres,
			join(hello, pgMessage('P', "s\x00UPDATE orders SET who = $1\x00\x00\x00"), pgMessage('S', "")),
			join(welcome, pgMessage('1', ""), ready),
			join(pgMessage('B', "\x00s\x00\x00\x00\x00\x01\x00\x00\x00\x011\x00\x00"), pgMessage('E', "\x00\x00\x00\x00\x00"), pgMessage('S', "")),
			join(pgMessage('2', ""), pgMessage('C', "UPDATE 3\x00"), ready)},
		"mongodb": {wire.MongoDB, nil, nil,
			opMsg(7, 0, 0, bson.D{{Key: "insert", Value: "orders"}, {Key: "$db", Value: "shop"},
				{Key: "documents", Value: bson.A{bson.D{{Key: "who", Value: "somebody"}}}}}),
			opMsg(8, 7, 0, bson.D{{Key: "n", Value: 1}, {Key: "ok", Value: 1.0}})},
	}
}

// answer is the server's part.
func (s shuttle) answer(c net.Conn) {
	b := make([]byte, max(len(s.hello), len(s.request)))
	if _, err := io.ReadFull(c, b[:len(s.hello)]); err != nil {
		return
	}
	_, _ = c.Write(s.welcome)
	for {
		if _, err := io.ReadFull(c, b[:len(s.request)]); err != nil {
			return
		}
		if _, err := c.Write(s.response); err != nil {
			return
		}
	}
}

// begin is the client's greeting; what it returns is one exchange.
func (s shuttle) begin(tb testing.TB, c net.Conn) func() {
	tb.Helper()
	b := make([]byte, max(len(s.welcome), len(s.response)))
	_, _ = c.Write(s.hello)
	if _, err := io.ReadFull(c, b[:len(s.welcome)]); err != nil {
		tb.Fatal(err)
	}
	return func() {
		_, err := c.Write(s.request)
		if err == nil {
			_, err = io.ReadFull(c, b[:len(s.response)])
		}
		if err != nil {
			tb.Error(err)
		}
	}
}

// In the steady state an exchange that nobody traces costs no allocation, from
// the read of its first byte to the write of its last.
func TestDrive_ExchangesAllocateNothing(t *testing.T) { eachDriver(t, exchangesAllocateNothing) }

func exchangesAllocateNothing(t *testing.T, on driverName) {
	for name, s := range shuttles() {
		t.Run(name, func(t *testing.T) {
			p, l := on.start(t, LinkConfig{Protocol: s.protocol, Upstream: server(t, "tcp", "127.0.0.1:0", s.answer)})
			exchange := s.begin(t, dialLink(t, l))
			for range 100 {
				exchange()
			}
			was := p.Counters()
			const runs = 500
			if n := testing.AllocsPerRun(runs, exchange); n >= 1 && !testenv.Race {
				t.Errorf("%v allocations an exchange", n)
			}
			if s.protocol != wire.TCP {
				soon(t, "each was read", func() bool { return p.Counters().Exchanges >= was.Exchanges+runs })
			}
		})
	}
}

// BenchmarkExchange is one exchange after another on one connection, client and
// server in the same process.
func BenchmarkExchange(b *testing.B) {
	for _, on := range []driverName{DriverNet, DriverEpoll} {
		for name, s := range shuttles() {
			if CheckDriver(string(on)) != nil {
				continue
			}
			b.Run(fmt.Sprintf("%s/%s", on, name), func(b *testing.B) {
				_, l := on.start(b, LinkConfig{Protocol: s.protocol, Upstream: server(b, "tcp", "127.0.0.1:0", s.answer)})
				exchange := s.begin(b, dialLink(b, l))
				b.ReportAllocs()
				for b.Loop() {
					exchange()
				}
			})
		}
	}
}
