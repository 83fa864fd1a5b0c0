package postgres

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wirewait/wirewait/internal/testenv"
	"github.com/wirewait/wirewait/wire"
)

// stream is one direction of a recorded connection, and the list of its
// messages that another program made.
type stream struct {
	bytes []byte
	rows  []row
}

// row is a message of that list. trouble: the other program couldn't read it.
type row struct {
	offset, length int
	kind           string
	detail         map[string]any
	trouble        bool
}

// unit is a recorded connection; either direction may be missing.
type unit struct {
	name    string
	streams [2]*stream
}

// kinds of the other program's lists, by our pieces' kinds.
var kindNames = [2]map[string]int32{
	{
		"Query": 'Q', "Parse": 'P', "Bind": 'B', "Describe": 'D', "Execute": 'E', "Close": 'C', "Sync": 'S', "Flush": 'H',
		"Password/SASL": 'p', "CopyData": 'd', "CopyDone": 'c', "CopyFail": 'f', "Terminate": 'X',
		"StartupMessage": version30, "SSLRequest": codeSSL, "CancelRequest": codeCancel, "GSSENCRequest": codeGSS,
	},
	{
		"Authentication": 'R', "ParameterStatus": 'S', "BackendKeyData": 'K', "ReadyForQuery": 'Z', "CommandComplete": 'C',
		"RowDescription": 'T', "DataRow": 'D', "ErrorResponse": 'E', "NoticeResponse": 'N', "NotificationResponse": 'A',
		"EmptyQueryResponse": 'I', "ParseComplete": '1', "BindComplete": '2', "CloseComplete": '3', "NoData": 'n',
		"ParameterDescription": 't', "PortalSuspended": 's', "CopyInResponse": 'G', "CopyOutResponse": 'H',
		"CopyBothResponse": 'W', "CopyData": 'd', "CopyDone": 'c', "EncryptionAnswer N": 'N', "EncryptionAnswer S": 'S',
	},
}

func readStream(t testing.TB, bin string) *stream {
	t.Helper()
	b, err := os.ReadFile(bin)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	st := &stream{bytes: b}
	for _, m := range testenv.Messages(t, bin) {
		r := row{offset: m.Offset, length: m.Length, kind: m.Kind}
		_ = json.Unmarshal([]byte(m.JSON), &r.detail) // it may be cut short
		// What the other program couldn't read, but for bodies: those don't
		// matter to framing.
		why, _ := r.detail["error"].(string)
		_, cut := r.detail["incomplete"]
		r.trouble = why == "unknown type or bad length" || why == "not a startup packet" || cut || r.kind == "TLS"
		st.rows = append(st.rows, r)
	}
	return st
}

// units are all recorded PostgreSQL connections.
func units(t testing.TB) (all []unit) {
	t.Helper()
	dir := testenv.Captures(t)
	for _, pattern := range []string{"captured-pg15/*.bin", "arkime/*.bin", "beats/pg*.bin", "deepflow/*.bin",
		"keploy-samples-go/*sql*.bin", "pgx/*.bin", "pixie/pg*.bin", "suricata-verify/*.bin", "suricata-verify-pr/*.bin", "zeek/*.bin"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no captures match %s", pattern)
		}
		for _, f := range files {
			base := strings.TrimSuffix(f, ".bin")
			name := strings.TrimSuffix(strings.TrimSuffix(base, ".c2s"), ".s2c")
			rel, _ := filepath.Rel(dir, name)
			if strings.Contains(rel, "mongo") || slices.ContainsFunc(all, func(u unit) bool { return u.name == rel }) {
				continue
			}
			u := unit{name: rel}
			if base == name {
				u.streams[single(base)] = readStream(t, f)
			} else {
				u.streams[wire.ToServer] = readStream(t, name+".c2s.bin")
				u.streams[wire.ToClient] = readStream(t, name+".s2c.bin")
			}
			all = append(all, u)
		}
	}
	return all
}

// single is the direction of a single message, by its name.
func single(name string) wire.Direction {
	for _, w := range []string{"_Query", "_Parse", "_Startup", "request"} {
		if strings.HasSuffix(name, w) {
			return wire.ToServer
		}
	}
	return wire.ToClient
}

// TestCaptures_Messages wants every recorded stream cut into the messages that
// another program found in it, as far as that one could read it.
func TestCaptures_Messages(t *testing.T) {
	messages, connections := 0, 0
	for _, u := range units(t) {
		connections++
		p := newPlayer(t, wire.Options{})
		var got [2][]row
		for dir, st := range u.streams {
			if st == nil {
				continue
			}
			at := 0
			p.now += 100
			start := 0
			for _, pc := range p.frame(wire.Direction(dir), st.bytes) {
				if pc.First {
					start = at
				}
				at += pc.Len
				if pc.Last {
					got[dir] = append(got[dir], row{offset: start, length: at - start})
					if k := kindAt(wire.Direction(dir), st, start); k != "" && kindNames[dir][k] != pc.Kind {
						t.Errorf("%s %s: message at %d is %d, want %s", u.name, wire.Direction(dir), start, pc.Kind, k)
					}
				}
			}
		}
		for dir, st := range u.streams {
			if st == nil {
				continue
			}
			want, troubled := st.readable()
			messages += len(want)
			if len(got[dir]) < len(want) || !troubled && len(got[dir]) != len(want) {
				t.Errorf("%s %s: %d messages, want %d", u.name, wire.Direction(dir), len(got[dir]), len(want))
				continue
			}
			for i, w := range want {
				if got[dir][i].offset != w.offset || got[dir][i].length != w.length {
					t.Errorf("%s %s: message %d is %d bytes at %d, want %d at %d", u.name, wire.Direction(dir), i,
						got[dir][i].length, got[dir][i].offset, w.length, w.offset)
					break
				}
			}
			if troubled {
				continue
			}
			if err := p.s.Opaque(); err != nil && !u.troubled() {
				t.Errorf("%s: %v", u.name, err)
			}
		}
	}
	if connections < 45 || messages < 2_800 {
		t.Errorf("%d messages of %d connections: too few to be all", messages, connections)
	}
}

