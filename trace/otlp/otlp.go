// Package otlp makes OpenTelemetry spans and metrics of finished exchanges.
// It's a consumer of package trace; only it and the command know OpenTelemetry.
//
//	trace.Tracer --Consume--> metrics (every exchange) --> /metrics, OTLP
//	                     \--> spans (writes) --> gate (bounded, drops counted)
//	                                               --> batches --> exporter
//
// Everything is set by OpenTelemetry's standard variables (OTEL_*): where
// spans go, how many are sampled, what the service is called. A dead or
// hanging exporter costs spans, which are counted, and never time.
package otlp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/wirewait/wirewait/trace"
)

const scope = "github.com/wirewait/wirewait"

// Children says when a write's span gets child spans (request, server, reply).
type Children string

// ChildrenAuto makes them when they say something: when a delay was injected
// or replication was seen. It is the default.
const (
	ChildrenAuto   Children = "auto"
	ChildrenAlways Children = "always"
	ChildrenNever  Children = "never"
)

// Options are Setup's. The zero value is usable.
type Options struct {
	// Children is ChildrenAuto if empty.
	Children Children
	// Version is wirewait's own, for service.version and the scope.
	Version string
	// Counters are read at each collection of metrics; nil: none are exported.
	Counters func() trace.Counters
	// Collectors are shown at /metrics beside what is our own.
	Collectors []prometheus.Collector
	// Activities are those of the servers that are watched, read at each
	// collection of metrics; a nil function, or nil: none are.
	Activities func() *trace.Activities
	// Log gets failures to export spans, at most one a minute; nil: no log.
	Log *slog.Logger
	// SpanExporter takes the place of the one that the environment names.
	SpanExporter sdktrace.SpanExporter
}

// Exporter is a trace.Consumer that makes metrics of every exchange and spans
// of writes. But for Consume, its methods are safe for concurrent use.
type Exporter struct {
	words   string
	handler http.Handler
	metrics *metrics
	spans   *spans // nil: traces are off
	gate    *gate  // nil: traces are off

	meters *sdkmetric.MeterProvider
}

// Setup makes an exporter as the environment says. It connects to nothing, so
// that a receiver may come later; an error is a variable that can't be meant.
// Shutdown must be called.
func Setup(ctx context.Context, o Options) (*Exporter, error) {
	if o.Children == "" {
		o.Children = ChildrenAuto
	}
	switch o.Children {
	case ChildrenAuto, ChildrenAlways, ChildrenNever:
	default:
		return nil, fmt.Errorf("children %q: use auto, always or never", o.Children)
	}
	res, err := newResource(ctx, o.Version)
	if err != nil {
		return nil, err
	}
	e := &Exporter{}
	if err := e.setupTraces(ctx, o, res); err != nil {
		return nil, err
	}
	if err := e.setupMetrics(ctx, o, res); err != nil {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return nil, errors.Join(err, e.Shutdown(ctx))
	}
	return e, nil
}

// newResource says who we are: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES
// win over our own name.
func newResource(ctx context.Context, version string) (*resource.Resource, error) {
	res, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(appendString(nil, semconv.ServiceVersionKey, version)...),
		resource.WithAttributes(semconv.ServiceName("wirewait")),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return res, nil
}

func (e *Exporter) setupTraces(ctx context.Context, o Options, res *resource.Resource) error {
	sampler, err := newSampler()
	if err != nil {
		return err
	}
	to, err := e.destination(ctx, o, res)
	if err != nil || to == nil {
		return err
	}
	e.traceTo(to, sampler, o)
	return nil
}

func (e *Exporter) traceTo(to destination, sampler sdktrace.Sampler, o Options) {
	e.gate = newGate(to, o.Log)
	e.spans = &spans{sampler: sampler, gate: e.gate, children: o.Children, limits: newLimits()}
}

// destination also finds the words for where it leads. Nil: nowhere.
func (e *Exporter) destination(ctx context.Context, o Options, res *resource.Resource) (destination, error) {
	if o.SpanExporter != nil {
		e.words = fmt.Sprintf("traces: to %T", o.SpanExporter)
		return newToSDK(o.SpanExporter, res, o.Version)
	}
	where, err := tracesDestination()
	e.words = where.words
	switch {
	case err != nil || where.off:
		return nil, err
	case where.protocol != "":
		return newToOTLP(ctx, where.protocol, res, o.Version)
	}
	exporter, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return nil, fmt.Errorf("set up the exporter of traces: %w", err)
	}
	return newToSDK(exporter, res, o.Version)
}

