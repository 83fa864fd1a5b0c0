package otlp

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/wirewait/wirewait/internal/otlprecv"
	"github.com/wirewait/wirewait/trace"
)

// Names come from the wire, where they may hold anything. Protocol buffers take
// only UTF-8, and a batch with one bad string is lost as a whole.
func TestNamesThatAreNotUTF8(t *testing.T) {
	dump := filepath.Join(t.TempDir(), "spans.json")
	receiver, err := otlprecv.Start(dump)
	if err != nil {
		t.Fatal(err)
	}
	defer receiver.Stop()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+receiver.GRPC)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	e := setup(t, Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	for i := range fixtures() {
		f := fixtures()[i]
		const bad = "caf\xe9"
		x := f.x
		x.Operation, x.Database, x.Collection, x.Statement = bad, bad, bad, bad
		x.WriteBasis, x.ErrorCode = bad, bad
		x.Mongo.WriteConcern.W, x.Mongo.LSID = bad, bad
		x.Postgres.Summary, x.Postgres.SynchronousCommit, x.Postgres.SyncSource = bad, bad, bad
		if x.Peer != nil {
			peer := *x.Peer
			peer.Application = bad
			x.Peer = &peer
		}
		c := *f.conn
		c.Link, c.From, c.To, c.ClientAddr, c.ServerHost, c.PeerAddr = bad, bad, bad, bad, bad, bad
		e.Consume(&trace.Finished{Exchange: x, Conn: &c, Waits: trace.Split(x)})
	}
	if err := e.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	counts, err := receiver.Counts()
	if err != nil || e.Dropped() != 0 || counts.Spans == 0 {
		t.Errorf("%d spans dropped, the receiver got %+v (%v)", e.Dropped(), counts, err)
	}
}
