package postgres

import (
	"bytes"
	"strings"
	"testing"

	"github.com/wirewait/wirewait/wire"
)

func parsed(text string, q quoting, mode wire.TextMode, extended bool) []statement {
	p := parser{mode: mode, quoting: q, strings: &interned{}, budget: maxKept}
	var sc script
	p.parse(&sc, []byte(text), extended)
	return sc.stmts
}

func TestTokenizer_SplitsStatements(t *testing.T) {
	for _, tc := range []struct {
		text string
		want []string // keywords
	}{
		{"", nil},
		{" ;; ; ", nil},
		{"-- only a comment", nil},
		{"select 1; INSERT INTO t VALUES (';'); ", []string{"SELECT", "INSERT"}},
		{"SELECT 'it''s; ok'; DELETE FROM t", []string{"SELECT", "DELETE"}},
		{`SELECT E'it\'s; ok'; DELETE FROM t`, []string{"SELECT", "DELETE"}},
		{`SELECT 'a\'; DELETE FROM t`, []string{"SELECT", "DELETE"}},
		{`SELECT "a;b" FROM t; DELETE FROM t`, []string{"SELECT", "DELETE"}},
		{`SELECT U&"d\0061;t", U&'\0441;', B'1;', X'f;', N'n;'; DELETE FROM t`, []string{"SELECT", "DELETE"}},
		{"DO $$ BEGIN; END $$; DELETE FROM t", []string{"DO", "DELETE"}},
		{"DO $a$ $$;$b$;$a$; DELETE FROM t", []string{"DO", "DELETE"}},
		{"SELECT $1; DELETE FROM t", []string{"SELECT", "DELETE"}},
		{"SELECT a$b$; DELETE FROM t; SELECT c$b$", []string{"SELECT", "DELETE", "SELECT"}},
		{"/* a; /* nested; */ b; */ SELECT 1 -- c;\n; DELETE FROM t", []string{"SELECT", "DELETE"}},
		{"CREATE RULE r AS ON INSERT TO t DO (DELETE FROM a; DELETE FROM b); SELECT 1", []string{"CREATE", "SELECT"}},
		{"CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END; SELECT 1", []string{"CREATE", "SELECT"}},
		{"BEGIN; END; SELECT 1", []string{"BEGIN", "END", "SELECT"}},
		{"(SELECT 1) UNION (SELECT 2); SELECT 3", []string{"SELECT", "SELECT"}},
		{"SELECT 'never ends; DELETE FROM t", []string{"SELECT"}},
		{"SELECT /* never ends; DELETE FROM t", []string{"SELECT"}},
		{"SELECT $x$ never ends; DELETE FROM t", []string{"SELECT"}},
	} {
		var got []string
		for _, st := range parsed(tc.text, quotingStandard, wire.TextNone, false) {
			got = append(got, st.keyword)
		}
		if strings.Join(got, " ") != strings.Join(tc.want, " ") {
			t.Errorf("%q: %q, want %q", tc.text, got, tc.want)
		}
	}
	// Where a backslash escapes, a string goes on.
	if got := parsed(`SELECT 'a\'; DELETE FROM t'; SELECT 1`, quotingBackslash, wire.TextNone, false); len(got) != 2 {
		t.Errorf("%d statements", len(got))
	}
}

func TestTokenizer_Summary(t *testing.T) {
	for text, want := range map[string]string{
		"INSERT INTO orders VALUES (1)":                             "INSERT orders",
		`insert into shop."Orders" (a) values (1)`:                  `INSERT shop."Orders"`,
		"UPDATE ONLY t SET a = 1":                                   "UPDATE t",
		"DELETE FROM t USING u":                                     "DELETE t",
		"MERGE INTO t USING u ON true WHEN MATCHED THEN DO NOTHING": "MERGE t",
		"COPY t (a, b) FROM STDIN":                                  "COPY t",
		"COPY (SELECT 1) TO STDOUT":                                 "",
		"SELECT a, (SELECT b FROM u) FROM t WHERE true":             "SELECT t",
		"SELECT * FROM (SELECT 1) x":                                "",
		"SELECT 1":                                                  "",
		"TRUNCATE TABLE ONLY t":                                     "TRUNCATE t",
		"CREATE TABLE IF NOT EXISTS t (a int)":                      "CREATE TABLE t",
		"CREATE UNIQUE INDEX CONCURRENTLY i ON t (a)":               "CREATE INDEX i",
		"CREATE OR REPLACE VIEW v AS SELECT 1":                      "CREATE VIEW v",
		"CREATE MATERIALIZED VIEW v AS SELECT 1":                    "CREATE MATERIALIZED VIEW v",
		"DROP TABLE IF EXISTS t":                                    "DROP TABLE t",
		"ALTER TABLE ONLY t ADD b int":                              "ALTER TABLE t",
		"ALTER ROLE ann PASSWORD 'secret'":                          "",
		"CALL pay(1)":                                               "CALL pay",
		"WITH x AS (SELECT * FROM u) INSERT INTO t SELECT * FROM x": "INSERT t",
		"WITH x AS (DELETE FROM u RETURNING *) SELECT * FROM x":     "SELECT x",
		"EXPLAIN SELECT * FROM t":                                   "",
		"INSERT INTO " + strings.Repeat("x", 300) + " VALUES (1)":   "",
		"BEGIN": "",
	} {
		got := parsed(text, quotingStandard, wire.TextNone, false)
		if len(got) != 1 || got[0].summary != want {
			t.Errorf("%q: %+v, want summary %q", text, got, want)
		}
	}
}

