//go:build unix

package otlp

import (
	"context"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/wirewait/wirewait/internal/otlprecv"
	"github.com/wirewait/wirewait/trace"
)

// What one write costs the tracer's worker, and the exporter's goroutine up to
// the request's bytes. Goals: under 0.3 µs for metrics alone, under 2 µs with
// its span.
func BenchmarkConsume(b *testing.B) {
	for _, bb := range []struct {
		name     string
		sampler  sdktrace.Sampler // nil: traces are off
		children Children
	}{
		{"metrics", nil, ""},
		{"unsampled", sdktrace.NeverSample(), ChildrenNever},
		{"span", sdktrace.AlwaysSample(), ChildrenNever},
		{"span-children", sdktrace.AlwaysSample(), ChildrenAlways},
	} {
		b.Run(bb.name, func(b *testing.B) {
			e, err := Setup(context.Background(), Options{})
			if err != nil {
				b.Fatal(err)
			}
			if bb.sampler != nil {
				e.traceTo(toClient(&wireClient{}, resource.Empty(), ""), bb.sampler, Options{Children: bb.children})
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
