package page

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/wirewait/wirewait/internal/testenv"
)

// TestPage_Postgres: what a commit waits for is its synchronous_commit.
func TestPage_Postgres(t *testing.T) {
	lab := launch(t, "lab", "postgres", "--admin", "127.0.0.1:0")
	if !lab.Until(func() bool { return strings.Contains(lab.Log.String(), "page: ") }) {
		if strings.Contains(lab.Log.String(), "PostgreSQL") {
			testenv.Missing(t, lab.Log.String())
		}
		t.Fatal(lab.Log.String())
	}
	lab.page = lab.said(t, `(?m)^page: (http://\S+)$`)
	c, err := pgx.Connect(t.Context(), lab.said(t, `(?m)^through wirewait\s+(\S+)$`))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	run := func(sql string, args ...any) {
		t.Helper()
		if _, err := c.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	tb := open(t, lab.page, 1280, 900)
	tb.until("document.querySelector('.chart .empty').checkVisibility()")
	run("CREATE TABLE orders (id int, note text)")
	for _, level := range []string{"off", "local", "remote_apply"} {
		run("SET synchronous_commit = " + level)
		for id := range 5 {
			run("INSERT INTO orders VALUES ($1, 'for your eyes only')", id)
		}
	}
	for _, level := range []string{"off", "local", "remote_apply"} {
		tb.until("[...document.querySelectorAll('#concerns tbody tr')].some(r => r.cells[0].textContent === %q && r.cells[1].textContent === '5')", level)
	}
	tb.openWrite("remote_apply")
	for _, want := range []string{"INSERT orders", "replication", "s1"} {
		if said := tb.text("#write"); !strings.Contains(said, want) {
			t.Errorf("%q lacks %s", said, want)
		}
	}
	if strings.Contains(tb.text("body"), "eyes only") {
		t.Error("a literal is on the page")
	}
	tb.clean()
}