func TestTokenizer_TextModes(t *testing.T) {
	const text = "SELECT * FROM t WHERE a = 'secret' AND b = 17"
	for _, tc := range []struct {
		text     string
		mode     wire.TextMode
		extended bool
		want     string
	}{
		{text, wire.TextNone, false, ""},
		{text, wire.TextRaw, false, text},
		{" " + text + "; ", wire.TextRaw, false, " " + text + "; "},
		{text, wire.TextSanitised, false, "SELECT * FROM t WHERE a = $? AND b = $?"},
		{text, wire.TextSanitised, true, "SELECT * FROM t WHERE a = $? AND b = $?"},
		{"SELECT * FROM t WHERE a = $1 LIMIT 5", wire.TextSanitised, true, "SELECT * FROM t WHERE a = $1 LIMIT 5"},
	} {
		got := parsed(tc.text, quotingStandard, tc.mode, tc.extended)
		if len(got) != 1 || got[0].text != tc.want {
			t.Errorf("%q, mode %d: %+v, want %q", tc.text, tc.mode, got, tc.want)
		}
	}
	p := parser{mode: wire.TextSanitised, strings: &interned{}, budget: maxKept, garbles: true}
	var sc script
	if p.parse(&sc, []byte(text), false); sc.stmts[0].text != "" {
		t.Errorf("%q in an encoding that can't be followed", sc.stmts[0].text)
	}
}

func TestSanitise(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT 'a', 1, 1.5e-3, 0xff, .5":             "SELECT $?, $?, $?, $?, $?",
		"SELECT E'a\\'b', U&'x', B'01', X'ff', N'n'":  "SELECT $?, $?, $?, $?, $?",
		`SELECT "Col 1", U&"d\0061t" FROM "t"`:        `SELECT "Col 1", U&"d\0061t" FROM "t"`,
		"SELECT a ? 'k', b ?| array['x'], c #>> '{}'": "SELECT a ? $?, b ?| array[$?], c #>> $?",
		"SELECT $1::int + '5'::int":                   "SELECT $1::int + $?::int",
		"DO $body$ secret $body$ LANGUAGE plpgsql":    "DO $? LANGUAGE plpgsql",
		"SELECT  a\n\t, b -- secret\n FROM /* s */ t": "SELECT a , b FROM t",
		"ALTER ROLE ann PASSWORD 'hunter2'":           "ALTER ROLE ann PASSWORD $?",
		"SELECT date'2020-01-01', e1, t1.c2":          "SELECT date $?, e1, t1.c2",
		`SELECT "never ends 'secret'`:                 "SELECT $?",
		"SELECT 'never ends":                          "SELECT $?",
		"SELECT 12abc":                                "SELECT $?",
		"SELECT -5, 1-2":                              "SELECT -$?, $?-$?",
	} {
		if got := string(sanitise(nil, []byte(text), quotingStandard)); got != want {
			t.Errorf("%q:\n%q, want\n%q", text, got, want)
		}
	}
	// Until the server said what a backslash is, nothing behind one is shown.
	const odd = `SELECT 'it\'s secret', 'x'`
	if got := string(sanitise(nil, []byte(odd), quotingUnknown)); got != "SELECT $?" {
		t.Errorf("%q", got)
	}
	if got := string(sanitise(nil, []byte(odd), quotingBackslash)); got != "SELECT $?, $?" {
		t.Errorf("%q", got)
	}
}

