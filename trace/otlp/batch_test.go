package otlp

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// wireClient is a client of OTLP that does what the real ones do with a
// request: makes bytes of it.
type wireClient struct{ sent []byte }

func (*wireClient) Start(context.Context) error { return nil }
func (*wireClient) Stop(context.Context) error  { return nil }

func (c *wireClient) UploadTraces(_ context.Context, rs []*tracepb.ResourceSpans) (err error) {
	c.sent, err = proto.Marshal(&collectorpb.ExportTraceServiceRequest{ResourceSpans: rs})
	return err
}

// request is what a receiver reads.
func (c *wireClient) request(t testing.TB) *collectorpb.ExportTraceServiceRequest {
	t.Helper()
	r := &collectorpb.ExportTraceServiceRequest{}
	if err := proto.Unmarshal(c.sent, r); err != nil {
		t.Fatal(err)
	}
	return r
}

// bothWays are the two kinds of batch, each before a client of OTLP.
func bothWays(t testing.TB) (ours, sdk batch, oursSent, sdkSent *wireClient) {
	t.Helper()
	res, err := newResource(t.Context(), "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	oursSent, sdkSent = &wireClient{}, &wireClient{}
	to, err := newToSDK(otlptrace.NewUnstarted(sdkSent), res, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	return toClient(oursSent, res, "1.2.3").newBatch(), to.newBatch(), oursSent, sdkSent
}

// made are the records of one exchange, sampled whatever its parent says.
func made(s *spans, f *trace.Finished) []record {
	s.sampler, s.children = sdktrace.AlwaysSample(), ChildrenAlways
	id, _ := s.identify(f)
	s.make(f, id)
	return s.finished
}

// What we append by hand is, to a receiver, what the SDK makes of the same
// records, to the last field.
func TestBatches_SayTheSame(t *testing.T) {
	ours, sdk, oursSent, sdkSent := bothWays(t)
	s := &spans{limits: newLimits()}
	var want int
	for round := range 2 { // the second uses everything again
		want = 0
		for _, x := range fixtures() {
			for _, r := range made(s, &trace.Finished{Exchange: x.x, Conn: x.conn, Waits: trace.Split(x.x)}) {
				ours.add(&r)
				sdk.add(&r)
				want++
			}
		}
		if ours.len() != want || sdk.len() != want {
			t.Fatalf("%d and %d spans, want %d", ours.len(), sdk.len(), want)
		}
		for _, b := range []batch{ours, sdk} {
			if err := b.export(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.reset()
		}
		got, sdks := oursSent.request(t), sdkSent.request(t)
		if n := len(got.ResourceSpans[0].ScopeSpans[0].Spans); n != want {
			t.Errorf("round %d: %d spans arrive, want %d", round, n, want)
		}
		if !proto.Equal(got, sdks) {
			t.Errorf("round %d: got %s\nthe SDK sends %s", round, protojson.Format(got), protojson.Format(sdks))
		}
	}
}

func FuzzBatches_SayTheSame(f *testing.F) {
	f.Add("insert", "orders", "10.0.0.1:5432", traceparent, true, int64(0), int64(1))
	f.Add("\xff", "\xc0\xaf", "[::1]:99999", "", false, int64(-1), int64(1)<<62)
	f.Fuzz(func(t *testing.T, operation, collection, address, parent string, reused bool, n, stamp int64) {
		ours, sdk, oursSent, sdkSent := bothWays(t)
		fin := one()
		c := *fin.Conn
		c.PeerAddr, c.ClientAddr, c.ServerHost = address, address, collection
		x := *fin.Exchange
		x.Operation, x.Collection, x.Traceparent, x.TraceparentReused = operation, collection, parent, reused
		x.Mongo.N, x.Mongo.NModified, x.Batch = n, stamp, int(n)
		x.OK, x.Answered = !reused, n >= 0
		x.Sides[wire.ToServer].LastOut = wire.Stamp(stamp)
		fin.Exchange, fin.Conn, fin.Waits = &x, &c, trace.Split(&x)
		for _, r := range made(&spans{limits: newLimits()}, fin) {
			ours.add(&r)
			sdk.add(&r)
		}
		for _, b := range []batch{ours, sdk} {
			if err := b.export(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := oursSent.request(t), sdkSent.request(t); !proto.Equal(got, want) {
			t.Errorf("got %s\nthe SDK sends %s", protojson.Format(got), protojson.Format(want))
		}
	})
}

// Only the environment decides what a resource holds.
func TestBatches_SayTheSameOfTheResource(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.pod.name=a,empty=")
	t.Setenv("OTEL_SERVICE_NAME", "orders-wan")
	ours, sdk, oursSent, sdkSent := bothWays(t)
	for _, r := range made(&spans{limits: newLimits()}, one()) {
		ours.add(&r)
		sdk.add(&r)
	}
	for _, b := range []batch{ours, sdk} {
		if err := b.export(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	got, want := oursSent.request(t), sdkSent.request(t)
	if !proto.Equal(got, want) || len(got.ResourceSpans) != 1 {
		t.Errorf("got %s\nthe SDK sends %s", protojson.Format(got), protojson.Format(want))
	}
}

func TestAttributes_OfAllKinds(t *testing.T) {
	list := []attribute.KeyValue{
		attribute.Bool("yes", true), attribute.Bool("no", false), attribute.Int64("n", -1), attribute.Float64("f", 1.5),
		attribute.String("", ""), attribute.StringSlice("list", []string{"a", "b"}),
	}
	client := &wireClient{}
	b := toClient(client, resource.Empty(), "").newBatch()
	b.add(&record{name: "x", attributes: list, start: time.Unix(-1, 0)})
	if err := b.export(t.Context()); err != nil {
		t.Fatal(err)
	}
	span := client.request(t).ResourceSpans[0].ScopeSpans[0].Spans[0]
	got := make([]string, 0, len(list))
	for _, kv := range span.Attributes {
		got = append(got, kv.Key+"="+protojson.MarshalOptions{}.Format(kv.Value))
	}
	want := `[yes={"boolValue":true} no={"boolValue":false} n={"intValue":"-1"} f={"doubleValue":1.5} ={"stringValue":""} list={"stringValue":"[\"a\",\"b\"]"}]`
	if fmt.Sprint(got) != want || span.StartTimeUnixNano != 0 {
		t.Errorf("got %v, start %d\nwant %s", got, span.StartTimeUnixNano, want)
	}
}

// A write's span costs no allocation until its batch goes.
func TestOTLPBatch_AllocatesNothing(t *testing.T) {
	ours, _, _, _ := bothWays(t)
	s := &spans{limits: newLimits()}
	var f *trace.Finished
	for _, x := range fixtures() {
		if x.name == "postgres_undelayed_text" {
			f = &trace.Finished{Exchange: x.x, Conn: x.conn, Waits: trace.Split(x.x)}
		}
	}
	add := func() {
		records := made(s, f)
		for i := range records {
			ours.add(&records[i])
		}
	}
	for range 100 {
		add()
	}
	ours.reset()
	if n := testing.AllocsPerRun(90, add); n != 0 {
		t.Errorf("%v allocations a write", n)
	}
}

// BenchmarkBatch is the cost of a span from its record to the request's bytes.
func BenchmarkBatch(b *testing.B) {
	ours, sdk, _, _ := bothWays(b)
	s := &spans{limits: newLimits()}
	r := made(s, one())[0]
	for name, batch := range map[string]batch{"bytes": ours, "sdk": sdk} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				batch.add(&r)
				if batch.len() == sdktrace.DefaultMaxExportBatchSize {
					if err := batch.export(b.Context()); err != nil {
						b.Fatal(err)
					}
					batch.reset()
				}
			}
		})
	}
}
