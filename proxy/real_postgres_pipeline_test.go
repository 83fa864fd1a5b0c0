//go:build unix

package proxy_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/internal/lab"
)

// A pipeline of 10,000 statements is sent while its answers come in. The last of
// the second one fails, and undoes all before it.
func TestPostgres_10_000StatementsInOnePipeline(t *testing.T) {
	const n = 10_000
	pg := startPostgres(t, lab.PostgresOptions{})
	psql(t, pg, pg.Addr(), "postgres", "-qc", "create table t (n int)").must(t)
	lc := postgresLink(pg)
	lc.Delay = inject.Symmetric(10*time.Millisecond, 2*time.Millisecond)
	r := newRig(t, lc)
	c := startRaw(t, r.addr())
	play := func(last []byte) (results, errors int, status string) {
		t.Helper()
		sent := make(chan error, 1)
		go func() {
			_, err := c.Write(bytes.Join([][]byte{bytes.Repeat(pbe("insert into t values (1)"), n-1), last, synced}, nil))
			sent <- err
		}()
		for status == "" {
			switch word := c.word(); {
			case word == "C(INSERT 0 1)":
				results++
			case strings.HasPrefix(word, "E("):
				errors++
			case strings.HasPrefix(word, "Z("), word == "EOF":
				status = word
			}
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		return results, errors, status
	}
	if results, errors, status := play(pbe("insert into t values (2)")); results != n || errors != 0 || status != "Z(I)" {
		t.Errorf("%d results, %d errors, then %s", results, errors, status)
	}
	if results, errors, status := play(pbe("insert into nowhere values (2)")); results != n-1 || errors != 1 || status != "Z(I)" {
		t.Errorf("%d results, %d errors, then %s; want one error", results, errors, status)
	}
	c.Close()
	if got := psql(t, pg, pg.Addr(), "postgres", "-Atc", "select count(*) from t").must(t); got != fmt.Sprintln(n) {
		t.Errorf("the table has %s rows, want %d", got, n)
	}
	got := r.writes(t)
	if want := map[string]int{"INSERT": 2 * n}; !maps.Equal(got, want) {
		t.Errorf("writes %v, want %v", got, want)
	}
	if want := map[string]int{"INSERT": n - 1}; !maps.Equal(r.undone, want) {
		t.Errorf("rolled back %v, want %v", r.undone, want)
	}
}

// 100,000 rows come through unchanged: all at once, by a cursor, and by portals
// with a row limit.
func TestPostgres_100_000RowResults(t *testing.T) {
	const n = 100_000
	pg := startPostgres(t, lab.PostgresOptions{})
	sql := fmt.Sprintf("select g, md5(g::text), repeat('x', g %% 50) from generate_series(1, %d) g", n)
	ask := func(addr string, cursor string) string {
		c := psql(t, pg, addr, "postgres", "-At", "-v", "FETCH_COUNT="+cursor, "-c", sql)
		sum, rows := sha256.New(), new(lines)
		c.Stdout = io.MultiWriter(sum, rows)
		c.must(t)
		return fmt.Sprintf("%d rows, %x", *rows, sum.Sum(nil))
	}
	direct := ask(pg.Addr(), "0")
	if !strings.HasPrefix(direct, fmt.Sprintf("%d rows, ", n)) {
		t.Fatal(direct)
	}
	lc := postgresLink(pg)
	lc.Delay = inject.Symmetric(4*time.Millisecond, time.Millisecond)
	r := newRig(t, lc)
	for _, cursor := range []string{"0", "5000"} {
		if through := ask(r.addr(), cursor); through != direct {
			t.Errorf("FETCH_COUNT %s: %s, want %s", cursor, through, direct)
		}
	}
	c := startRaw(t, r.addr())
	c.send(parse("", sql), bind("", ""), bytes.Repeat(execute("", 100), n/100+1), synced)
	rows, suspended, end := 0, 0, ""
	for end == "" {
		switch word := c.word(); word {
		case "D":
			rows++
		case "s":
			suspended++
		case "1", "2", "C(SELECT 0)":
		default:
			end = word
		}
	}
	if rows != n || suspended != n/100 || end != "Z(I)" {
		t.Errorf("by 100 rows: %d rows, suspended %d times, then %s", rows, suspended, end)
	}
	c.Close()
	if got := r.writes(t); len(got) != 0 {
		t.Errorf("writes %v", got)
	}
}

// lines counts them.
type lines int

func (l *lines) Write(b []byte) (int, error) {
	*l += lines(bytes.Count(b, []byte{'\n'}))
	return len(b), nil
}
