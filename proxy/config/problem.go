package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a file.
type Problem struct {
	File string
	// Line and Column count from 1, Column in characters. Both are 0 where the
	// file as a whole is meant.
	Line, Column int
	// Text says what is wrong and what to write instead.
	Text string
}

// String is "wirewait.yaml:12:5: ...", which editors find the place by.
func (p Problem) String() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s", p.File, p.Text)
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Text)
}

// Problems are all that is wrong with a file, in the order of its lines.
type Problems []Problem

// Error has a line for each.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// problem notes that something is wrong at n. What was noted before is left
// out: the links of a mesh share their keys.
func (r *reader) problem(n *node, format string, args ...any) {
	p := Problem{r.name, n.Line, n.Column, fmt.Sprintf(format, args...)}
	if r.seen[p] {
		return
	}
	if r.seen == nil {
		r.seen = map[Problem]bool{}
	}
	r.seen[p] = true
	r.problems = append(r.problems, p)
}

// err is nil or the Problems, sorted.
func (r *reader) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(r.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return r.problems
}

// nearest is the one of words that is so near to word that it was probably
// meant, or empty.
func nearest(word string, words []string) (best string) {
	distance := max(1, len(word)/3) + 1
	for _, w := range words {
		if d := edits(strings.ToLower(word), strings.ToLower(w)); d < min(distance, len(w)) {
			best, distance = w, d
		}
	}
	return best
}

// guess is ": did you mean ...?", or empty.
func guess(word string, words []string) string {
	if w := nearest(word, words); w != "" {
		return fmt.Sprintf(": did you mean %s?", w)
	}
	return ""
}

// edits is how many letters must be put in, left out or replaced to make b of a.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// list is "a, b or c".
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
