package otlp

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// destination is where spans go, and batch the form in which they go there:
// bytes for a receiver of OTLP (toOTLP), the SDK's spans for any other exporter
// (toSDK). All else is shared: what is sampled, ids, attributes, the queue and
// what is counted.
type destination interface {
	newBatch() batch
	// shutdown ends the exporter; no batch follows.
	shutdown(context.Context) error
}

// batch is the spans of one export.
type batch interface {
	// add keeps nothing of r.
	add(r *record)
	len() int
	export(context.Context) error
	// reset empties the batch for use again.
	reset()
}

// gate bounds the spans that are held between us and the exporter, and counts
// what becomes of each.
//
//	Consume -> gate.end -> batch being filled -> full, or old -> exporter
//	           held +n                                           held -n
//
// It stands in the place of the SDK's batch processor, which drops when its
// queue is full but tells nobody how many (v1.47: a private counter, or a
// metric behind an experimental variable), and takes its settings (OTEL_BSP_*).
// It also ends an export that hangs when the time for shutting down is over,
// and logs failures, at most one a minute.
type gate struct {
	to       destination
	log      *slog.Logger
	limit    int           // spans held
	size     int           // spans in a batch
	every    time.Duration // a batch that isn't full waits so long at most
	patience time.Duration // for one export

	accepted, exported, failed atomic.Uint64 // the difference is held
	dropped                    atomic.Uint64 // had no room

	mu      sync.Mutex
	filling batch
	full    []batch
	spare   []batch // at most maxSpare, emptied

	wake chan struct{} // room for one: a batch is full
	stop chan struct{} // closed by shutdown
	done chan struct{} // closed by work
	once sync.Once

	quit   context.Context // done: nothing is exported any more
	giveUp context.CancelFunc

	// Of the goroutine that exports.
	lastLog    time.Time
	unreported uint64
	ended      error // of the destination's shutdown; read after done
}

// defaultQueue is how many spans wait at most, where OTEL_BSP_MAX_QUEUE_SIZE
// says nothing: a tenth of a second at 20,000 writes a second with children,
// about 10 MB when full. The SDK's own 2,048 is made for one application's
// requests.
const defaultQueue = 8192

// maxSpare is enough to never make a new batch where the exporter keeps pace;
// one of OTLP is half a megabyte.
const maxSpare = 2

func newGate(to destination, log *slog.Logger) *gate {
	limit := positive("OTEL_BSP_MAX_QUEUE_SIZE", defaultQueue)
	g := &gate{
		to: to, log: log, limit: limit,
		size:     min(positive("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", sdktrace.DefaultMaxExportBatchSize), limit),
		every:    time.Duration(positive("OTEL_BSP_SCHEDULE_DELAY", sdktrace.DefaultScheduleDelay)) * time.Millisecond,
		patience: time.Duration(positive("OTEL_BSP_EXPORT_TIMEOUT", sdktrace.DefaultExportTimeout)) * time.Millisecond,
		filling:  to.newBatch(),
		wake:     make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	g.quit, g.giveUp = context.WithCancel(context.Background())
	go g.work()
	return g
}

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
func (g *gate) end(spans []record) {
	if g.quit.Err() != nil || g.held()+len(spans) > g.limit {
		g.dropped.Add(uint64(len(spans)))
		return
	}
	g.accepted.Add(uint64(len(spans)))
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range spans {
		g.filling.add(&spans[i])
		if g.filling.len() < g.size {
			continue
		}
		g.rotate()
		select {
		case g.wake <- struct{}{}:
		default:
		}
	}
}

// rotate begins a new batch. The caller holds mu.
func (g *gate) rotate() {
	g.full = append(g.full, g.filling)
	n := len(g.spare)
	if n == 0 {
		g.filling = g.to.newBatch()
		return
	}
	g.filling, g.spare = g.spare[n-1], g.spare[:n-1]
}

// work exports batches until the gate is shut, and then the destination.
func (g *gate) work() {
	defer close(g.done)
	old := time.NewTicker(g.every)
	defer old.Stop()
	for {
		select {
		case <-g.wake:
			g.export(false)
		case <-old.C:
			g.export(true)
		case <-g.stop:
			g.export(true)
			g.ended = g.to.shutdown(g.quit)
			return
		}
	}
}

// export empties the queue; all: the batch that is being filled too.
func (g *gate) export(all bool) {
	for {
		b := g.next(all)
		if b == nil {
			return
		}
		g.exportOne(b)
		b.reset()
		g.mu.Lock()
		if len(g.spare) < maxSpare {
			g.spare = append(g.spare, b)
		}
		g.mu.Unlock()
	}
}

func (g *gate) next(all bool) batch {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.full) == 0 && all && g.filling.len() > 0 {
		g.rotate()
	}
	if len(g.full) == 0 {
		return nil
	}
	b := g.full[0]
	g.full = append(g.full[:0], g.full[1:]...)
	return b
}

// exportOne hands a batch to the exporter. A failure is counted and logged.
func (g *gate) exportOne(b batch) {
	n := b.len()
	if g.quit.Err() != nil {
		g.failed.Add(uint64(n))
		return
	}
	ctx, cancel := context.WithTimeout(g.quit, g.patience)
	defer cancel()
	if err := b.export(ctx); err != nil {
		g.failed.Add(uint64(n))
		g.report(err, n)
		return
	}
	g.exported.Add(uint64(n))
}

// shutdown exports what is held until ctx ends; the rest fails.
func (g *gate) shutdown(ctx context.Context) error {
	defer g.giveUp()
	g.once.Do(func() { close(g.stop) })
	defer context.AfterFunc(ctx, g.giveUp)()
	select {
	case <-g.done:
		return g.ended
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gate) report(err error, n int) {
	g.unreported += uint64(n)
	if g.log == nil || time.Since(g.lastLog) < time.Minute {
		return
	}
	what := "spans could not be exported"
	if _, ok := g.to.(*toOTLP); ok {
		what += ": look whether OTEL_EXPORTER_OTLP_ENDPOINT leads to a receiver that speaks OTEL_EXPORTER_OTLP_PROTOCOL"
	}
	g.log.Warn(what, "spans", g.unreported, "error", brief(err))
	g.lastLog, g.unreported = time.Now(), 0
}

// briefly is how many bytes of an error are logged.
const briefly = 200

// brief is the first line of an error, and not too much of it. Exporters put a
// receiver's whole answer into theirs, which may be a page of HTML or say back
// what it was sent.
func brief(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	line, _, _ = strings.Cut(line, " (body: ")
	if len(line) > briefly {
		line = strings.ToValidUTF8(line[:briefly], "") + "..."
	}
	return line
}
