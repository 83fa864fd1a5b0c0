package otlp

import (
	"encoding/hex"

	oteltrace "go.opentelemetry.io/otel/trace"
)

// parent reads a W3C traceparent (https://www.w3.org/TR/trace-context/):
//
//	00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
//	^  ^ trace id                       ^ span id        ^ flags
//	version
//
// A higher version may be longer and is read as version 00. It is false for
// anything that isn't one; the write is then a trace of its own.
func parent(s string) (oteltrace.SpanContext, bool) {
	var none oteltrace.SpanContext
	if len(s) < 55 || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return none, false
	}
	if s[:2] == "ff" || s[:2] == "00" && len(s) != 55 || len(s) > 55 && s[55] != '-' {
		return none, false
	}
	var version, flags [1]byte
	if !lowerHex(version[:], s[:2]) || !lowerHex(flags[:], s[53:55]) {
		return none, false
	}
	var c oteltrace.SpanContextConfig
	if !lowerHex(c.TraceID[:], s[3:35]) || !lowerHex(c.SpanID[:], s[36:52]) {
		return none, false
	}
	c.TraceFlags = oteltrace.TraceFlags(flags[0]) & oteltrace.FlagsSampled
	c.Remote = true
	if !c.TraceID.IsValid() || !c.SpanID.IsValid() {
		return none, false
	}
	return oteltrace.NewSpanContext(c), true
}

// lowerHex decodes s into dst; the standard allows no upper case.
func lowerHex(dst []byte, s string) bool {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'F' {
			return false
		}
	}
	n, err := hex.Decode(dst, []byte(s))
	return err == nil && n == len(dst)
}
