package postgres

import (
	"testing"

	"github.com/wirewait/wirewait/wire"
)

// Each row is a statement and the tag with which PostgreSQL answered it.
func TestWrites_ByTag(t *testing.T) {
	for _, tc := range []struct{ sql, tag, operation, basis string }{
		{"INSERT INTO t VALUES (1)", "INSERT 0 1", "INSERT", "tag"},
		{"INSERT INTO t SELECT 1 WHERE false", "INSERT 0 0", "INSERT", "tag"},
		{"UPDATE t SET a = 1", "UPDATE 3", "UPDATE", "tag"},
		{"DELETE FROM t", "DELETE 3", "DELETE", "tag"},
		{"MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE", "MERGE 1", "MERGE", "tag"},
		{"CREATE TABLE t(a int)", "CREATE TABLE", "CREATE TABLE", "tag"},
		{"DROP TABLE t", "DROP TABLE", "DROP TABLE", "tag"},
		{"ALTER TABLE t ADD b int", "ALTER TABLE", "ALTER TABLE", "tag"},
		{"TRUNCATE t", "TRUNCATE TABLE", "TRUNCATE TABLE", "tag"},
		{"COMMENT ON TABLE t IS 'x'", "COMMENT", "COMMENT", "tag"},
		{"GRANT SELECT ON t TO bob", "GRANT", "GRANT", "tag"},
		{"REINDEX TABLE t", "REINDEX", "REINDEX", "tag"},
		{"CALL p()", "CALL", "CALL", "tag"},
		{"DO $$ BEGIN END $$", "DO", "DO", "tag"},
		{"COMMIT PREPARED 'x'", "COMMIT PREPARED", "COMMIT PREPARED", "tag"},
		{"ROLLBACK PREPARED 'x'", "ROLLBACK PREPARED", "ROLLBACK PREPARED", "tag"},
		{"REFRESH MATERIALIZED VIEW v", "REFRESH MATERIALIZED VIEW", "REFRESH MATERIALIZED VIEW", "tag"},
		{"WITH x AS (INSERT INTO t VALUES (1) RETURNING a) SELECT * FROM x", "SELECT 1", "SELECT", "keyword"},
		{"WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x", "INSERT 0 1", "INSERT", "tag"},
		{"CREATE TABLE u AS SELECT 1", "SELECT 1", "SELECT", "keyword"},
		{"SELECT 1 INTO u", "SELECT 1", "SELECT", "keyword"},
		{"WITH x AS (SELECT 1) SELECT * FROM x FOR UPDATE", "SELECT 1", "SELECT", ""},
		{"SELECT * FROM t FOR UPDATE", "SELECT 1", "SELECT", ""},
		{"SELECT 1", "SELECT 1", "SELECT", ""},
		{"EXPLAIN ANALYZE INSERT INTO t VALUES (1)", "EXPLAIN", "EXPLAIN", ""},
		{"SHOW ALL", "SHOW", "SHOW", ""},
		{"SET a = 1", "SET", "SET", ""},
		{"RESET a", "RESET", "RESET", ""},
		{"NOTIFY c", "NOTIFY", "NOTIFY", ""},
		{"VACUUM", "VACUUM", "VACUUM", ""},
		{"CHECKPOINT", "CHECKPOINT", "CHECKPOINT", ""},
		{"ALTER SYSTEM SET a = 1", "ALTER SYSTEM", "ALTER SYSTEM", ""},
		{"PREPARE p AS INSERT INTO t VALUES (1)", "PREPARE", "PREPARE", ""},
		{"DECLARE c CURSOR FOR SELECT 1", "DECLARE CURSOR", "DECLARE CURSOR", ""},
		{"DISCARD ALL", "DISCARD ALL", "DISCARD ALL", ""},
		{"DEALLOCATE ALL", "DEALLOCATE ALL", "DEALLOCATE ALL", ""},
		{"START TRANSACTION", "START TRANSACTION", "START TRANSACTION", ""},
		{"COMMIT", "COMMIT", "COMMIT", ""}, // of nothing
	} {
		t.Run(tc.sql, func(t *testing.T) {
			for name, steps := range map[string][]step{
				"simple":   {c(query(tc.sql)), s(tag(tc.tag), ready('I'))},
				"extended": {c(pbe(tc.sql), sync()), s(parsedBound(), tag(tc.tag), ready('I'))},
			} {
				x := run(t, append(hello(), steps...)...)[1]
				if x.Operation != tc.operation || x.Write != (tc.basis != "") || x.WriteBasis != tc.basis || !x.OK {
					t.Errorf("%s: %s, want %s and %q", name, brief(x), tc.operation, tc.basis)
				}
				if x.Postgres.Tag != tc.tag {
					t.Errorf("%s: tag %q", name, x.Postgres.Tag)
				}
			}
		})
	}
}

