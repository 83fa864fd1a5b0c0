package mongo

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/internal/testenv"
	"github.com/wirewait/wirewait/wire"
)

// row is a message of a capture's list. What is said of it may be cut, so that is
// searched and not parsed.
type row struct{ testenv.Message }

func (r row) field(name string) (string, bool) {
	m := regexp.MustCompile(`"` + regexp.QuoteMeta(name) + `": ("([^"]*)"|\{[^{}]*\}|[^,}\]]+)`).FindStringSubmatch(r.JSON)
	if m == nil {
		return "", false
	}
	if m[2] != "" {
		return m[2], true
	}
	return strings.TrimSpace(m[1]), true
}

func (r row) number(name string) (int, bool) {
	s, ok := r.field(name)
	f, err := strconv.ParseFloat(s, 64)
	return int(f), ok && err == nil
}

func rows(t *testing.T, stream string) (all []row) {
	t.Helper()
	for _, m := range testenv.Messages(t, stream) {
		if m.Kind != "" {
			all = append(all, row{m})
		}
	}
	return all
}

// isMongo reports whether the rows are of MongoDB messages.
func isMongo(all []row) bool { return len(all) > 0 && strings.HasPrefix(all[0].Kind, "OP_") }

// TestCaptures_EveryMessage decodes each recorded message by itself and
// compares it with what the list says of it.
func TestCaptures_EveryMessage(t *testing.T) {
	lists, err := filepath.Glob(filepath.Join(testenv.Captures(t), "*", "*.msgs.tsv"))
	if err != nil || len(lists) == 0 {
		t.Fatalf("no lists of messages: %v", err)
	}
	requests, replies := 0, 0
	for _, list := range lists {
		file := strings.TrimSuffix(list, ".msgs.tsv") + ".bin"
		all := rows(t, file)
		if !isMongo(all) {
			continue
		}
		stream, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			if !strings.HasPrefix(r.Kind, "OP_") {
				continue // not a message: framing ends there
			}
			isReply := strings.Contains(list, ".s2c.") || strings.Contains(r.JSON, "reply_keys")
			m := stream[r.Offset : r.Offset+r.Length]
			if isReply {
				replies++
				compareReply(t, list, r, m)
			} else {
				requests++
				compareRequest(t, list, r, m)
			}
		}
	}
	if requests < 250 || replies < 100 {
		t.Errorf("only %d requests and %d replies", requests, replies)
	}
}

func compareRequest(t *testing.T, list string, r row, m []byte) {
	t.Helper()
	x, troubles := exchange(t, m, nil)
	where := filepath.Base(list) + " at " + strconv.Itoa(r.Offset) + ": "
	if _, bad := r.field("error"); bad != (len(troubles) > 0) {
		t.Errorf("%sthe list says error=%v, we say %v: %s", where, bad, troubles, r.JSON)
	}
	if cmd, ok := r.field("cmd"); ok {
		if cmd == "(query)" {
			cmd = "OP_QUERY"
		}
		if x.Operation != cmd {
			t.Errorf("%soperation %q, want %q", where, x.Operation, cmd)
		}
	}
	if db, ok := r.field("db"); ok && x.Database != db {
		t.Errorf("%sdatabase %q, want %q", where, x.Database, db)
	}
	if ns, ok := r.field("ns"); ok {
		if db, _, _ := strings.Cut(ns, "."); x.Database != db {
			t.Errorf("%sdatabase %q of namespace %q", where, x.Database, ns)
		}
	}
	if id, ok := r.number("id"); ok && int(x.Mongo.RequestID) != id {
		t.Errorf("%srequest id %d, want %d", where, x.Mongo.RequestID, id)
	}
	if n, ok := r.number("txnNumber"); ok != x.Mongo.HasTxnNumber && !cutShort(r) || int(x.Mongo.TxnNumber) != n && ok {
		t.Errorf("%stxnNumber %d, want %d", where, x.Mongo.TxnNumber, n)
	}
	if _, ok := r.field("lsid"); ok && len(x.Mongo.LSID) != 32 {
		t.Errorf("%slsid %q", where, x.Mongo.LSID)
	}
	if name, _ := r.field("compressor"); x.Compressor != name {
		t.Errorf("%scompressor %q, want %q", where, x.Compressor, name)
	}
	if wc, ok := r.field("writeConcern"); ok || !cutShort(r) {
		if got := concernJSON(t, x); !sameJSON(got, wc) {
			t.Errorf("%swrite concern %s, want %s", where, got, wc)
		}
	}
	if _, ok := r.field("moreToCome"); x.Mongo.OpCode == opMsg && ok != x.NoReply && !cutShort(r) {
		t.Errorf("%sno reply: %v, want %v", where, x.NoReply, ok)
	}
	if n := regexp.MustCompile(`"(?:documents|updates|deletes)\[(\d+)\]"`).FindStringSubmatch(r.JSON); n != nil {
		if strconv.Itoa(x.Batch) != n[1] {
			t.Errorf("%sbatch %d, want %s", where, x.Batch, n[1])
		}
	}
}

