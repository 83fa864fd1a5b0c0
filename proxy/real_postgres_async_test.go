//go:build unix

package proxy_test

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/internal/lab"
)

// untilServer waits until the server has a session in that state whose last
// statement begins with the text given.
func untilServer(t *testing.T, pg *lab.Postgres, state, statement string) {
	t.Helper()
	sql := fmt.Sprintf("select count(*) from pg_stat_activity where state = '%s' and query like '%s%%'", state, statement)
	soon(t, statement+" is "+state, func() bool {
		return psql(t, pg, pg.Addr(), "postgres", "-Atc", sql).must(t) == "1\n"
	})
}

func TestPsql_ListenAndNotify(t *testing.T) {
	pg := startPostgres(t, lab.PostgresOptions{})
	play := func(addr string) outcome {
		listener := psql(t, pg, addr, "postgres", "-f", "-")
		r, w := io.Pipe()
		listener.Stdin = r
		if err := listener.Start(); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(w, "listen news;\n")
		untilServer(t, pg, "idle", "listen news")
		for _, paper := range []string{"morning", "evening"} {
			psql(t, pg, addr, "postgres", "-qc", "notify news, '"+paper+"'").must(t)
		}
		// psql shows what came in between after its next command.
		_, _ = io.WriteString(w, "select 'awake' as state;\n")
		w.Close()
		if err := listener.Wait(); err != nil {
			t.Errorf("psql: %v\n%s", err, listener.err.String())
		}
		out := regexp.MustCompile(`PID \d+`).ReplaceAllString(listener.out.String(), "PID n")
		return outcome{out, listener.err.String(), listener.ProcessState.ExitCode()}
	}
	direct := play(pg.Addr())
	if !strings.Contains(direct.Out, `"news" with payload "morning"`) || !strings.Contains(direct.Out, `"news" with payload "evening"`) {
		t.Fatalf("nothing was heard: %+v", direct)
	}
	lc := postgresLink(pg)
	lc.Delay = inject.Symmetric(20*time.Millisecond, 5*time.Millisecond)
	r := newRig(t, lc)
	if through := play(r.addr()); through != direct {
		t.Errorf("through the proxy %+v\ndirect %+v", through, direct)
	}
	if got := r.writes(t); len(got) != 0 {
		t.Errorf("writes %v, want none", got)
	}
}

// A cancel request that came late would hit the statement after the one it was
// meant for, so it takes none of the delay.
func TestPsql_CancelUnderDelay(t *testing.T) {
	pg := startPostgres(t, lab.PostgresOptions{})
	psql(t, pg, pg.Addr(), "postgres", "-qc", "create table after (n int)").must(t)
	play := func(addr string) (outcome, time.Duration) {
		c := newTool(t, pg, addr, "postgres", "psql", "-X", "-v", "VERBOSITY=verbose",
			"-c", "select pg_sleep(60)", "-c", "insert into after values (1)", "-c", "delete from after where n = 1")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		untilServer(t, pg, "active", "select pg_sleep(60)")
		began := time.Now()
		if err := c.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait() // its code is part of the outcome
		return outcome{c.out.String(), c.err.String(), c.ProcessState.ExitCode()}, time.Since(began)
	}
	direct, _ := play(pg.Addr())
	if !strings.Contains(direct.Err, "57014") || direct.Out != "INSERT 0 1\nDELETE 1\n" {
		t.Fatalf("direct: %+v, want a cancelled statement and two that work", direct)
	}
	const rtt = 200 * time.Millisecond
	lc := postgresLink(pg)
	lc.Delay = inject.Symmetric(rtt, 0)
	r := newRig(t, lc)
	through, took := play(r.addr())
	if through != direct {
		t.Errorf("through the proxy %+v\ndirect %+v", through, direct)
	}
	// The error's way back, and a round trip for each of the other statements.
	if took < rtt/2+2*rtt || took > 30*time.Second {
		t.Errorf("from the cancel to the end took %v, want %v and little more", took, rtt/2+2*rtt)
	}
	if got, want := r.writes(t), map[string]int{"INSERT": 1, "DELETE": 1}; !maps.Equal(got, want) {
		t.Errorf("writes %v, want %v", got, want)
	}
}
