package postgres

import "testing"

// level plays statements, each with its tag, and wants the level of the last.
func TestLevels(t *testing.T) {
	type st struct {
		sql, tag string
		status   byte
	}
	ok := func(sql, tag string) st { return st{sql, tag, 'I'} }
	in := func(sql, tag string) st { return st{sql, tag, 'T'} }
	ins := ok("INSERT INTO t VALUES (1)", "INSERT 0 1")
	insIn := in("INSERT INTO t VALUES (1)", "INSERT 0 1")
	begin, commit, rollback := in("BEGIN", "BEGIN"), ok("COMMIT", "COMMIT"), ok("ROLLBACK", "ROLLBACK")
	for _, tc := range []struct {
		name string
		sts  []st
		want string
	}{
		{"nothing said", []st{ins}, "/default"},
		{"SET", []st{ok("SET synchronous_commit = off", "SET"), ins}, "off/set"},
		{"SET TO", []st{ok("set Synchronous_Commit to 'REMOTE_APPLY'", "SET"), ins}, "remote_apply/set"},
		{"SET SESSION", []st{ok("SET SESSION synchronous_commit TO local", "SET"), ins}, "local/set"},
		{"a quoted name", []st{ok(`SET "synchronous_commit" = remote_write`, "SET"), ins}, "remote_write/set"},
		{"a boolean", []st{ok("SET synchronous_commit = FALSE", "SET"), ins}, "off/set"},
		{"a number", []st{ok("SET synchronous_commit = 1", "SET"), ins}, "on/set"},
		{"in a comment's company", []st{ok("/* x */ SET /* y */ synchronous_commit -- z\n = off;", "SET"), ins}, "off/set"},
		{"another setting", []st{ok("SET work_mem = '4MB'", "SET"), ins}, "/default"},
		{"DEFAULT", []st{ok("SET synchronous_commit = off", "SET"), ok("SET synchronous_commit TO DEFAULT", "SET"), ins}, "/default"},
		{"RESET", []st{ok("SET synchronous_commit = off", "SET"), ok("RESET synchronous_commit", "RESET"), ins}, "/default"},
		{"RESET ALL", []st{ok("SET synchronous_commit = off", "SET"), ok("RESET ALL", "RESET"), ins}, "/default"},
		{"DISCARD ALL", []st{ok("SET synchronous_commit = off", "SET"), ok("DISCARD ALL", "DISCARD ALL"), ins}, "/default"},
		{"SET LOCAL until COMMIT", []st{begin, in("SET LOCAL synchronous_commit = off", "SET"), insIn, commit}, "off/set_local"},
		{"SET LOCAL not after it", []st{begin, in("SET LOCAL synchronous_commit = off", "SET"), commit, ins}, "/default"},
		{"SET LOCAL without a block", []st{ok("SET LOCAL synchronous_commit = off", "SET"), ins}, "/default"},
		{"SET kept by COMMIT", []st{begin, in("SET synchronous_commit = off", "SET"), commit, ins}, "off/set"},
		{"SET undone by ROLLBACK", []st{begin, in("SET synchronous_commit = off", "SET"), rollback, ins}, "/default"},
		{"SET undone by a COMMIT that answers ROLLBACK", []st{begin, in("SET synchronous_commit = off", "SET"), ok("COMMIT", "ROLLBACK"), ins}, "/default"},
		{"SET undone by ROLLBACK TO", []st{begin, in("SET synchronous_commit = local", "SET"), in("SAVEPOINT a", "SAVEPOINT"),
			in("SET synchronous_commit = off", "SET"), in("ROLLBACK TO SAVEPOINT a", "ROLLBACK"), insIn, commit}, "local/set"},
		{"SET kept by RELEASE", []st{begin, in("SAVEPOINT a", "SAVEPOINT"), in("SET synchronous_commit = off", "SET"),
			in("RELEASE a", "RELEASE"), insIn, commit}, "off/set"},
		{"SET after SET LOCAL", []st{begin, in("SET LOCAL synchronous_commit = local", "SET"), in("SET synchronous_commit = off", "SET"), insIn, commit}, "off/set"},
		{"set_config", []st{ok("SELECT set_config('synchronous_commit', 'off', false)", "SELECT 1"), ins}, "/unknown"},
		{"set_config of another", []st{ok("SELECT set_config('search_path', 'synchronous', false)", "SELECT 1"), ins}, "/default"},
		{"pg_settings", []st{ok("UPDATE pg_settings SET setting = 'off' WHERE name = 'synchronous_commit'", "UPDATE 0"), ins}, "/unknown"},
		{"a known value again", []st{ok("SELECT set_config('synchronous_commit', 'off', false)", "SELECT 1"),
			ok("SET synchronous_commit = on", "SET"), ins}, "on/set"},
		{"one Query", []st{ok("SET LOCAL synchronous_commit = off; INSERT INTO t VALUES (1)", "SET|INSERT 0 1")}, "off/set_local"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, extended := range []bool{false, true} {
				if extended && tc.name == "one Query" {
					continue
				}
				steps := hello()
				for _, st := range tc.sts {
					if extended {
						steps = append(steps, c(pbe(st.sql), sync()), s(parsedBound(), tag(st.tag), ready(st.status)))
						continue
					}
					reply := []byte{}
					for _, tg := range splitTags(st.tag) {
						reply = append(reply, tag(tg)...)
					}
					steps = append(steps, c(query(st.sql)), s(reply, ready(st.status)))
				}
				got := run(t, steps...)
				p := got[len(got)-1].Postgres
				if level := p.SynchronousCommit + "/" + p.SyncSource; level != tc.want {
					t.Errorf("extended %v: %s, want %s", extended, level, tc.want)
				}
				sameInAnyOrder(t, steps)
			}
		})
	}
}

func splitTags(s string) (out []string) {
	for from, i := 0, 0; i <= len(s); i++ {
		if i == len(s) || s[i] == '|' {
			out = append(out, s[from:i])
			from = i + 1
		}
	}
	return out
}

// The server looks at the level when it commits: at the Sync.
func TestLevels_OfAPipelineIsThatOfItsSync(t *testing.T) {
	steps := append(hello(),
		c(pbe("INSERT INTO t VALUES (1)"), pbe("SET LOCAL synchronous_commit = local"), sync()),
		s(parsedBound(), tag("INSERT 0 1"), parsedBound(), tag("SET"), ready('I')),
		c(pbe("INSERT INTO t VALUES (1)"), sync()), s(parsedBound(), tag("INSERT 0 1"), ready('I')))
	wantBriefs(t, run(t, steps...), "startup ok",
		"INSERT ok write=tag level=local/set_local", "SET ok", "INSERT ok write=tag level=/default")
}

func TestLevels_AFailedSetChangesNothing(t *testing.T) {
	steps := append(hello(),
		c(query("SET synchronous_commit = bogus")), s(refused("22023"), ready('I')),
		c(query("SET synchronous_commit = off; SELECT 1/0")), s(tag("SET"), refused("22012"), ready('I')),
		c(query("INSERT INTO t VALUES (1)")), s(tag("INSERT 0 1"), ready('I')))
	wantBriefs(t, run(t, steps...), "startup ok", "SET error=22023", "SET ok", "SELECT error=22012",
		"INSERT ok write=tag level=/default")
}

func TestLevels_JoinedInMidStreamIsUnknown(t *testing.T) {
	got := run(t, c(query("INSERT INTO t VALUES (1)")), s(tag("INSERT 0 1"), ready('I')))
	wantBriefs(t, got, "INSERT ok write=tag level=/unknown")
}