func TestWrites_CopyByDirection(t *testing.T) {
	got := run(t, append(hello(),
		c(query("COPY t TO STDOUT")), s(msg('H', 0, 0, 0), msg('d', 'x'), msg('c'), tag("COPY 1"), ready('I')),
		c(query("COPY t FROM STDIN")), s(msg('G', 0, 0, 0)), c(msg('d', 'x'), msg('c')), s(tag("COPY 1"), ready('I')))...)
	wantBriefs(t, got, "startup ok", "COPY ok", "COPY ok write=tag level=/default")
}

func TestWrites_Blocks(t *testing.T) {
	block := func(end, answer string, status byte, inside ...step) []step {
		steps := append(hello(), c(query("BEGIN")), s(tag("BEGIN"), ready('T')))
		steps = append(steps, inside...)
		return append(steps, c(query(end)), s(tag(answer), ready(status)))
	}
	ins := []step{c(query("INSERT INTO t VALUES (1)")), s(tag("INSERT 0 1"), ready('T'))}
	bad := []step{c(query("SELECT 1/0")), s(refused("22012"), ready('E'))}
	const inside = "INSERT ok write=tag level=/default inblock"
	for _, tc := range []struct {
		name  string
		steps []step
		want  []string
	}{
		{"COMMIT", block("COMMIT", "COMMIT", 'I', ins...), []string{inside, "COMMIT ok write=block level=/default"}},
		{"END", block("END", "COMMIT", 'I', ins...), []string{inside, "COMMIT ok write=block level=/default"}},
		{"of reads", block("COMMIT", "COMMIT", 'I', c(query("SELECT 1")), s(tag("SELECT 1"), ready('T'))),
			[]string{"SELECT ok inblock", "COMMIT ok"}},
		{"ROLLBACK", block("ROLLBACK", "ROLLBACK", 'I', ins...), []string{inside, "ROLLBACK ok"}},
		{"failed", block("COMMIT", "ROLLBACK", 'I', append(ins, bad...)...), []string{inside, "SELECT error=22012 inblock", "ROLLBACK ok"}},
		{"PREPARE TRANSACTION", block("PREPARE TRANSACTION 'x'", "PREPARE TRANSACTION", 'I', ins...),
			[]string{inside, "PREPARE TRANSACTION ok write=tag level=/default"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			wantBriefs(t, run(t, tc.steps...), append([]string{"startup ok", "BEGIN ok"}, tc.want...)...)
			sameInAnyOrder(t, tc.steps)
		})
	}

	t.Run("COMMIT AND CHAIN goes on", func(t *testing.T) {
		steps := block("COMMIT AND CHAIN", "COMMIT", 'T', ins...)
		steps = append(steps, ins...)
		steps = append(steps, c(query("COMMIT")), s(tag("COMMIT"), ready('I')))
		wantBriefs(t, run(t, steps...), "startup ok", "BEGIN ok", inside, "COMMIT ok write=block level=/default",
			inside, "COMMIT ok write=block level=/default")
	})
	t.Run("the commit fails", func(t *testing.T) {
		steps := append(hello(), c(query("BEGIN")), s(tag("BEGIN"), ready('T')))
		steps = append(steps, ins...)
		steps = append(steps, c(query("COMMIT")), s(refused("23503"), ready('I')))
		wantBriefs(t, run(t, steps...), "startup ok", "BEGIN ok", inside, "COMMIT error=23503 write=block level=/default")
	})
	t.Run("a BEGIN takes in what came before it in the Query", func(t *testing.T) {
		steps := append(hello(), c(query("INSERT INTO t VALUES (1); BEGIN; COMMIT")),
			s(tag("INSERT 0 1"), tag("BEGIN"), tag("COMMIT"), ready('I')))
		wantBriefs(t, run(t, steps...), "startup ok", inside, "BEGIN ok", "COMMIT ok write=block level=/default")
	})
}