func TestTraceparent(t *testing.T) {
	const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for comment, want := range map[string]string{
		"/*traceparent='" + good + "'*/":                                            good,
		"/*a='b',traceparent='" + good + "',tracestate='x%3D1'*/":                   good,
		"/*traceparent='" + strings.ReplaceAll(good, "-", "%2D") + "'*/":            good,
		"-- traceparent=" + good:                                                    good,
		"/*traceparent='" + strings.ToUpper(good) + "'*/":                           "",
		"/*traceparent='" + good + "0'*/":                                           "",
		"/*traceparent='" + good[:54] + "'*/":                                       "",
		"/*traceparent='00-00000000000000000000000000000000-00f067aa0ba902b7-01'*/": "",
		"/*traceparent='ff" + good[2:] + "'*/":                                      "",
		"/*xtraceparent='" + good + "'*/":                                           "",
		"/*traceparent='%'*/":                                                       "",
		"/* nothing */":                                                             "",
	} {
		if got := string(traceparentIn([]byte(comment))); got != want {
			t.Errorf("%s: %q, want %q", comment, got, want)
		}
	}
}

func sqlSeeds(f *testing.F) {
	for _, s := range []string{
		"SELECT 'it''s', E'a\\'b', $1, $a$ x $a$ -- c\n/* a /* b */ */; DELETE FROM t WHERE a=1.5e-3",
		"WITH x AS (INSERT INTO t VALUES ('s') RETURNING *) SELECT * FROM x",
		"CREATE FUNCTION f() BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; END; SET LOCAL synchronous_commit = 'off'",
		"PREPARE p(int) AS INSERT INTO t VALUES ($1); EXECUTE p(1); DEALLOCATE p",
		"U&\"a\"\"b\" U&'c' B'1' X'f' n'x' \"never ends",
		"/*traceparent='00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'*/ SELECT 1",
		"$$", "'", "e'\\", "$1$a", "((((;", "/*/*", "--", "1e+", ".5.", "\x00\xff'",
	} {
		for q := range 3 {
			f.Add([]byte(s), byte(q))
		}
	}
}

func FuzzTokenizer(f *testing.F) {
	sqlSeeds(f)
	f.Fuzz(func(t *testing.T, text []byte, q byte) {
		l := lexer{text: text, quoting: quoting(q % 3)}
		end := 0
		for {
			tok := l.next()
			if tok.start < end || tok.end < tok.start || tok.end > len(text) || len(bytes.TrimSpace(text[end:tok.start])) > 0 && !onlySpace(text[end:tok.start]) {
				t.Fatalf("token %+v after %d of %q", tok, end, text)
			}
			if tok.kind == tokenEnd {
				break
			}
			if tok.start == tok.end {
				t.Fatalf("an empty token %+v of %q", tok, text)
			}
			end = tok.end
		}
		for _, st := range parsed(string(text), quoting(q%3), wire.TextRaw, q&4 != 0) {
			if len(st.summary) > maxSummary || len(st.keyword) > maxKeyword || st.parent != "" && !validTraceparent([]byte(st.parent)) {
				t.Fatalf("%+v", st)
			}
		}
	})
}

func onlySpace(b []byte) bool {
	for _, c := range b {
		if !isSpace(c) {
			return false
		}
	}
	return true
}

// FuzzSanitise wants no literal in what comes out: neither as it is read again,
// nor the secret that the fuzzer put into a string.
func FuzzSanitise(f *testing.F) {
	sqlSeeds(f)
	f.Fuzz(func(t *testing.T, text []byte, q byte) {
		standard := quoting(q % 3)
		out := sanitise(nil, text, standard)
		l := lexer{text: out, quoting: standard}
		for tok := l.next(); tok.kind != tokenEnd; tok = l.next() {
			if tok.kind == tokenString || tok.kind == tokenNumber || tok.kind == tokenComment {
				t.Fatalf("%q of %q has %q", out, text, out[tok.start:tok.end])
			}
		}
		const secret = "5ecret"
		if bytes.Contains(text, []byte(secret)) {
			return
		}
		// A literal behind any text that is whole stays hidden.
		whole := append(append([]byte{}, out...), " '"+secret+"' = $x$"+secret+"$x$"...)
		if bytes.Contains(sanitise(nil, whole, standard), []byte(secret)) {
			t.Fatalf("%q shows the secret", whole)
		}
	})
}
