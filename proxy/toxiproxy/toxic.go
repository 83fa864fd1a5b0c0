package toxiproxy

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/wirewait/wirewait/inject"
)

// toxic is one of a proxy's. It's never changed: an update makes another.
type toxic struct {
	name, kind string
	stream     string // as it was written
	toxicity   float32
	base       attributes // of Toxiproxy's types
	more       extension

	rule *inject.Rule // nil: there is nothing to do
	gone time.Time    // by its ttl; zero: not by itself
}

// chain are a proxy's toxics by stream, upstream first, in the order in which they
// were added.
type chain [2][]*toxic

const (
	upstream = iota
	downstream
)

// streamOf is an index of a chain; not ok: there is no such stream.
func streamOf(name string) (i int, ok bool) {
	i = slices.Index([]string{"upstream", "downstream"}, strings.ToLower(name))
	return i, i >= 0
}

// toxicWrapper is what is read of a toxic before its type is known. The name is
// Toxiproxy's, which stands in the decoder's complaints.
type toxicWrapper struct {
	Attributes any     `json:"attributes"`
	Name       string  `json:"name"`
	Type       string  `json:"type"`
	Stream     string  `json:"stream"`
	Toxicity   float32 `json:"toxicity"`
}

// readToxic makes a toxic of what was sent for a proxy.
func readToxic(proxy string, text []byte, now time.Time) (*toxic, error) {
	t, err := readHead(text)
	if err == nil {
		err = t.finish(proxy, text, now)
	}
	return t, err
}

// readHead reads all but the attributes.
func readHead(text []byte) (*toxic, error) {
	sent := toxicWrapper{Stream: "downstream", Toxicity: 1, Attributes: &noopToxic{}}
	if err := decode(text, &sent); err != nil {
		return nil, err
	}
	if _, ok := streamOf(sent.Stream); !ok {
		return nil, errStream
	}
	t := &toxic{name: sent.Name, kind: sent.Type, stream: sent.Stream, toxicity: sent.Toxicity, more: extension{}}
	if t.name == "" {
		t.name = t.kind + "_" + t.stream
	}
	switch {
	case types[t.kind] != nil:
		t.base = types[t.kind]()
	case effectNamed(t.kind):
		t.base = &noopToxic{}
	default:
		return nil, errToxicType
	}
	return t, nil
}

// finish reads the attributes.
func (t *toxic) finish(proxy string, text []byte, now time.Time) error {
	if err := t.read(text); err != nil {
		return err
	}
	return t.bind(proxy, now)
}

// read takes attributes in.
func (t *toxic) read(text []byte) error {
	sent := struct {
		Attributes any      `json:"attributes"`
		Toxicity   *float32 `json:"toxicity"`
	}{t.base, &t.toxicity}
	if err := decode(text, &sent); err != nil {
		return err
	}
	var all struct {
		Attributes map[string]json.RawMessage `json:"attributes"`
	}
	if err := decode(text, &all); err != nil {
		return err
	}
	t.more.pick(all.Attributes, types[t.kind] == nil)
	return nil
}

// changed is the toxic with what an update says.
func (t *toxic) changed(proxy string, text []byte, now time.Time) (*toxic, error) {
	next := *t
	next.more = maps.Clone(t.more)
	next.base = reflect.New(reflect.TypeOf(t.base).Elem()).Interface().(attributes)
	reflect.ValueOf(next.base).Elem().Set(reflect.ValueOf(t.base).Elem())
	if err := next.read(text); err != nil {
		return nil, err
	}
	if err := next.bind(proxy, now); err != nil {
		return nil, err
	}
	if reflect.DeepEqual(next.rule, t.rule) { // its time goes on
		next.gone = t.gone
	}
	return &next, nil
}

// bind checks the attributes and makes the toxic's rule.
func (t *toxic) bind(proxy string, now time.Time) error {
	if err := t.base.check(); err != nil {
		return err
	}
	ours := types[t.kind] == nil
	kind := ""
	if ours {
		kind = t.kind
	}
	r, ttl, err := t.more.rule(kind)
	if err != nil {
		return err
	}
	if t.gone = (time.Time{}); ttl > 0 {
		t.gone = now.Add(ttl)
	}
	acts := true
	if !ours {
		r.Effect = 0
		acts = t.base.rule(&r)
	}
	r.Name = url.PathEscape(proxy) + "/" + url.PathEscape(t.name)
	r.When.Link = []string{proxy}
	if r.Effect.OnBytes() && r.Effect != inject.EffectLag { // which has its own
		r.Stacks = true
		r.When.Direction = inject.OnlyToClient
		if i, _ := streamOf(t.stream); i == upstream {
			r.When.Direction = inject.OnlyToServer
		}
		if !r.When.Content() && t.more["match"] == nil {
			r.When.Monitors = true // a toxic is on all that passes
		}
	}
	if t.toxicity < 1 {
		r.Limit.Probability = max(float64(t.toxicity), 0)
	}
	if t.rule = nil; acts && t.toxicity > 0 {
		if err := r.Check(); err != nil {
			return bad("%v", err)
		}
		t.rule = &r
	}
	return nil
}

// MarshalJSON has the keys in Toxiproxy's order.
func (t *toxic) MarshalJSON() ([]byte, error) {
	attributes, err := t.attributes()
	if err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		Attributes json.RawMessage `json:"attributes"`
		Name       string          `json:"name"`
		Type       string          `json:"type"`
		Stream     string          `json:"stream"`
		Toxicity   float32         `json:"toxicity"`
	}{attributes, t.name, t.kind, t.stream, t.toxicity})
}

// attributes are all of the type, and those beyond it that were given.
func (t *toxic) attributes() ([]byte, error) {
	text, err := json.Marshal(t.base)
	if err != nil || len(t.more) == 0 {
		return text, err
	}
	more, err := json.Marshal(t.more)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(text, []byte("{}")) {
		return more, nil
	}
	return append(append(text[:len(text)-1], ','), more[1:]...), nil
}

// find is the toxic of a name, and where it stands.
func (c *chain) find(name string) (t *toxic, stream, i int) {
	for stream := range c {
		for i, t := range c[stream] {
			if t.name == name {
				return t, stream, i
			}
		}
	}
	return nil, 0, 0
}

// all are never nil: an empty list is shown as one.
func (c *chain) all() []*toxic {
	if c == nil {
		return []*toxic{}
	}
	return append(append([]*toxic{}, c[upstream]...), c[downstream]...)
}
