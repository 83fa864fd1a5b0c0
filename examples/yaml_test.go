package examples_test

import (
	"fmt"
	"strings"
	"testing"
)

// yamlNode is a value of a YAML file: string, []any or map[string]any. All
// scalars are strings, as nothing here needs to know more.
type yamlNode = any

// readYAML reads the part of YAML that the examples keep to, so that no parser
// is needed for their sake: block maps and lists, flow lists of scalars on one
// line, plain and double-quoted scalars, comments. Anything else is an error
// with its line, and so is all that a person misreads: tabs, a key twice, a
// plain scalar that YAML would take for something other than it looks like.
func readYAML(text string) (yamlNode, error) {
	r := &yamlReader{}
	for i, line := range strings.Split(text, "\n") {
		content := strings.TrimRight(withoutComment(line), " ")
		body := strings.TrimLeft(content, " ")
		if strings.ContainsRune(content, '\t') {
			return nil, fmt.Errorf("line %d: a tab", i+1)
		}
		if body != "" {
			r.lines = append(r.lines, yamlLine{i + 1, len(content) - len(body), body})
		}
	}
	node, err := r.block(0)
	if err == nil && len(r.lines) > 0 {
		err = fmt.Errorf("line %d: indented by %d, which fits nothing above", r.lines[0].number, r.lines[0].indent)
	}
	return node, err
}

type yamlLine struct {
	number, indent int
	body           string
}

type yamlReader struct{ lines []yamlLine }

// withoutComment cuts a comment: a # at the beginning or after a space,
// outside double quotes.
func withoutComment(line string) string {
	quoted := false
	for i := range len(line) {
		switch {
		case line[i] == '"':
			quoted = !quoted
		case line[i] == '#' && !quoted && (i == 0 || line[i-1] == ' '):
			return line[:i]
		}
	}
	return line
}

// block reads the map or list whose lines are indented by exactly indent.
func (r *yamlReader) block(indent int) (yamlNode, error) {
	if len(r.lines) == 0 || r.lines[0].indent != indent {
		return nil, fmt.Errorf("a value is missing before line %d", r.number())
	}
	if isItem(r.lines[0].body) {
		return r.list(indent)
	}
	return r.mapping(indent)
}

func (r *yamlReader) number() int {
	if len(r.lines) == 0 {
		return -1
	}
	return r.lines[0].number
}

func isItem(body string) bool { return strings.HasPrefix(body, "- ") }

func (r *yamlReader) list(indent int) (yamlNode, error) {
	var list []any
	for len(r.lines) > 0 && r.lines[0].indent == indent && isItem(r.lines[0].body) {
		line := &r.lines[0]
		rest := strings.TrimLeft(line.body[2:], " ")
		var item yamlNode
		var err error
		if _, _, isMap := cutKey(rest); isMap {
			// The item is a map that begins on this line.
			line.indent, line.body = indent+len(line.body)-len(rest), rest
			item, err = r.block(line.indent)
		} else {
			item, err = scalar(rest, line.number)
			r.lines = r.lines[1:]
		}
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	return list, nil
}

func (r *yamlReader) mapping(indent int) (yamlNode, error) {
	m := map[string]any{}
	for len(r.lines) > 0 && r.lines[0].indent == indent {
		line := r.lines[0]
		key, rest, ok := cutKey(line.body)
		if !ok {
			return nil, fmt.Errorf("line %d: %q has no key", line.number, line.body)
		}
		if _, twice := m[key]; twice {
			return nil, fmt.Errorf("line %d: %s again", line.number, key)
		}
		r.lines = r.lines[1:]
		var err error
		if rest != "" {
			m[key], err = scalar(rest, line.number)
		} else if len(r.lines) > 0 && r.lines[0].indent > indent {
			m[key], err = r.block(r.lines[0].indent)
		} else {
			err = fmt.Errorf("line %d: %s has no value", line.number, key)
		}
		if err != nil {
			return nil, err
		}
	}
	return m, nil
}

// cutKey cuts "key: rest" or "key:"; keys are plain.
func cutKey(body string) (key, rest string, ok bool) {
	if key, ok = strings.CutSuffix(body, ":"); ok {
		rest = ""
	} else if key, rest, ok = strings.Cut(body, ": "); !ok {
		return "", "", false
	}
	return key, strings.TrimLeft(rest, " "), !strings.ContainsAny(key, "\"'[]{}, ")
}

func scalar(s string, line int) (yamlNode, error) {
	if inner, ok := strings.CutPrefix(s, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		if !ok {
			return nil, fmt.Errorf("line %d: the list doesn't end", line)
		}
		return flowList(inner, line)
	}
	if inner, ok := strings.CutPrefix(s, `"`); ok {
		inner, ok = strings.CutSuffix(inner, `"`)
		if !ok || strings.ContainsAny(inner, `"\`) {
			return nil, fmt.Errorf("line %d: %s: a quoted scalar without \\ and \" inside is meant here", line, s)
		}
		return inner, nil
	}
	if strings.ContainsAny(s[:1], "'{}&*!|>%@`,?") || strings.Contains(s, ": ") || strings.HasSuffix(s, ":") {
		return nil, fmt.Errorf("line %d: quote %s", line, s)
	}
	return s, nil
}

// flowList reads what stands between [ and ]. A comma inside quotes is no
// separator.
func flowList(s string, line int) (yamlNode, error) {
	var list []any
	for s != "" {
		item, quoted := "", false
		end := strings.IndexFunc(s, func(c rune) bool {
			quoted = quoted != (c == '"')
			return c == ',' && !quoted
		})
		if item = s; end >= 0 {
			item, s = s[:end], s[end+1:]
		} else {
			s = ""
		}
		item = strings.TrimSpace(item)
		if item == "" || item[0] == '[' {
			return nil, fmt.Errorf("line %d: a list of scalars is meant here", line)
		}
		value, err := scalar(item, line)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	return list, nil
}

func TestReadYAML(t *testing.T) {
	const text = "# c\na: 1 # c\nb:\n  - x\n  - k: \"v # : ,\"\n    l: [p, \"q, r\", s]\nc:\n  d: http://h:1\n"
	got, err := readYAML(text)
	want := `map[a:1 b:[x map[k:v # : , l:[p q, r s]]] c:map[d:http://h:1]]`
	if err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v; want %s", got, err, want)
	}
	for _, bad := range []string{
		"", "a", "a:", "a: 1\na: 2", "a:\n\tb: 1", "a: 1\n  b: 2", "a:\n  - b\n c", "a: 'b'", "a: {b: c}", "a: |\n  b",
		"a: b: c", "a: [b", "a: [b, [c]]", `a: "b`, `a: "b\n"`, "a: *b", "- a\nb: c", "a:\n    b: 1\n  c: 2",
	} {
		if got, err := readYAML(bad); err == nil {
			t.Errorf("%q gives %v, want an error", bad, got)
		}
	}
}