// readable are the rows before the first that the other program couldn't read,
// with their length on the wire. Encrypted bytes are none.
func (st *stream) readable() (rows []row, troubled bool) {
	for _, r := range st.rows {
		if r.trouble || r.kind == "" {
			return rows, true
		}
		switch r.kind {
		case "StartupMessage", "SSLRequest", "CancelRequest", "GSSENCRequest":
		case "EncryptionAnswer N", "EncryptionAnswer S":
			r.length = 1
		default:
			r.length++ // the type byte
		}
		rows = append(rows, r)
	}
	return rows, st.rows == nil
}

func (u unit) troubled() bool {
	for _, st := range u.streams {
		if st != nil {
			if _, t := st.readable(); t {
				return true
			}
		}
	}
	return false
}

func kindAt(dir wire.Direction, st *stream, offset int) string {
	for _, r := range st.rows {
		if r.offset == offset && !r.trouble {
			return r.kind
		}
	}
	return ""
}

// TestCaptures_TagsAndErrors wants the tags and errors of every connection, in
// order, and the statement texts where there are any.
func TestCaptures_TagsAndErrors(t *testing.T) {
	tags, errs, texts := 0, 0, 0
	for _, u := range units(t) {
		st := u.streams[wire.ToClient]
		if st == nil || u.name == "pgx/FuzzFrontend_a661fb98" {
			continue
		}
		p := newPlayer(t, wire.Options{Text: wire.TextRaw})
		for dir, st := range u.streams {
			if st != nil && len(st.bytes) > 0 {
				p.play(step{wire.Direction(dir), st.bytes})
			}
		}
		p.s.End()
		var want, got []string
		rows, _ := st.readable()
		for _, r := range rows {
			switch r.kind {
			case "CommandComplete":
				want = append(want, r.detail["tag"].(string))
				tags++
			case "EmptyQueryResponse":
				want = append(want, "")
			case "ErrorResponse":
				want = append(want, r.detail["fields"].(map[string]any)["C"].(string))
				errs++
			}
		}
		sent := map[string]bool{}
		if cs := u.streams[wire.ToServer]; cs != nil {
			for _, r := range cs.rows {
				if sql, ok := r.detail["sql"].(string); ok {
					sent[sql] = true
				}
			}
		}
		for _, x := range p.got {
			if x.Answered && (x.Operation != "startup" || x.ErrorCode != "") {
				got = append(got, x.Postgres.Tag+x.ErrorCode)
			}
			if x.Statement != "" && sent[x.Statement] {
				texts++
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: results %q, want %q", u.name, got, want)
		}
		if len(p.text) > 0 {
			t.Errorf("%s: trouble %q", u.name, p.text)
		}
	}
	if tags < 270 || errs < 18 || texts < 200 {
		t.Errorf("%d tags, %d errors, %d texts: too few to be all", tags, errs, texts)
	}
}

// TestCaptures_PipelineAbort compares with PostgreSQL's own trace of the same
// session.
func TestCaptures_PipelineAbort(t *testing.T) {
	trace, err := os.ReadFile(filepath.Join(testenv.Captures(t), "postgres-traces", "pipeline_abort.trace.txt"))
	if err != nil {
		t.Fatal(err)
	}
	type message struct {
		dir    string
		length int
	}
	var want [2][]message
	for line := range strings.Lines(string(trace)) {
		f := strings.Fields(line)
		if len(f) < 3 || f[0] != "F" && f[0] != "B" {
			continue
		}
		n := 0 // NN: left out, it depends on the server's version
		if f[1] != "NN" {
			if n, err = strconv.Atoi(f[1]); err != nil {
				t.Fatal(err)
			}
		}
		dir := wire.ToServer
		if f[0] == "B" {
			dir = wire.ToClient
		}
		want[dir] = append(want[dir], message{f[0], n})
	}
	for _, u := range units(t) {
		if u.name != "captured-pg15/libpq-abort" {
			continue
		}
		for dir, st := range u.streams {
			p := newPlayer(t, wire.Options{})
			pieces := p.frame(wire.Direction(dir), st.bytes)
			pieces = pieces[len(pieces)-len(want[dir]):]
			for i, w := range want[dir] {
				if w.length > 0 && pieces[i].Len != w.length+1 {
					t.Errorf("%s message %d: %d bytes, want %d", wire.Direction(dir), i, pieces[i].Len, w.length+1)
				}
			}
		}
		if len(want[0])+len(want[1]) < 60 {
			t.Errorf("a trace of %d messages", len(want[0])+len(want[1]))
		}
		return
	}
	t.Fatal("no such capture")
}
