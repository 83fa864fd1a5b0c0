package otlp

import (
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"
)

// record is a finished span, before it takes its exporter's form (batch). The
// SDK's own spans are made to be changed by many goroutines while time goes
// by: locks, two copies of the attributes, a map to find doubles. A write is
// over when we hear of it, so its spans are only written down, into records
// that are used again for the next one.
type record struct {
	name            string
	kind            oteltrace.SpanKind
	context, parent oteltrace.SpanContext
	start, end      time.Time
	// shared come before attributes. They are the connection's, the same for
	// all its writes; nil: none.
	shared     *sharedAttributes
	attributes []attribute.KeyValue
	status     sdktrace.Status
	events     []sdktrace.Event
	links      []sdktrace.Link
	children   int
}

// sharedAttributes are never changed; a batch keeps their encoding here.
type sharedAttributes struct {
	list    []attribute.KeyValue
	encoded []byte
}

// limits are OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT and
// OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT (in characters, of strings), as the
// SDK reads them; negative: none.
type limits struct{ count, length int }

func newLimits() limits {
	l := sdktrace.NewSpanLimits()
	return limits{l.AttributeCountLimit, l.AttributeValueLengthLimit}
}

// apply cuts what follows `before` other attributes.
func (l limits) apply(a []attribute.KeyValue, before int) []attribute.KeyValue {
	if n := max(l.count-before, 0); l.count >= 0 && len(a) > n {
		a = a[:n]
	}
	if l.length < 0 {
		return a
	}
	for i, kv := range a {
		if kv.Value.Type() == attribute.STRING {
			a[i].Value = attribute.StringValue(truncate(kv.Value.AsString(), l.length))
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
