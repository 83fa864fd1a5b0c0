package otlp

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"
)

// record is a finished span. The SDK's own spans are made to be changed by
// many goroutines while time goes by: locks, two copies of the attributes, a
// map to find doubles. A write is over when we hear of it, and writing its span
// down at once costs less than half (BenchmarkConsume shows what it costs now).
//
// What a record doesn't say itself (resource, scope, and whatever a later SDK
// may ask) is answered by the span of the SDK that it embeds. That one is used
// for nothing else and shared by all records.
type record struct {
	sdktrace.ReadOnlySpan
	name       string
	kind       oteltrace.SpanKind
	context    oteltrace.SpanContext
	parent     oteltrace.SpanContext
	start, end time.Time
	attributes []attribute.KeyValue
	status     sdktrace.Status
	events     []sdktrace.Event
	links      []sdktrace.Link
	children   int
}

var _ sdktrace.ReadOnlySpan = (*record)(nil)

func (r *record) Name() string                       { return r.name }
func (r *record) SpanContext() oteltrace.SpanContext { return r.context }
func (r *record) Parent() oteltrace.SpanContext      { return r.parent }
func (r *record) SpanKind() oteltrace.SpanKind       { return r.kind }
func (r *record) StartTime() time.Time               { return r.start }
func (r *record) EndTime() time.Time                 { return r.end }
func (r *record) Attributes() []attribute.KeyValue   { return r.attributes }
func (r *record) Links() []sdktrace.Link             { return r.links }
func (r *record) Events() []sdktrace.Event           { return r.events }
func (r *record) Status() sdktrace.Status            { return r.status }
func (r *record) ChildSpanCount() int                { return r.children }

// newSpanID draws an id as the SDK does.
func newSpanID() (id oteltrace.SpanID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}

// limit applies OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT (in characters, of strings)
// and OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT.
func limit(a []attribute.KeyValue, l sdktrace.SpanLimits) []attribute.KeyValue {
	if n := l.AttributeCountLimit; n >= 0 && len(a) > n {
		a = a[:n]
	}
	if l.AttributeValueLengthLimit < 0 {
		return a
	}
	for i, kv := range a {
		if kv.Value.Type() == attribute.STRING {
			a[i].Value = attribute.StringValue(truncate(kv.Value.AsString(), l.AttributeValueLengthLimit))
		}
	}
	return a
}

func truncate(s string, characters int) string {
	for i := range s {
		if characters == 0 {
			return s[:i]
		}
		characters--
	}
	return s
}

// valid is s in UTF-8. Names come from the wire, where they may hold anything;
// protocol buffers take nothing else, and an exporter loses a whole batch for
// one bad string.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
