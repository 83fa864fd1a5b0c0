package otlp

import (
	"context"
	"syscall"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/wirewait/wirewait/internal/otlprecv"
	"github.com/wirewait/wirewait/trace"
)

// What one write costs the tracer's worker. Goals: under 3 µs for metrics
// alone, under 8 µs with its span.
func BenchmarkConsume(b *testing.B) {
	for _, bb := range []struct {
		name     string
		exporter sdktrace.SpanExporter
		children Children
		sampler  string
	}{
		{"metrics", nil, "", ""},
		{"unsampled", discard{}, ChildrenNever, "always_off"},
		{"span", discard{}, ChildrenNever, ""},
		{"span-children", discard{}, ChildrenAlways, ""},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.Setenv("OTEL_TRACES_SAMPLER", bb.sampler)
			e, err := Setup(context.Background(), Options{SpanExporter: bb.exporter, Children: bb.children})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Shutdown(context.Background())
			c := fixtures()[0]
			f := &trace.Finished{Exchange: c.x, Conn: c.conn, Waits: trace.Split(c.x)}
			f.Traceparent = ""
			b.ReportAllocs()
			for b.Loop() {
				e.Consume(f)
			}
			b.ReportMetric(float64(e.Dropped())/float64(b.N), "dropped/op")
		})
	}
}

// The whole pipeline at the pace of 20,000 writes a second, into a receiver in
// another process: what is dropped, and what a write costs this process in all.
func BenchmarkExport(b *testing.B) {
	for _, children := range []Children{ChildrenNever, ChildrenAlways} {
		b.Run("children-"+string(children), func(b *testing.B) {
			receiver, err := otlprecv.Start("")
			if err != nil {
				b.Fatal(err)
			}
			defer receiver.Stop()
			b.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
			b.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+receiver.GRPC)
			e, err := Setup(context.Background(), Options{Children: children})
			if err != nil {
				b.Fatal(err)
			}
			c := fixtures()[0]
			c.x.Traceparent = ""
			tracer := trace.New(8192, e)
			before, start := cpuTime(b), time.Now()
			for i := range b.N {
				tracer.Offer(c.x, c.conn)
				if i%20 == 19 { // 20 each millisecond
					time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / 20_000)))
				}
			}
			tracer.Close()
			e.Shutdown(context.Background())
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(tracer.Dropped())/float64(b.N), "dropped-writes/op")
			b.ReportMetric(float64(e.Dropped())/float64(b.N), "dropped-spans/op")
		})
	}
}

// cpuTime is what this process used so far.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

type discard struct{}

func (discard) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (discard) Shutdown(context.Context) error                             { return nil }
