package otlp

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

var update = flag.Bool("update", false, "write the golden files")

// golden is a span as the files in testdata hold it: times are offsets from the
// connection's epoch, ids that are drawn are left out.
type golden struct {
	Name       string                     `json:"name"`
	Kind       string                     `json:"kind"`
	Trace      string                     `json:"trace,omitempty"`  // if it's the application's
	Parent     string                     `json:"parent,omitempty"` // a span's name, or the application's span id
	Start      string                     `json:"start"`
	End        string                     `json:"end"`
	Status     string                     `json:"status,omitempty"`
	Attributes map[string]json.RawMessage `json:"attributes,omitempty"`
	Events     []string                   `json:"events,omitempty"`
	Links      []string                   `json:"links,omitempty"`
}

// goldens groups spans by their fixture, which is their root's link.
func goldens(spans []*tracepb.Span) map[string][]golden {
	traces := make(map[string][]*tracepb.Span)
	for _, s := range spans {
		traces[string(s.TraceId)] = append(traces[string(s.TraceId)], s)
	}
	byName := make(map[string][]golden)
	for _, trace := range traces {
		names := make(map[string]string) // by span id
		for _, s := range trace {
			names[string(s.SpanId)] = s.Name
		}
		slices.SortFunc(trace, func(a, b *tracepb.Span) int {
			return cmp.Or(cmp.Compare(b.Kind, a.Kind), // CLIENT before INTERNAL
				cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano), cmp.Compare(a.EndTimeUnixNano, b.EndTimeUnixNano))
		})
		name := "no root"
		var list []golden
		for _, s := range trace {
			g := newGolden(s, names)
			if link, ok := g.Attributes["wirewait.link"]; ok {
				name, _ = strconv.Unquote(string(link))
			}
			list = append(list, g)
		}
		byName[name] = append(byName[name], list...)
	}
	return byName
}

func newGolden(s *tracepb.Span, names map[string]string) golden {
	offset := func(ns uint64) string { return time.Unix(0, int64(ns)).Sub(epoch).String() }
	g := golden{
		Name: s.Name, Kind: strings.TrimPrefix(s.Kind.String(), "SPAN_KIND_"),
		Start: offset(s.StartTimeUnixNano), End: offset(s.EndTimeUnixNano),
		Attributes: attributes(s.Attributes),
	}
	if id := hex.EncodeToString(s.TraceId); strings.HasPrefix(id, "0af765") {
		g.Trace = id
	}
	if parent, ok := names[string(s.ParentSpanId)]; ok {
		g.Parent = parent
	} else {
		g.Parent = hex.EncodeToString(s.ParentSpanId)
	}
	if s.Status.GetCode() != tracepb.Status_STATUS_CODE_UNSET {
		g.Status = strings.TrimSuffix(strings.TrimPrefix(s.Status.Code.String(), "STATUS_CODE_")+": "+s.Status.Message, ": ")
	}
	for _, e := range s.Events {
		g.Events = append(g.Events, e.Name+" at "+offset(e.TimeUnixNano))
	}
	for _, l := range s.Links {
		g.Links = append(g.Links, hex.EncodeToString(l.TraceId)+"-"+hex.EncodeToString(l.SpanId))
	}
	return g
}

// attributes writes doubles with a point and integers without, so that a golden
// file shows a type that changed.
func attributes(list []*commonpb.KeyValue) map[string]json.RawMessage {
	m := make(map[string]json.RawMessage, len(list))
	for _, kv := range list {
		switch v := kv.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			m[kv.Key], _ = json.Marshal(v.StringValue)
		case *commonpb.AnyValue_IntValue:
			m[kv.Key] = strconv.AppendInt(nil, v.IntValue, 10)
		case *commonpb.AnyValue_BoolValue:
			m[kv.Key] = strconv.AppendBool(nil, v.BoolValue)
		case *commonpb.AnyValue_DoubleValue:
			s := strconv.FormatFloat(v.DoubleValue, 'f', -1, 64)
			if !strings.Contains(s, ".") {
				s += ".0"
			}
			m[kv.Key] = json.RawMessage(s)
		default:
			m[kv.Key], _ = json.Marshal(fmt.Sprint(kv.Value))
		}
	}
	return m
}

// compareGoldens compares the spans of every fixture with its file. A fixture
// without spans has a file too: an empty list.
func compareGoldens(t *testing.T, spans []*tracepb.Span) {
	t.Helper()
	got := goldens(spans)
	for _, f := range fixtures() {
		list := got[f.name]
		delete(got, f.name)
		if list == nil {
			list = []golden{}
		}
		text, err := json.MarshalIndent(list, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, '\n')
		path := filepath.Join("testdata", f.name+".json")
		if *update {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("%v (run with -update to write it)", err)
		}
		if string(text) != string(want) {
			t.Errorf("%s: got %s\nwant %s", f.name, text, want)
		}
	}
	for name, list := range got {
		t.Errorf("%d spans belong to no fixture: %s", len(list), name)
	}
}
