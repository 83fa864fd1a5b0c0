package postgres

import "testing"

// What one Sync or Query was to commit together is undone together.
func TestRolledBack(t *testing.T) {
	const ins = "INSERT INTO t VALUES (1)"
	done := func(what string) []byte { return join([][]byte{parsedBound(), tag(what)}) }
	ok := done("INSERT 0 1")
	const write = "INSERT ok write=tag level=/default"
	for _, tc := range []struct {
		name  string
		steps []step
		want  []string
	}{
		{"a later statement fails", []step{
			c(pbe(ins), pbe(ins), pbe("SELECT 1/0"), sync()), s(ok, ok, parsedBound(), refused("22012"), ready('I')),
		}, []string{write + " rolledback", write + " rolledback", "SELECT error=22012"}},
		{"and not what an earlier Sync committed", []step{
			c(pbe(ins), sync(), pbe(ins), pbe("nope"), sync()), s(ok, ready('I'), ok, refused("42601"), ready('I')),
		}, []string{write, write + " rolledback", "NOPE error=42601"}},
		{"nor what a COMMIT did", []step{
			c(pbe("BEGIN"), pbe(ins), pbe("COMMIT"), pbe(ins), pbe("nope"), sync()),
			s(done("BEGIN"), ok, done("COMMIT"), ok, refused("42601"), ready('I')),
		}, []string{"BEGIN ok", write + " inblock", "COMMIT ok write=block level=/default", write + " rolledback", "NOPE error=42601"}},
		{"a later statement of the Query fails", []step{
			c(query(ins + "; SELECT 1/0")), s(tag("INSERT 0 1"), refused("22012"), ready('I')),
		}, []string{write + " rolledback", "SELECT error=22012"}},
		{"a Query behind it, with no Sync between, fails", []step{
			c(pbe(ins), query("SELECT 1/0")), s(ok, refused("22012"), ready('I')),
		}, []string{write + " rolledback", "SELECT error=22012"}},
		{"a Parse behind it fails", []step{
			c(pbe(ins), parse("", "nope"), sync()), s(ok, refused("42601"), ready('I')),
		}, []string{write + " rolledback", "NOPE error=42601"}},
		{"a Describe behind it fails", []step{
			c(pbe(ins), describe("S", "none"), sync()), s(ok, refused("26000"), ready('I')),
		}, []string{write + " rolledback", "- error=26000"}},
		{"ROLLBACK without a block", []step{
			c(pbe(ins), pbe("ROLLBACK"), sync()), s(ok, parsedBound(), notice("WARNING", "25P01", "UserAbortTransactionBlock"), tag("ROLLBACK"), ready('I')),
		}, []string{write + " rolledback", "ROLLBACK ok"}},
		{"the commit fails", []step{
			c(pbe(ins), pbe(ins), sync()), s(ok, ok, refused("23503"), ready('I')),
		}, []string{"INSERT error=23503 write=tag level=/default shared=2 rolledback", "INSERT error=23503 write=tag level=/default shared=2 rolledback", "- error=23503"}},
		{"the connection ends before the Sync's answer", []step{c(pbe(ins), sync()), s(ok)}, []string{write + " unconfirmed"}},
		{"the connection ends before the Sync", []step{c(pbe(ins), flush()), s(ok)}, []string{write + " unconfirmed"}},
		{"the connection ends after a Query's result", []step{c(query(ins)), s(tag("INSERT 0 1"))}, []string{write}},
		{"the connection ends in the middle of a Query", []step{c(query(ins + "; SELECT pg_sleep(9)")), s(tag("INSERT 0 1"))}, []string{write + " unconfirmed"}},
		{"the connection ends before a Query's ReadyForQuery", []step{c(query(ins + "; " + ins)), s(tag("INSERT 0 1"), tag("INSERT 0 1"))},
			[]string{write + " shared=2", write + " shared=2"}},
		{"what commits by itself stays", []step{
			c(pbe("CREATE DATABASE d"), pbe("nope"), sync()), s(done("CREATE DATABASE"), refused("42601"), ready('I')),
		}, []string{"CREATE DATABASE ok write=tag level=/default", "NOPE error=42601"}},
		{"CONCURRENTLY commits by itself", []step{
			c(pbe("CREATE INDEX CONCURRENTLY i ON t (a)"), pbe("nope"), sync()), s(done("CREATE INDEX"), refused("42601"), ready('I')),
		}, []string{"CREATE INDEX ok write=tag level=/default", "NOPE error=42601"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			steps := append(hello(), tc.steps...)
			wantBriefs(t, run(t, steps...), append([]string{"startup ok"}, tc.want...)...)
			sameInAnyOrder(t, steps)
		})
	}
}

