package otlp

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// Every method of the SDK's interface answers, those that a record leaves to
// the span that it embeds included: exporters may call any.
func TestRecord_AnswersAllThatExportersAsk(t *testing.T) {
	t.Parallel()
	spans := &collect{}
	offerAll(t, Options{Version: "1.2.3", SpanExporter: spans})
	stubs := tracetest.SpanStubsFromReadOnlySpans(spans.all)
	if len(stubs) == 0 {
		t.Fatal("no spans")
	}
	children := make(map[string]int)
	for _, s := range stubs {
		if v, _ := s.Resource.Set().Value("service.name"); v.AsString() != "wirewait" {
			t.Errorf("%s: service.name is %q", s.Name, v.AsString())
		}
		if s.InstrumentationScope.Name != scope || s.InstrumentationScope.Version != "1.2.3" {
			t.Errorf("%s: scope is %+v", s.Name, s.InstrumentationScope)
		}
		if s.DroppedAttributes+s.DroppedEvents+s.DroppedLinks != 0 {
			t.Errorf("%s: says that it dropped something", s.Name)
		}
		children[s.Parent.SpanID().String()]++
	}
	for _, s := range stubs {
		if n := children[s.SpanContext.SpanID().String()]; n != s.ChildSpanCount {
			t.Errorf("%s has %d children and says %d", s.Name, n, s.ChildSpanCount)
		}
	}
}

func TestAttributeLimitsOfTheEnvironment(t *testing.T) {
	t.Setenv("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "4")
	t.Setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "5")
	spans := &collect{}
	offerAll(t, Options{SpanExporter: spans})
	if len(spans.all) == 0 {
		t.Fatal("no spans")
	}
	for _, s := range spans.all {
		if n := len(s.Attributes()); n > 5 {
			t.Errorf("%s has %d attributes", s.Name(), n)
		}
		for _, kv := range s.Attributes() {
			if v := kv.Value; v.Type() == attribute.STRING && len(v.AsString()) > 4 {
				t.Errorf("%s: %s is %q", s.Name(), kv.Key, v.AsString())
			}
		}
	}
}

func TestTruncate_CountsCharacters(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{"": "", "é": "é", "éé": "éé", "ééé": "éé", "abc": "ab"} {
		if got := truncate(s, 2); got != want {
			t.Errorf("%q is cut to %q, want %q", s, got, want)
		}
	}
}

// No literal of a statement and no document is in a span unless statement text
// was asked for.
func TestSpansHoldNoDataByDefault(t *testing.T) {
	t.Parallel()
	spans := &collect{}
	e := setup(t, Options{SpanExporter: spans})
	f := one()
	f.Mongo.WriteConcern.Raw = []byte("secret")
	e.Consume(f)
	e.Shutdown(t.Context())
	for _, s := range spans.all {
		for _, kv := range s.Attributes() {
			if kv.Key == "db.query.text" || strings.Contains(kv.Value.String(), "secret") {
				t.Errorf("%s is %s", kv.Key, kv.Value.String())
			}
		}
	}
	if len(spans.all) != 1 {
		t.Errorf("%d spans, want 1", len(spans.all))
	}
}

func FuzzNames(f *testing.F) {
	f.Add("insert", "orders", "10.0.0.1:5432", traceparent)
	f.Add("\xff", "\xc0\xaf", "[::1]:99999", "")
	f.Fuzz(func(t *testing.T, operation, collection, address, parent string) {
		s := spans{sampler: sdktrace.AlwaysSample(), limits: newLimits(), children: ChildrenAlways}
		fin := one()
		fin.Operation, fin.Collection, fin.Traceparent = operation, collection, parent
		c := *fin.Conn
		c.PeerAddr, c.ClientAddr = address, address
		fin.Conn = &c
		id, _ := s.identify(fin)
		s.make(fin, id)
		root := s.finished[0]
		if !utf8.ValidString(root.name) {
			t.Errorf("the name %q is not UTF-8", root.name)
		}
		for _, kv := range slices.Concat(root.shared.list, root.attributes) {
			if !utf8.ValidString(kv.Value.AsString()) && kv.Value.Type() == attribute.STRING {
				t.Errorf("%s is %q", kv.Key, kv.Value.AsString())
			}
		}
	})
}