func cutShort(r row) bool { return !strings.HasSuffix(r.JSON, "}") }

func compareReply(t *testing.T, list string, r row, m []byte) {
	t.Helper()
	x, troubles := exchange(t, nil, m)
	where := filepath.Base(list) + " at " + strconv.Itoa(r.Offset) + ": "
	_, flagged := r.field("unknown_required_flags")
	if flagged != (len(troubles) > 0) {
		t.Errorf("%swe say %v: %s", where, troubles, r.JSON)
	}
	if ok, given := r.number("ok"); given && x.OK != (ok == 1) {
		t.Errorf("%sok %v, want %d", where, x.OK, ok)
	}
	if code, given := r.field("code"); x.ErrorCode != code && (given || x.Mongo.WriteErrors == 0) {
		t.Errorf("%scode %q, want %q", where, x.ErrorCode, code)
	}
	if n, _ := r.number("writeErrors"); x.Mongo.WriteErrors != n && !cutShort(r) {
		t.Errorf("%swrite errors %d, want %d", where, x.Mongo.WriteErrors, n)
	}
	if name, _ := r.field("compressor"); x.Compressor != name {
		t.Errorf("%scompressor %q, want %q", where, x.Compressor, name)
	}
	if _, more := r.field("moreToCome"); x.Mongo.Exhaust != more && !cutShort(r) {
		t.Errorf("%smore to come: %v, want %v", where, x.Mongo.Exhaust, more)
	}
	if !x.Answered {
		t.Errorf("%snot answered", where)
	}
}

