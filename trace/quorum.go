package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// StandbyNames is PostgreSQL's synchronous_standby_names, as a Rule:
//
//	ANY 2 (a, b, c)      any two of them
//	FIRST 2 (a, b, c)    the two that come first in the list, of those that are there
//	2 (a, b, c)          the same
//	a, b                 FIRST 1 (a, b)
//	*                    any name; it stands where it stands in the list
//	"a b"                a name with other characters, or the word any
//
// (src/backend/replication/syncrep_gram.y, syncrep_scanner.l). Names are
// compared without regard to the case of ASCII letters (SyncRepGetStandbyPriority
// in syncrep.c).
type StandbyNames struct {
	Any   bool // ANY, not FIRST
	Count int
	Names []string // "*" is any name
}

// ParseStandbyNames reads a value of the setting. Empty: nobody is waited for.
func ParseStandbyNames(value string) (*StandbyNames, error) {
	p := namesParser{rest: value}
	n, err := p.parse()
	if err != nil {
		return nil, fmt.Errorf("synchronous_standby_names %q: %w: write it as PostgreSQL has it, such as ANY 1 (s1, s2)", value, err)
	}
	return n, nil
}

// Choose implements Rule.
func (n *StandbyNames) Choose(there []string, chosen []int) ([]int, int) {
	if len(n.Names) == 0 {
		return chosen, NobodyNeeded
	}
	for i, name := range there {
		if n.priority(name) > 0 {
			chosen = append(chosen, i)
		}
	}
	if n.Any || len(chosen) <= n.Count {
		return chosen, n.Count
	}
	rank := func(i int) int { return n.priority(there[i]) }
	slices.SortStableFunc(chosen, func(a, b int) int { return cmp.Compare(rank(a), rank(b)) })
	if rank(chosen[n.Count-1]) == rank(chosen[n.Count]) {
		// The server takes the one in the lower slot of its shared memory, which
		// nobody else knows.
		return chosen, CannotTell
	}
	return chosen[:n.Count], n.Count
}

// priority is a name's place in the list, from 1; 0: it isn't in it.
func (n *StandbyNames) priority(name string) int {
	for i, listed := range n.Names {
		if listed == "*" || equalFoldASCII(listed, name) {
			return i + 1
		}
	}
	return 0
}

func equalFoldASCII(a, b string) bool {
	return len(a) == len(b) && strings.EqualFold(a, b)
}

// namesParser takes the value apart from the left.
type namesParser struct{ rest string }

// The kinds of tokens. A punctuation mark is its own.
const (
	tokenEnd    = 0
	tokenName   = 'n'
	tokenQuoted = 'q'
	tokenNumber = '0'
)

func (p *namesParser) next() (kind byte, text string, err error) {
	p.rest = strings.TrimLeft(p.rest, " \t\n\r\f\v")
	if p.rest == "" {
		return tokenEnd, "", nil
	}
	switch c := p.rest[0]; {
	case c == ',' || c == '(' || c == ')':
		p.rest = p.rest[1:]
		return c, string(c), nil
	case c == '*':
		p.rest = p.rest[1:]
		return tokenQuoted, "*", nil
	case c == '"':
		text, err = p.quoted()
		return tokenQuoted, text, err
	case c >= '0' && c <= '9':
		return tokenNumber, p.take(func(c byte) bool { return c >= '0' && c <= '9' }), nil
	case identifier(c):
		return tokenName, p.take(func(c byte) bool { return identifier(c) || c >= '0' && c <= '9' || c == '$' }), nil
	}
	return tokenEnd, "", fmt.Errorf("%q can't stand there", p.rest[:1])
}

func identifier(c byte) bool {
	return c == '_' || c >= 0x80 || c|0x20 >= 'a' && c|0x20 <= 'z'
}

func (p *namesParser) take(ok func(byte) bool) string {
	n := 0
	for n < len(p.rest) && ok(p.rest[n]) {
		n++
	}
	text := p.rest[:n]
	p.rest = p.rest[n:]
	return text
}

// quoted reads a name in double quotes, of which two in a row stand for one.
func (p *namesParser) quoted() (string, error) {
	var name strings.Builder
	for rest := p.rest[1:]; ; {
		part, after, ok := strings.Cut(rest, `"`)
		if !ok {
			return "", fmt.Errorf("a quote is not closed")
		}
		name.WriteString(part)
		if !strings.HasPrefix(after, `"`) {
			p.rest = after
			return name.String(), nil
		}
		name.WriteByte('"')
		rest = after[1:]
	}
}

func (p *namesParser) parse() (*StandbyNames, error) {
	n := &StandbyNames{Count: 1}
	kind, text, err := p.next()
	if err != nil || kind == tokenEnd {
		return n, err
	}
	if kind == tokenName && (strings.EqualFold(text, "any") || strings.EqualFold(text, "first")) {
		n.Any = strings.EqualFold(text, "any")
		if kind, text, err = p.next(); err != nil {
			return nil, err
		}
		if kind != tokenNumber {
			return nil, fmt.Errorf("a number must follow ANY and FIRST")
		}
		return n, p.parenthesised(n, text)
	}
	if kind == tokenNumber && strings.HasPrefix(strings.TrimLeft(p.rest, " \t\n\r\f\v"), "(") {
		return n, p.parenthesised(n, text)
	}
	return n, p.list(n, kind, text, tokenEnd)
}

// parenthesised reads what follows a number.
func (p *namesParser) parenthesised(n *StandbyNames, count string) error {
	var err error
	if n.Count, err = strconv.Atoi(count); err != nil || n.Count <= 0 {
		return fmt.Errorf("%s is no number of standbys", count)
	}
	kind, _, err := p.next()
	if err != nil || kind != '(' {
		return cmp.Or(err, fmt.Errorf("a list in parentheses must follow %s", count))
	}
	kind, text, err := p.next()
	if err != nil {
		return err
	}
	if err := p.list(n, kind, text, ')'); err != nil {
		return err
	}
	if kind, text, err = p.next(); err != nil || kind != tokenEnd {
		return cmp.Or(err, fmt.Errorf("%q follows the list", text))
	}
	return nil
}

// list reads names up to end. The first token of it was read already.
func (p *namesParser) list(n *StandbyNames, kind byte, text string, end byte) error {
	for {
		word := kind == tokenName && (strings.EqualFold(text, "any") || strings.EqualFold(text, "first"))
		if kind != tokenName && kind != tokenQuoted && kind != tokenNumber || word {
			return fmt.Errorf("a name is missing")
		}
		n.Names = append(n.Names, text)
		var err error
		if kind, text, err = p.next(); err != nil {
			return err
		}
		if kind == end {
			return nil
		}
		if kind != ',' {
			return fmt.Errorf("a comma is missing before %q", text)
		}
		if kind, text, err = p.next(); err != nil {
			return err
		}
	}
}
