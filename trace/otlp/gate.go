package otlp

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// gate bounds the spans that are held between us and the exporter, and counts
// what becomes of each. The SDK's batch processor drops when its queue is full
// but tells nobody how many (v1.47: a private counter, or a metric behind an
// experimental variable), so the gate stands on both sides of it:
//
//	Consume -> gate.end -> batch processor -> gate.ExportSpans -> exporter
//	           held +n                          held -n
//
// The processor's queue is as long as the gate's limit, so it never drops by
// itself. The gate also ends an export that hangs when the time for shutting
// down is over, and logs failures, at most one a minute.
type gate struct {
	batch    sdktrace.SpanProcessor
	exporter sdktrace.SpanExporter
	log      *slog.Logger
	limit    int

	accepted, exported, failed atomic.Uint64 // the difference is held
	dropped                    atomic.Uint64 // had no room

	quit   context.Context // done: nothing is exported any more
	giveUp context.CancelFunc

	lastLog    time.Time // of the one goroutine that exports
	unreported uint64
}

func newGate(exporter sdktrace.SpanExporter, log *slog.Logger) *gate {
	queue := positive("OTEL_BSP_MAX_QUEUE_SIZE", defaultQueue)
	batch := min(positive("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", sdktrace.DefaultMaxExportBatchSize), queue)
	g := &gate{exporter: exporter, log: log, limit: queue}
	g.quit, g.giveUp = context.WithCancel(context.Background())
	g.batch = sdktrace.NewBatchSpanProcessor(exportSide{g},
		sdktrace.WithMaxQueueSize(queue), sdktrace.WithMaxExportBatchSize(batch))
	return g
}

// defaultQueue is how many spans wait at most, where OTEL_BSP_MAX_QUEUE_SIZE
// says nothing: a tenth of a second at 20,000 writes a second with children,
// about 20 MB when full. The SDK's own 2,048 is made for one application's
// requests.
const defaultQueue = 8192

func (g *gate) held() int {
	settled := g.exported.Load() + g.failed.Load()
	return int(g.accepted.Load() - settled)
}

// lost is how many spans nobody will see. After shutdown what is still held
// is lost too, in whatever state the exporter is.
func (g *gate) lost() uint64 {
	if g.quit.Err() != nil {
		return g.dropped.Load() + g.accepted.Load() - g.exported.Load()
	}
	return g.dropped.Load() + g.failed.Load()
}

// end takes finished spans: all of them, or none if there is no room. Only one
// goroutine calls it.
func (g *gate) end(spans []*record) {
	if g.quit.Err() != nil || g.held()+len(spans) > g.limit {
		g.dropped.Add(uint64(len(spans)))
		return
	}
	g.accepted.Add(uint64(len(spans)))
	for _, s := range spans {
		g.batch.OnEnd(s)
	}
}

// shutdown exports what is held until ctx ends; the rest fails.
func (g *gate) shutdown(ctx context.Context) error {
	defer g.giveUp() // the processor doesn't wait longer either
	return g.batch.Shutdown(ctx)
}

// exportSide is the gate behind the batch processor.
type exportSide struct{ *gate }

// ExportSpans hands a batch to the real exporter. A failure is counted and
// logged here and reported to nobody else: the SDK would print each one.
func (g exportSide) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	n := len(spans)
	if g.quit.Err() != nil {
		g.failed.Add(uint64(n))
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(g.quit, cancel)()
	if err := g.exporter.ExportSpans(ctx, spans); err != nil {
		g.failed.Add(uint64(n))
		g.report(err, n)
		return nil
	}
	g.exported.Add(uint64(n))
	return nil
}

// Shutdown ends the real exporter.
func (g exportSide) Shutdown(ctx context.Context) error { return g.exporter.Shutdown(ctx) }

func (g *gate) report(err error, n int) {
	g.unreported += uint64(n)
	if g.log == nil || time.Since(g.lastLog) < time.Minute {
		return
	}
	g.log.Warn("spans could not be exported", "spans", g.unreported, "error", err)
	g.lastLog, g.unreported = time.Now(), 0
}
