package otlp

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/wirewait/wirewait/trace"
)

// newSampler is the SDK's sampler that OTEL_TRACES_SAMPLER and
// OTEL_TRACES_SAMPLER_ARG name. The SDK reads them too, but answers only by
// starting a span, which costs more than writing one down.
func newSampler() (sdktrace.Sampler, error) {
	name := strings.ToLower(strings.TrimSpace(os.Getenv("OTEL_TRACES_SAMPLER")))
	if name == "" {
		name = "parentbased_always_on"
	}
	root, parentBased := strings.CutPrefix(name, "parentbased_")
	var s sdktrace.Sampler
	switch root {
	case "always_on":
		s = sdktrace.AlwaysSample()
	case "always_off":
		s = sdktrace.NeverSample()
	case "traceidratio":
		ratio, err := samplerRatio()
		if err != nil {
			return nil, err
		}
		s = sdktrace.TraceIDRatioBased(ratio)
	default:
		return nil, fmt.Errorf("OTEL_TRACES_SAMPLER=%s: use always_on, always_off, traceidratio, or one of them after parentbased_", name)
	}
	if parentBased {
		s = sdktrace.ParentBased(s)
	}
	return s, nil
}

func samplerRatio() (float64, error) {
	arg := strings.TrimSpace(os.Getenv("OTEL_TRACES_SAMPLER_ARG"))
	if arg == "" {
		return 1, nil
	}
	ratio, err := strconv.ParseFloat(arg, 64)
	if err != nil || !(ratio >= 0 && ratio <= 1) {
		return 0, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG=%s: use a number from 0 to 1", arg)
	}
	return ratio, nil
}

// identity is what a write's span is called by others: its own ids, and whose
// it is.
type identity struct {
	context, parent oteltrace.SpanContext
	links           []sdktrace.Link
}

// identify draws a write's ids and decides whether it gets a span.
//
// A write whose traceparent belonged to an earlier one is linked to that one's
// parent: a prepared statement keeps its comment, so that only its first
// Execute was sent by that parent.
func (s *spans) identify(f *trace.Finished) (id identity, sampled bool) {
	ctx := context.Background()
	if f.Traceparent != "" {
		sc, ok := parent(f.Traceparent)
		switch {
		case !ok:
		case f.TraceparentReused:
			id.links = []sdktrace.Link{{SpanContext: sc}}
		default:
			id.parent = sc
			ctx = oteltrace.ContextWithRemoteSpanContext(ctx, sc)
		}
	}
	c := oteltrace.SpanContextConfig{TraceID: id.parent.TraceID(), TraceFlags: oteltrace.FlagsSampled}
	if !id.parent.IsValid() {
		c.TraceID = newTraceID()
	}
	decision := s.sampler.ShouldSample(sdktrace.SamplingParameters{
		ParentContext: ctx, TraceID: c.TraceID, Kind: oteltrace.SpanKindClient,
	})
	if decision.Decision != sdktrace.RecordAndSample {
		return id, false
	}
	c.SpanID = newSpanID()
	id.context = oteltrace.NewSpanContext(c)
	return id, true
}

// newTraceID and newSpanID draw ids as the SDK does.
func newTraceID() (id oteltrace.TraceID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	}
	return id
}

func newSpanID() (id oteltrace.SpanID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}