// A cut connection leaves writes whose outcome is unknown.
func TestWrites_WithoutAnAnswer(t *testing.T) {
	steps := append(hello(), c(query("BEGIN; INSERT INTO t VALUES (1)")), s(tag("BEGIN"), tag("INSERT 0 1"), ready('T')), c(query("COMMIT")))
	wantBriefs(t, run(t, steps...), "startup ok", "BEGIN ok", "INSERT ok write=tag level=/default inblock",
		"COMMIT unanswered write=block level=/default")
}

func TestWrites_NotReplicated(t *testing.T) {
	user := notice("WARNING", "01000", "SyncRepWaitForLSN")
	ended := notice("WARNING", "57P01", "SyncRepWaitForLSN")
	other := notice("WARNING", "01000", "exec_stmt_raise")
	lower := notice("NOTICE", "01000", "SyncRepWaitForLSN")
	ins := "INSERT INTO t VALUES (1)"
	ok := join([][]byte{parsedBound(), tag("INSERT 0 1")})
	const plain = "INSERT ok write=tag level=/default"
	for _, tc := range []struct {
		name  string
		steps []step
		want  []string
	}{
		{"a Query", []step{c(query(ins)), s(user, tag("INSERT 0 1"), ready('I'))}, []string{plain + " notreplicated"}},
		{"a Sync", []step{c(pbe(ins), pbe(ins), sync()), s(ok, ok, user, ready('I'))},
			[]string{plain + " shared=2 notreplicated", plain + " shared=2 notreplicated"}},
		{"the next is not", []step{c(query(ins)), s(user, tag("INSERT 0 1"), ready('I')), c(query(ins)), s(tag("INSERT 0 1"), ready('I'))},
			[]string{plain + " notreplicated", plain}},
		{"terminated", []step{c(query(ins)), s(ended)}, []string{"INSERT unanswered write=keyword level=/default notreplicated"}},
		{"terminated at a Sync", []step{c(pbe(ins), sync()), s(ok, ended)}, []string{plain + " notreplicated"}},
		{"another warning", []step{c(query(ins)), s(other, tag("INSERT 0 1"), ready('I'))}, []string{plain}},
		{"no warning", []step{c(query(ins)), s(lower, tag("INSERT 0 1"), ready('I'))}, []string{plain}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			steps := append(hello(), tc.steps...)
			wantBriefs(t, run(t, steps...), append([]string{"startup ok"}, tc.want...)...)
			sameInAnyOrder(t, steps)
		})
	}
}

func TestWrites_Traceparent(t *testing.T) {
	const header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	comment := " /*app='x',traceparent='" + header + "'*/"
	type parent struct {
		header string
		reused bool
	}
	parents := func(xs []*wire.Exchange) (out []parent) {
		for _, x := range xs[1:] {
			out = append(out, parent{x.Traceparent, x.TraceparentReused})
		}
		return out
	}
	want := func(xs []*wire.Exchange, want ...parent) {
		t.Helper()
		got := parents(xs)
		if len(got) != len(want) {
			t.Fatalf("%v, want %v", got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("exchange %d: %v, want %v", i, got[i], want[i])
			}
		}
	}
	answer := s(tag("INSERT 0 1"), ready('I'))
	want(run(t, append(hello(), c(query("INSERT INTO t VALUES (1)"+comment)), answer)...), parent{header, false})
	want(run(t, append(hello(), c(query(comment+"INSERT INTO t VALUES (1)")), answer)...), parent{header, false})
	want(run(t, append(hello(), c(query("INSERT INTO t VALUES ('"+comment+"')")), answer)...), parent{})
	// A prepared statement's comment stays the same.
	again := []step{c(bind("", "s"), execute(""), sync()), s(msg('2'), tag("INSERT 0 1"), ready('I'))}
	steps := append(hello(), c(parse("s", "INSERT INTO t VALUES (1)"+comment), sync()), s(msg('1'), ready('I')))
	steps = append(append(steps, again...), again...)
	want(run(t, steps...), parent{header, false}, parent{header, true})
	// The application's name may carry one.
	steps = append(hello("user", "a", "application_name", header), c(query("INSERT INTO t VALUES (1)")), answer,
		c(query("INSERT INTO t VALUES (1)")), answer)
	want(run(t, steps...), parent{header, false}, parent{header, true})
}