// Large objects are written by functions.
func TestWrites_LargeObjects(t *testing.T) {
	call := func(oid ...byte) []byte { return msg('F', append(oid, 0, 0, 0, 0, 0, 0)...) }
	for _, tc := range []struct {
		name          string
		steps         []step
		want, summary string
	}{
		{"lowrite called", []step{c(call(0, 0, 3, 0xbb)), s(msg('V', 0, 0, 0, 0), ready('I'))},
			"function_call ok write=function level=/default", "function_call lowrite"},
		{"loread called", []step{c(call(0, 0, 3, 0xba)), s(msg('V', 0, 0, 0, 0), ready('I'))}, "function_call ok", ""},
		{"any other called", []step{c(call(0, 1, 0, 0)), s(msg('V', 0, 0, 0, 0), ready('I'))}, "function_call ok", ""},
		{"lowrite fails", []step{c(call(0, 0, 3, 0xbb)), s(refused("42501"), ready('I'))},
			"function_call error=42501 write=function level=/default", "function_call lowrite"},
		{"SELECT lo_put", []step{c(query("select lo_put(1, 0, 'x')")), s(columns(), datum(), tag("SELECT 1"), ready('I'))},
			"SELECT ok write=function level=/default", "SELECT lo_put"},
		{"qualified, in a FROM", []step{c(query("SELECT * FROM pg_catalog.LO_CREATE(7)")), s(columns(), datum(), tag("SELECT 1"), ready('I'))},
			"SELECT ok write=function level=/default", "SELECT pg_catalog.LO_CREATE"},
		{"with parameters", []step{c(pbe("SELECT lowrite($1, $2)"), sync()), s(parsedBound(), datum(), tag("SELECT 1"), ready('I'))},
			"SELECT ok write=function level=/default", "SELECT lowrite"},
		{"within a WITH", []step{c(query("WITH x AS (SELECT lo_unlink(7)) SELECT 1")), s(columns(), datum(), tag("SELECT 1"), ready('I'))},
			"SELECT ok write=function level=/default", "SELECT lo_unlink"},
		{"a read", []step{c(query("SELECT lo_get(7), loread(1, 2)")), s(columns(), datum(), tag("SELECT 1"), ready('I'))}, "SELECT ok", ""},
		{"a column of that name", []step{c(query("SELECT lo_put, 'lo_put(1)' FROM t")), s(columns(), datum(), tag("SELECT 1"), ready('I'))}, "SELECT ok", "SELECT t"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			steps := append(hello(), tc.steps...)
			got := run(t, steps...)
			wantBriefs(t, got, "startup ok", tc.want)
			if got[1].Postgres.Summary != tc.summary {
				t.Errorf("summary %q, want %q", got[1].Postgres.Summary, tc.summary)
			}
			sameInAnyOrder(t, steps)
		})
	}
	// It makes its transaction one that writes.
	got := run(t, append(hello(), c(query("BEGIN")), s(tag("BEGIN"), ready('T')), c(call(0, 0, 3, 0xbb)), s(msg('V', 0, 0, 0, 0), ready('T')),
		c(query("COMMIT")), s(tag("COMMIT"), ready('I')))...)
	wantBriefs(t, got, "startup ok", "BEGIN ok", "function_call ok write=function level=/default inblock", "COMMIT ok write=block level=/default")
}
