package proxy

import (
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// A server whose log has another layout than those that are known is said once,
// with what its pages begin with, however many standbys it has; its bytes pass.
func TestProxy_SaysOnceThatALogCannotBeRead(t *testing.T) {
	message := func(kind byte, body ...byte) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(4+len(body))), body...)
	}
	const lsn = 0x1000000
	page := binary.LittleEndian.AppendUint16(nil, 0xD1FE) // XLOG_PAGE_MAGIC
	page = append(page, 0, 0, 1, 0, 0, 0)
	page = append(binary.LittleEndian.AppendUint64(page, lsn), make([]byte, 40)...)
	data := binary.BigEndian.AppendUint64([]byte{'w'}, lsn)
	data = append(append(data, make([]byte, 16)...), page...)
	stream := append(message('W', 0, 0, 0), message('d', data...)...)
	stream = append(stream, message('d', data...)...)

	upstream := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		head := make([]byte, 4)
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		_, _ = io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(head))-4)
		_, _ = c.Write(append(message('R', 0, 0, 0, 0), message('Z', 'I')...))
		if _, err := c.Read(make([]byte, 100)); err == nil { // START_REPLICATION
			_, _ = c.Write(stream)
		}
		_, _ = io.Copy(io.Discard, c)
	})
	tracer := trace.New(100)
	defer tracer.Close()
	var log logBuffer
	_, l := start(t, LinkConfig{Protocol: wire.Postgres, Upstream: upstream}, func(c *Config) { c.Log, c.Tracer = log.logger(), tracer })
	for range 2 {
		c := dialLink(t, l)
		startup := "\x00\x03\x00\x00user\x00r\x00replication\x00true\x00application_name\x00s1\x00\x00"
		_, _ = c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(4+len(startup))), startup...))
		if _, err := io.ReadFull(c, make([]byte, 9+6)); err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write(message('Q', []byte("START_REPLICATION 0/1000000 TIMELINE 1\x00")...))
		if _, err := io.ReadFull(c, make([]byte, len(stream))); err != nil {
			t.Fatal(err)
		}
	}
	soon(t, "the second is counted too", func() bool { return l.proxy.Counters().DecodeFailures["wal_version"] == 2 })
	soon(t, "it's said", func() bool { return log.count("page_magic=D1FE known=\"PostgreSQL 15, 16, 17 and 18\"") > 0 })
	if n := log.count("can't be read"); n != 1 {
		t.Errorf("said %d times", n)
	}
}
