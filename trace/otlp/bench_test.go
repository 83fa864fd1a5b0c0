package otlp

import (
	"context"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

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

type discard struct{}

func (discard) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (discard) Shutdown(context.Context) error                             { return nil }