// setupMetrics always serves /metrics, and exports elsewhere only if
// OTEL_METRICS_EXPORTER is set.
func (e *Exporter) setupMetrics(ctx context.Context, o Options, res *resource.Resource) error {
	e.metrics = newMetrics(o.Version)
	registry := prometheus.NewRegistry()
	// The process itself: memory, goroutines, CPU, open descriptors.
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, more := range o.Collectors {
		if err := registry.Register(more); err != nil {
			return fmt.Errorf("set up /metrics: %w", err)
		}
	}
	scrape, err := promexporter.New(promexporter.WithRegisterer(registry), promexporter.WithoutScopeInfo(),
		promexporter.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes), promexporter.WithProducer(e.metrics))
	if err != nil {
		return fmt.Errorf("set up /metrics: %w", err)
	}
	e.handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	readers := []sdkmetric.Option{sdkmetric.WithResource(res), sdkmetric.WithReader(scrape)}
	if os.Getenv("OTEL_METRICS_EXPORTER") != "" {
		reader, err := newReader(ctx, e.metrics)
		if err != nil {
			return fmt.Errorf("set up the exporter of metrics: %w", err)
		}
		readers = append(readers, sdkmetric.WithReader(reader))
	}
	e.meters = sdkmetric.NewMeterProvider(readers...)
	meter := e.meters.Meter(scope, metric.WithInstrumentationVersion(o.Version))
	if o.Counters != nil {
		err = observeProxy(meter, o.Counters)
	}
	if o.Activities != nil {
		err = errors.Join(err, observeServers(meter, o.Activities))
	}
	if e.gate != nil {
		err = errors.Join(err, observeSpans(meter, e.gate))
	}
	return err
}

// readers guards autoexport's producer, which is the process's.
var readers sync.Mutex

// newReader is the one that the environment names. It reads our own metrics
// too: OTEL_METRICS_PRODUCERS would take their place.
func newReader(ctx context.Context, m *metrics) (sdkmetric.Reader, error) {
	if v := os.Getenv("OTEL_METRICS_PRODUCERS"); v != "" {
		return nil, fmt.Errorf("OTEL_METRICS_PRODUCERS=%s: unset it, the metrics are wirewait's own", v)
	}
	readers.Lock()
	defer readers.Unlock()
	autoexport.WithFallbackMetricProducer(func(context.Context) (sdkmetric.Producer, error) { return m, nil })
	return autoexport.NewMetricReader(ctx)
}

// Consume records one exchange. It never blocks.
func (e *Exporter) Consume(f *trace.Finished) {
	e.metrics.record(f)
	if e.spans != nil && f.Write && !f.Background() {
		e.spans.write(f)
	}
}

// Describe is one line that tells where spans go: the endpoint, or that traces
// are off and how to turn them on.
func (e *Exporter) Describe() string { return e.words }

// MetricsHandler serves the metrics as Prometheus text.
func (e *Exporter) MetricsHandler() http.Handler { return e.handler }

// Exported is how many spans the exporter took.
func (e *Exporter) Exported() uint64 {
	if e.gate == nil {
		return 0
	}
	return e.gate.exported.Load()
}

// Dropped is how many spans were lost behind the tracer: the queue was full,
// the exporter failed, or the time to shut down was over.
func (e *Exporter) Dropped() uint64 {
	if e.gate == nil {
		return 0
	}
	return e.gate.lost()
}

// shutdownTime is what Shutdown takes at most if its context has no deadline.
const shutdownTime = 5 * time.Second

// Shutdown exports what is held and returns when that is done or ctx ends,
// whatever the exporter does. The tracer must be closed before.
func (e *Exporter) Shutdown(ctx context.Context) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, shutdownTime)
		defer cancel()
	}
	if e.gate != nil {
		defer e.gate.giveUp() // whatever is still held is lost
	}
	pipelines := e.pipelines()
	ended := make(chan error, len(pipelines))
	for _, shutdown := range pipelines {
		go func() { ended <- shutdown(ctx) }()
	}
	var errs []error
	for range pipelines {
		select {
		case err := <-ended:
			errs = append(errs, err)
		case <-ctx.Done():
			return fmt.Errorf("not all spans and metrics were exported: %w", ctx.Err())
		}
	}
	return errors.Join(errs...)
}

func (e *Exporter) pipelines() (list []func(context.Context) error) {
	if e.gate != nil {
		list = append(list, e.gate.shutdown)
	}
	if e.meters != nil {
		list = append(list, e.meters.Shutdown)
	}
	return list
}
