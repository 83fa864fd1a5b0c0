package otlp

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	oteltrace "go.opentelemetry.io/otel/trace"
)

// toSDK leads to any exporter of the SDK: the console's, and those that are
// handed to us.
type toSDK struct {
	exporter sdktrace.SpanExporter
	template sdktrace.ReadOnlySpan
}

func newToSDK(e sdktrace.SpanExporter, res *resource.Resource, version string) (*toSDK, error) {
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithSampler(sdktrace.AlwaysSample()))
	tracer := provider.Tracer(scope, oteltrace.WithInstrumentationVersion(version), oteltrace.WithSchemaURL(semconv.SchemaURL))
	_, span := tracer.Start(context.Background(), "")
	template, ok := span.(sdktrace.ReadOnlySpan)
	if !ok {
		return nil, fmt.Errorf("the SDK's span is a %T, which cannot be exported", span)
	}
	return &toSDK{e, template}, nil
}

func (t *toSDK) newBatch() batch                    { return &sdkBatch{to: t} }
func (t *toSDK) shutdown(ctx context.Context) error { return t.exporter.Shutdown(ctx) }

type sdkBatch struct {
	to    *toSDK
	spans []sdktrace.ReadOnlySpan
}

// add copies r, for its maker uses it and its attributes again.
func (b *sdkBatch) add(r *record) {
	s := &sdkSpan{ReadOnlySpan: b.to.template, r: *r}
	s.r.attributes = slices.Clone(r.attributes)
	if r.shared != nil {
		s.r.attributes = slices.Concat(r.shared.list, r.attributes)
	}
	b.spans = append(b.spans, s)
}

func (b *sdkBatch) len() int                         { return len(b.spans) }
func (b *sdkBatch) export(ctx context.Context) error { return b.to.exporter.ExportSpans(ctx, b.spans) }
func (b *sdkBatch) reset()                           { b.spans = nil } // the exporter may keep them

// sdkSpan is a record as the SDK's exporters read it. What it doesn't say
// itself (resource, scope, and whatever a later SDK may ask) is answered by the
// span of the SDK that it embeds. That one is used for nothing else.
type sdkSpan struct {
	sdktrace.ReadOnlySpan
	r record
}

func (s *sdkSpan) Name() string                       { return s.r.name }
func (s *sdkSpan) SpanContext() oteltrace.SpanContext { return s.r.context }
func (s *sdkSpan) Parent() oteltrace.SpanContext      { return s.r.parent }
func (s *sdkSpan) SpanKind() oteltrace.SpanKind       { return s.r.kind }
func (s *sdkSpan) StartTime() time.Time               { return s.r.start }
func (s *sdkSpan) EndTime() time.Time                 { return s.r.end }
func (s *sdkSpan) Attributes() []attribute.KeyValue   { return s.r.attributes }
func (s *sdkSpan) Links() []sdktrace.Link             { return s.r.links }
func (s *sdkSpan) Events() []sdktrace.Event           { return s.r.events }
func (s *sdkSpan) Status() sdktrace.Status            { return s.r.status }
func (s *sdkSpan) ChildSpanCount() int                { return s.r.children }
