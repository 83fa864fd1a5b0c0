package config

import (
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

type node = yaml.Node

// reader gathers what is wrong with a file while it reads.
type reader struct {
	name, dir string
	lookup    func(string) (string, bool)
	problems  Problems
	seen      map[Problem]bool
}

// document is the root of the file's one document, or nil after a problem.
func (r *reader) document(text []byte) *node {
	var docs []node
	err := yaml.Load(text, &docs, yaml.WithAllDocuments(), yaml.WithUniqueKeys(false)) // object finds those, with their place
	switch {
	case err != nil:
		r.syntax(err)
	case len(docs) == 0 || docs[0].Content == nil || isNull(docs[0].Content[0]):
		r.problems = append(r.problems, Problem{r.name, 0, 0, "the file is empty: it needs links, at least"})
	case len(docs) > 1:
		r.problem(&docs[1], "a second document begins here: wirewait reads one, so drop the --- before it")
	default:
		return docs[0].Content[0]
	}
	return nil
}

// syntaxHints say what a person did who gets one of the parser's complaints.
var syntaxHints = []struct{ complaint, hint string }{
	{"cannot start any token", "indent with spaces, not with tabs, and put values that begin with @, ` or % in quotes"},
	{"mapping values are not allowed", "either this line is indented further than the one before it, or a value with a colon and a space needs quotes"},
	{"did not find expected ',' or '}'", `a bracket is missing, or a value with {, } or , in it needs quotes: "${NAME}"`},
	{"did not find expected ',' or ']'", "a ] or a comma is missing"},
	{"unexpected end of stream", "a quote is opened and never closed"},
	{"did not find expected node content", "a bracket is opened and never closed, or a comma stands before nothing"},
	{"did not find expected '-'", "this line is indented like a list's items and isn't one: begin it with -, or indent it as its object is"},
	{"did not find expected key", "this line is indented neither like the keys above it nor like what belongs to them"},
	{"could not find expected ':'", "a key without a colon: write key: value"},
	{"unknown anchor", "there is no &name of that name above; a value that begins with * needs quotes"},
	{"UTF-8", "save the file as UTF-8"},
	{"control characters", "the file isn't text: is it the right one?"},
}

func (r *reader) syntax(err error) {
	p := Problem{File: r.name, Text: "not YAML: " + err.Error()}
	if e := (*yaml.LoadError)(nil); errors.As(err, &e) {
		p.Line, p.Column = e.Mark.Line, e.Mark.Column
		p.Text = "not YAML: " + e.Message
		if strings.Contains(e.Message, "end of stream") { // where it was opened says more
			p.Line, p.Column = e.ContextMark.Line, e.ContextMark.Column
		}
	}
	for _, h := range syntaxHints {
		if strings.Contains(p.Text, h.complaint) {
			p.Text += ": " + h.hint
			break
		}
	}
	r.problems = append(r.problems, p)
}

// follow leads from an alias (*name) to what it stands for. Depth is bounded by
// what the file's objects are, so that a cycle of aliases ends as a problem.
func follow(n *node) *node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func isNull(n *node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// describe says what a node is, for a problem.
func describe(n *node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "an object"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "nothing"
	}
	return quote(n)
}

// object is a mapping whose keys were checked.
type object struct {
	node   *node
	keys   []*node          // in the order of the file
	values map[string]*node // nil: a key without a value, which was said
}

// get is the value of a key, or nil.
func (o *object) get(key string) *node { return o.values[key] }

// lacks reports whether none of keys stands there, with or without a value.
func (o *object) lacks(keys ...string) bool {
	return !slices.ContainsFunc(keys, func(k string) bool { _, ok := o.values[k]; return ok })
}

// mapping reads an object with any keys. what it is stands in problems.
func (r *reader) mapping(n *node, what string) (object, bool) {
	at := n
	if n = follow(n); n.Kind != yaml.MappingNode {
		r.problem(at, "%s is %s: write keys and values, such as {key: value}", what, describe(n))
		return object{}, false
	}
	o := object{node: at, values: map[string]*node{}}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		switch {
		case k.Kind != yaml.ScalarNode:
			r.problem(k, "a key is a word, not %s", describe(k))
		case k.Value == "<<":
			r.problem(k, "<< isn't read here: write the keys out")
		case !o.lacks(k.Value):
			r.problem(k, "%q is given twice: leave one out", k.Value)
		default:
			o.keys, o.values[k.Value] = append(o.keys, k), v
		}
	}
	return o, true
}

// object reads one that has a known set of keys.
func (r *reader) object(n *node, keys keySet) (object, bool) {
	o, ok := r.mapping(n, keys.what)
	for _, k := range o.keys {
		hint, later := keys.later[k.Value]
		switch {
		case slices.Contains(keys.known, k.Value):
			if isNull(follow(o.values[k.Value])) {
				r.problem(k, "%s has no value: give it one, or leave it out", k.Value)
				o.values[k.Value] = nil
			}
		case later && hint != "":
			r.problem(k, "%s is not supported yet: leave it out; %s", k.Value, hint)
		case later:
			r.problem(k, "%s is not supported yet: leave it out", k.Value)
		default:
			r.unknownKey(&o, k, keys)
		}
	}
	return o, ok
}

// unknownKey names the key that was probably meant, or all that there are. The
// value is read as that key's, so that its lack is no further problem.
func (r *reader) unknownKey(o *object, k *node, keys keySet) {
	meant := nearest(k.Value, keys.known)
	if meant == "" {
		r.problem(k, "%s has no key %q: use %s", keys.what, k.Value, list(keys.known))
		return
	}
	r.problem(k, "%s has no key %q: did you mean %s?", keys.what, k.Value, meant)
	if o.lacks(meant) {
		o.values[meant] = o.values[k.Value]
	}
}

// items are a list's.
func (r *reader) items(n *node, what string) ([]*node, bool) {
	at := n
	if n = follow(n); n.Kind != yaml.SequenceNode {
		r.problem(at, "%s is %s: write a list, each item behind a dash", what, describe(n))
		return nil, false
	}
	return n.Content, true
}