func concernJSON(t *testing.T, x wire.Exchange) string {
	t.Helper()
	if len(x.Mongo.WriteConcern.Raw) == 0 {
		return ""
	}
	b, err := bson.MarshalExtJSON(bson.Raw(x.Mongo.WriteConcern.Raw), false, false)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func sameJSON(a, b string) bool {
	if a == "" || b == "" {
		return a == b
	}
	var x, y map[string]any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && maps.Equal(x, y)
}

// TestCaptures_EveryStream decodes both streams of each recorded connection,
// in several cuts, and compares the whole with the capture's index.
func TestCaptures_EveryStream(t *testing.T) {
	dir := testenv.Captures(t)
	indexes, err := filepath.Glob(filepath.Join(dir, "*", "*.index.json"))
	if err != nil || len(indexes) == 0 {
		t.Fatalf("no indexes: %v", err)
	}
	seen := 0
	for _, file := range indexes {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var index struct {
			Connections []connectionIndex
		}
		if err := json.Unmarshal(b, &index); err != nil {
			t.Fatal(err)
		}
		for _, c := range index.Connections {
			if c.Protocol == "mongo" {
				seen++
				t.Run(c.Name, func(t *testing.T) { c.compare(t, dir) })
			}
		}
	}
	if seen < 15 {
		t.Errorf("only %d connections", seen)
	}
}

type connectionIndex struct {
	Name, Protocol string
	Commands       []string
	Opcodes        map[string]int
	WriteConcern   []map[string]any
	Compression    []string
	MoreToCome     int
	Errors         []struct {
		Code        int
		WriteErrors int
	}
	DecodeTrouble []any `json:"decode_trouble"`
}

func (c connectionIndex) compare(t *testing.T, dir string) {
	stem := filepath.Join(dir, filepath.FromSlash(c.Name))
	toServer, err := os.ReadFile(stem + ".c2s.bin")
	if err != nil {
		t.Fatal(err)
	}
	toClient, err := os.ReadFile(stem + ".s2c.bin")
	both := err == nil && len(toClient) > 0
	for _, step := range []int{1 << 20, 1460, 7} {
		h := newHarness(t, wire.Options{})
		h.cuts(wire.ToServer, toServer, func() int { return step })
		h.cuts(wire.ToClient, toClient, func() int { return step })
		all := h.end()
		if err := h.s.Opaque(); err != nil || len(h.troubles) != len(c.DecodeTrouble) {
			t.Errorf("opaque %v, troubles %v", err, h.troubles)
		}
		c.compareMessages(t, h, both)
		c.compareExchanges(t, all, both)
	}
}

func (c connectionIndex) compareMessages(t *testing.T, h *harness, both bool) {
	t.Helper()
	got := map[string]int{}
	for dir := range h.pieces {
		for _, p := range h.pieces[dir] {
			if p.Last {
				got[opName(p.Kind)]++
			}
		}
	}
	for op, n := range c.Opcodes {
		// Without the server's bytes its share is not known.
		if both && got[op] != n || got[op] > n {
			t.Errorf("%d messages of %s, want %d", got[op], op, n)
		}
	}
}

func (c connectionIndex) compareExchanges(t *testing.T, all []wire.Exchange, both bool) {
	t.Helper()
	commands, concerns, compression := map[string]bool{}, map[string]bool{}, map[string]bool{}
	unanswered, errs := 0, 0
	for _, x := range all {
		switch {
		case x.Operation == "OP_QUERY":
			commands["(query)"] = true
		case x.Operation != "" && !strings.HasPrefix(x.Operation, "OP_"):
			commands[x.Operation] = true
		}
		if s := concernJSON(t, x); s != "" {
			concerns[canonical(t, []byte(s))] = true
		}
		if x.Compressor != "" {
			compression[x.Compressor] = true
		}
		if x.NoReply && x.Mongo.OpCode == opMsg {
			unanswered++
		}
		if x.Answered && (!x.OK || x.ErrorCode != "" || x.Mongo.WriteErrors > 0) {
			errs++
		}
	}
	want := map[string]bool{}
	for _, wc := range c.WriteConcern {
		b, _ := json.Marshal(wc)
		want[canonical(t, b)] = true
	}
	if !maps.Equal(concerns, want) {
		t.Errorf("write concerns %v, want %v", concerns, want)
	}
	if got := slices.Sorted(maps.Keys(commands)); !slices.Equal(got, c.Commands) {
		t.Errorf("commands %v, want %v", got, c.Commands)
	}
	if got := slices.Sorted(maps.Keys(compression)); !slices.Equal(got, c.Compression) {
		t.Errorf("compression %v, want %v", got, c.Compression)
	}
	if unanswered != c.MoreToCome {
		t.Errorf("%d requests without reply, want %d", unanswered, c.MoreToCome)
	}
	if both && errs != len(c.Errors) {
		t.Errorf("%d errors, want %d", errs, len(c.Errors))
	}
}

func canonical(t *testing.T, b []byte) string {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestCaptures_ExhaustHello reads a recorded stream in which a server answers
// one hello four times, unasked after the first.
func TestCaptures_ExhaustHello(t *testing.T) {
	stem := filepath.Join(testenv.Captures(t), "keploy-samples-go", "gin-mongo__keploy__test-set-0@2a30c624")
	h := newHarness(t, wire.Options{})
	for dir, ext := range []string{".c2s.bin", ".s2c.bin"} {
		b, err := os.ReadFile(stem + ext)
		if err != nil {
			t.Fatal(err)
		}
		h.feed(wire.Direction(dir), b)
	}
	all := h.end()
	if len(all) != 12 || len(h.troubles) > 0 {
		t.Fatalf("%d exchanges, want 12; troubles %v", len(all), h.troubles)
	}
	for _, x := range all {
		exhaust := x.Mongo.RequestID == 3
		if x.Mongo.Exhaust != exhaust || !x.Answered || !x.OK || exhaust && x.Sides[wire.ToClient].Bytes != 4*323 {
			t.Errorf("read as %s", said(x))
		}
	}
}

// TestCaptures_LegacyMessages reads libmongoc's own samples of old opcodes.
func TestCaptures_LegacyMessages(t *testing.T) {
	dir := filepath.Join(testenv.Captures(t), "mongo-c-driver", "libmongoc-binary")
	for file, want := range map[string]string{
		"insert1.dat": "OP_INSERT", "kill_cursors1.dat": "OP_KILL_CURSORS", "query1.dat": "OP_QUERY", "msg1.dat": "OP_MSG_LEGACY",
	} {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		h := newHarness(t, wire.Options{})
		h.feed(wire.ToServer, b)
		all := h.end()
		if len(all) != 1 || all[0].Operation != want || len(h.troubles) > 0 {
			t.Errorf("%s: %+v, %v, %v", file, all, h.troubles, h.s.Opaque())
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "reply1.dat"))
	if err != nil {
		t.Fatal(err)
	}
	if x, troubles := exchange(t, nil, b); !x.OK || len(troubles) > 0 {
		t.Errorf("reply1.dat: %s, %v", said(x), troubles)
	}
}
