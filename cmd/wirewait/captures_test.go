package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/wirewait/wirewait/internal/testenv"
)

// message is one of a list that another program made of recorded traffic.
type message struct {
	kind                 string
	offset               int
	ID                   *int64
	Cmd, DB, NS          string
	Compressor           string
	MoreToCome           bool
	WriteConcern         map[string]any
	Tag                  string
	Fields               struct{ C string }
	Error                string
	Incomplete           int
	Inner                *message
	truncated, notFramed bool
}

func readMessages(t *testing.T, stream string) (list []message) {
	t.Helper()
	for _, row := range testenv.Messages(t, stream) {
		m := message{kind: row.Kind, offset: row.Offset}
		// Some objects are cut short where they were written.
		m.truncated = json.Unmarshal([]byte(row.JSON), &m) != nil
		m.notFramed = m.kind == "" || m.kind == "TLS" || m.Incomplete > 0 ||
			m.Error == "unknown type or bad length" || m.Error == "bad header" || m.Error == "not a startup packet"
		list = append(list, m)
	}
	return list
}

// capture is one connection: its streams' files, "" if there is none.
type capture struct {
	name     string
	protocol string
	files    [2]string
	messages [2][]message
	startup  bool // it has PostgreSQL's start-up
}

func allCaptures(t *testing.T) (all []capture) {
	t.Helper()
	dir := testenv.Captures(t)
	names := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		for _, end := range []string{".c2s.bin", ".s2c.bin"} {
			if name, ok := strings.CutSuffix(path, end); ok {
				names[name] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range slices.Sorted(maps.Keys(names)) {
		c := capture{protocol: "postgres"}
		c.name, _ = filepath.Rel(dir, path)
		for i, end := range []string{".c2s.bin", ".s2c.bin"} {
			if _, err := os.Stat(path + end); err == nil {
				c.files[i] = path + end
				c.messages[i] = readMessages(t, path+end)
			}
		}
		for _, m := range slices.Concat(c.messages[0], c.messages[1]) {
			if strings.HasPrefix(m.kind, "OP_") {
				c.protocol = "mongodb"
			}
			c.startup = c.startup || m.kind == "StartupMessage"
		}
		all = append(all, c)
	}
	if len(all) < 70 {
		t.Fatalf("only %d captures in %s", len(all), dir)
	}
	return all
}

// line is one line of decode's output, as anybody would read it.
type line struct {
	Protocol, Operation, Database, Collection, Statement, Compressor string
	WriteConcern                                                     map[string]any `json:"write_concern"`
	OK                                                               *bool
	ErrorCode                                                        any `json:"error_code"`
	Reply                                                            any
	BytesToServer                                                    int64 `json:"bytes_to_server"`
	BytesToClient                                                    int64 `json:"bytes_to_client"`
	Summary                                                          *summary
	has                                                              map[string]any // its keys
}

// decodeLines runs decode and parses what it prints.
func decodeLines(t *testing.T, args ...string) ([]line, summary) {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(t.Context(), append([]string{"wirewait", "decode"}, args...), strings.NewReader(""), &out, &errs); code != 0 {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	var lines []line
	for s := bufio.NewScanner(&out); s.Scan(); {
		var l line
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			t.Fatalf("%v in %s", err, s.Text())
		}
		if err := json.Unmarshal(s.Bytes(), &l.has); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	if len(lines) == 0 || lines[len(lines)-1].Summary == nil {
		t.Fatalf("no summary at the end of %d lines", len(lines))
	}
	last := lines[len(lines)-1]
	return lines[:len(lines)-1], *last.Summary
}

func (c capture) decode(t *testing.T) ([]line, summary) {
	t.Helper()
	args := []string{"--protocol", c.protocol, "--text"}
	for i, flag := range []string{"--to-server", "--to-client"} {
		if c.files[i] != "" {
			args = append(args, flag, c.files[i])
		}
	}
	return decodeLines(t, args...)
}

func TestDecode_CapturesAsListed(t *testing.T) {
	for _, c := range allCaptures(t) {
		t.Run(c.name, func(t *testing.T) {
			lines, sum := c.decode(t)
			if sum.Exchanges != len(lines) {
				t.Errorf("%d exchanges in the summary, %d lines", sum.Exchanges, len(lines))
			}
			got := [2]int{sum.MessagesToServer, sum.MessagesToClient}
			for i := range got {
				if want := framed(c.messages[i]); got[i] != want {
					t.Errorf("%d messages %s, the list has %d", got[i], []string{"to server", "to client"}[i], want)
				}
			}
			c.checkBytes(t, lines, sum)
			if c.protocol == "mongodb" {
				c.checkMongo(t, lines)
			} else {
				c.checkPostgres(t, lines)
			}
		})
	}
}

func framed(list []message) (n int) {
	for _, m := range list {
		if !m.notFramed {
			n++
		}
	}
	return n
}

// checkBytes asserts that no byte is counted twice.
func (c capture) checkBytes(t *testing.T, lines []line, sum summary) {
	t.Helper()
	var all, counted int64
	for _, f := range c.files {
		if fi, err := os.Stat(f); err == nil {
			all += fi.Size()
		}
	}
	for _, l := range lines {
		counted += l.BytesToServer + l.BytesToClient
	}
	if counted > all || sum.TrailingBytes > all {
		t.Errorf("%d bytes in exchanges, %d trailing, of %d", counted, sum.TrailingBytes, all)
	}
	if c.protocol == "mongodb" && counted+sum.TrailingBytes != all {
		t.Errorf("%d bytes in exchanges and %d trailing are not the %d that there are", counted, sum.TrailingBytes, all)
	}
}

// checkMongo compares requests with lines: both are in the same order.
func (c capture) checkMongo(t *testing.T, lines []line) {
	t.Helper()
	answered := c.answered(t)
	requests := slices.DeleteFunc(slices.Clone(c.messages[0]), func(m message) bool { return m.notFramed })
	if len(lines) < len(requests) {
		t.Fatalf("%d exchanges for %d requests", len(lines), len(requests))
	}
	for i, m := range requests {
		if m.truncated || m.ID == nil {
			continue
		}
		l, want := lines[i], m.expected()
		// Several connections are joined in one stream there, so that ids repeat.
		if strings.HasPrefix(c.name, "keploy") {
			want.Reply = l.Reply
		} else if want.Reply == nil {
			want.Reply = answered[*m.ID]
		}
		got := mongoLine{l.Operation, l.Database, l.WriteConcern, l.Compressor, nil}
		if got.Reply = l.OK != nil; l.Reply != nil {
			got.Reply = "none expected"
		}
		if strings.HasPrefix(c.name, "keploy") {
			got.Reply = l.Reply
		}
		if want.Compressor == "" {
			got.Compressor = "" // it may be the reply's
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("request %d: %+v, the list says %+v", i, got, want)
		}
	}
}

// answered are the responseTo of all replies, from their headers: the lists cut
// long objects short.
func (c capture) answered(t *testing.T) map[int64]bool {
	t.Helper()
	set := map[int64]bool{}
	if c.files[1] == "" {
		return set
	}
	b, err := os.ReadFile(c.files[1])
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range c.messages[1] {
		if !m.notFramed {
			set[int64(int32(binary.LittleEndian.Uint32(b[m.offset+8:])))] = true
		}
	}
	return set
}

// mongoLine is what a list knows of a request. Reply: true, false, or "none
// expected".
type mongoLine struct {
	Operation, Database string
	WriteConcern        map[string]any
	Compressor          string
	Reply               any
}

func (m message) expected() mongoLine {
	inner, kind := m, m.kind
	if m.Inner != nil {
		inner, kind = *m.Inner, "OP_MSG"
	}
	want := mongoLine{Operation: inner.Cmd, Database: inner.DB, WriteConcern: inner.WriteConcern, Compressor: m.Compressor}
	if want.Database == "" {
		want.Database, _, _ = strings.Cut(inner.NS, ".")
	}
	if want.Operation == "" || want.Operation == "(query)" {
		want.Operation = kind
	}
	switch kind {
	case "OP_INSERT", "OP_UPDATE", "OP_DELETE", "OP_KILL_CURSORS":
		want.Reply = "none expected"
	}
	if inner.MoreToCome {
		want.Reply = "none expected"
	}
	return want
}

// checkPostgres compares results with lines that have one: both are in the
// order of the server's messages.
func (c capture) checkPostgres(t *testing.T, lines []line) {
	t.Helper()
	if strings.HasPrefix(c.name, "keploy") {
		return // its recorder left out the server's part of the start-up
	}
	var got []string
	for _, l := range lines {
		switch {
		case l.OK == nil:
		case l.ErrorCode != nil:
			got = append(got, fmt.Sprint("error ", l.ErrorCode))
		default:
			got = append(got, strings.TrimSpace("ok "+l.Operation))
		}
	}
	want := c.results()
	if len(got) != len(want) {
		t.Fatalf("results\n%q, the list has\n%q", got, want)
	}
	for i := range want {
		if got[i] != want[i] && want[i] != "ok" {
			t.Errorf("result %d is %q, the list says %q", i, got[i], want[i])
		}
	}
}

func (c capture) results() (list []string) {
	starting := c.startup
	for _, m := range c.messages[1] {
		if m.notFramed {
			break
		}
		switch m.kind {
		case "CommandComplete":
			words := slices.DeleteFunc(strings.Fields(m.Tag), func(w string) bool { return strings.Trim(w, "0123456789") == "" })
			list = append(list, strings.TrimSpace("ok "+strings.Join(words, " ")))
		case "EmptyQueryResponse", "PortalSuspended":
			list = append(list, "ok")
		case "ErrorResponse":
			list = append(list, "error "+m.Fields.C)
			starting = false
		case "ReadyForQuery":
			if starting {
				list = append(list, "ok startup")
			}
			starting = false
		}
	}
	return list
}
