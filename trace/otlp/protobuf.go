package otlp

import (
	"encoding/binary"
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/encoding/protowire"
)

// Spans in OTLP's wire format, appended field by field: the SDK's way over one
// object per attribute costs eight times as much (BenchmarkBatch). A tag is
// number<<3 | kind, in one byte up to number 15. Numbers are those of
// opentelemetry/proto/{trace,common}/v1/*.proto, and a test reads the result
// with the code generated from them.
//
//	Span      1 trace_id  2 span_id  4 parent_span_id  5 name  6 kind  7 start  8 end
//	          9 attributes  11 events  13 links  15 status  16 flags
//	Event     1 time  2 name           Link  1 trace_id  2 span_id  6 flags
//	Status    2 message  3 code        KeyValue  1 key  2 value
//	AnyValue  1 string  2 bool  3 int  4 double
const (
	kindVarint  = 0
	kindFixed64 = 1
	kindBytes   = 2
	kindFixed32 = 5
)

func appendSpan(b []byte, r *record) []byte {
	b = appendIDs(b, r.context)
	if id := r.parent.SpanID(); id.IsValid() {
		b = append(b, 4<<3|kindBytes, byte(len(id)))
		b = append(b, id[:]...)
	}
	b = appendText(b, 5, r.name)
	b = append(b, 6<<3|kindVarint, spanKind(r.kind))
	b = appendTime(b, 7, r.start)
	b = appendTime(b, 8, r.end)
	if s := r.shared; s != nil {
		if s.encoded == nil {
			s.encoded = appendAttributes([]byte{}, 9, s.list)
		}
		b = append(b, s.encoded...)
	}
	b = appendAttributes(b, 9, r.attributes)
	for i := range r.events {
		b = appendEvent(b, &r.events[i])
	}
	for i := range r.links {
		b = appendLink(b, r.links[i].SpanContext)
	}
	b = appendStatus(b, r.status)
	b = append(b, 16<<3&0x7f|kindFixed32|0x80, 16<<3>>7)
	return binary.LittleEndian.AppendUint32(b, flags(r.context, r.parent))
}

func appendIDs(b []byte, c oteltrace.SpanContext) []byte {
	trace, span := c.TraceID(), c.SpanID()
	b = append(b, 1<<3|kindBytes, byte(len(trace)))
	b = append(b, trace[:]...)
	b = append(b, 2<<3|kindBytes, byte(len(span)))
	return append(b, span[:]...)
}

// flags are W3C's and whether the context that it's about came over the wire:
// SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK and _IS_REMOTE_MASK.
func flags(own, about oteltrace.SpanContext) uint32 {
	f := uint32(own.TraceFlags()) | 0x100
	if about.IsRemote() {
		f |= 0x200
	}
	return f
}

// spanKind is SPAN_KIND_CLIENT or _INTERNAL: we make no others.
func spanKind(k oteltrace.SpanKind) byte {
	if k == oteltrace.SpanKindClient {
		return 3
	}
	return 1
}

// appendStatus writes an empty status too, as the SDK does.
func appendStatus(b []byte, s sdktrace.Status) []byte {
	if s.Code != codes.Error {
		return append(b, 15<<3|kindBytes, 0)
	}
	const code = 2 // STATUS_CODE_ERROR
	n := 2
	if s.Description != "" {
		n += sizeText(s.Description)
	}
	b = append(b, 15<<3|kindBytes, byte(n)) // descriptions are ours, and short
	if s.Description != "" {
		b = appendText(b, 2, s.Description)
	}
	return append(b, 3<<3|kindVarint, code)
}

func appendEvent(b []byte, e *sdktrace.Event) []byte {
	b = append(b, 11<<3|kindBytes)
	b = protowire.AppendVarint(b, uint64(9+sizeText(e.Name)))
	return appendText(appendTime(b, 1, e.Time), 2, e.Name)
}

func appendLink(b []byte, c oteltrace.SpanContext) []byte {
	b = append(b, 13<<3|kindBytes, 18+10+5)
	b = append(appendIDs(b, c), 6<<3|kindFixed32)
	return binary.LittleEndian.AppendUint32(b, flags(c, c))
}

// appendAttributes appends each as a KeyValue in the field given (below 16).
func appendAttributes(b []byte, field byte, list []attribute.KeyValue) []byte {
	for i := range list {
		kv := &list[i]
		value := sizeValue(&kv.Value)
		b = append(b, field<<3|kindBytes)
		b = protowire.AppendVarint(b, uint64(sizeText(string(kv.Key))+1+protowire.SizeBytes(value)))
		b = appendText(b, 1, string(kv.Key))
		b = append(b, 2<<3|kindBytes)
		b = protowire.AppendVarint(b, uint64(value))
		b = appendValue(b, &kv.Value)
	}
	return b
}

func sizeValue(v *attribute.Value) int {
	switch v.Type() {
	case attribute.BOOL:
		return 2
	case attribute.INT64:
		return 1 + protowire.SizeVarint(uint64(v.AsInt64()))
	case attribute.FLOAT64:
		return 9
	case attribute.STRING:
		return sizeText(v.AsString())
	}
	return sizeText(v.String()) // a list, which none of ours is
}

func appendValue(b []byte, v *attribute.Value) []byte {
	switch v.Type() {
	case attribute.BOOL:
		return append(b, 2<<3|kindVarint, byte(protowire.EncodeBool(v.AsBool())))
	case attribute.INT64:
		return protowire.AppendVarint(append(b, 3<<3|kindVarint), uint64(v.AsInt64()))
	case attribute.FLOAT64:
		return binary.LittleEndian.AppendUint64(append(b, 4<<3|kindFixed64), math.Float64bits(v.AsFloat64()))
	case attribute.STRING:
		return appendText(b, 1, v.AsString())
	}
	return appendText(b, 1, v.String())
}

func sizeText(s string) int { return 1 + protowire.SizeBytes(len(s)) }

func appendText(b []byte, field byte, s string) []byte {
	return protowire.AppendString(append(b, field<<3|kindBytes), s)
}

func appendTime(b []byte, field byte, t time.Time) []byte {
	b = append(b, field<<3|kindFixed64)
	return binary.LittleEndian.AppendUint64(b, uint64(max(0, t.UnixNano())))
}
