package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wirewait/wirewait/internal/lab"
)

func startPostgres(t *testing.T, o lab.PostgresOptions) *lab.Postgres {
	t.Helper()
	pg, err := lab.StartPostgres(t.Context(), o)
	if err != nil {
		if os.Getenv("WIREWAIT_CI") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := pg.Stop(); err != nil {
			t.Error(err)
		}
	})
	return pg
}

// psql runs statements as a person would and returns what it prints.
func psql(t *testing.T, pg *lab.Postgres, connection string, statements ...string) string {
	t.Helper()
	program := filepath.Join(pg.BinDir(), "psql")
	if _, err := os.Stat(program); err != nil {
		if program, err = exec.LookPath("psql"); err != nil {
			if os.Getenv("WIREWAIT_CI") == "1" {
				t.Fatal(err)
			}
			t.Skip("psql is not installed: apt-get install postgresql-client-15")
		}
	}
	args := []string{"-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d", connection}
	for _, s := range statements {
		args = append(args, "-c", s)
	}
	cmd := exec.Command(program, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("psql: %v\n%s", err, out.String())
	}
	return strings.TrimSpace(out.String())
}

// TestRun_StockPostgres is the first real user's pair: a server with TLS on, a
// psql that prefers it, and no option but --tls decline.
func TestRun_StockPostgres(t *testing.T) {
	pg := startPostgres(t, lab.PostgresOptions{TLS: true})
	w := start(t, []string{"OTEL_TRACES_EXPORTER=console"},
		"--listen", "127.0.0.1:0", "--upstream", pg.Addr(), "--rtt", "20ms", "--tls", "decline", "--statement-text")
	host, port, _ := strings.Cut(w.addr(), ":")
	got := psql(t, pg, "host="+host+" port="+port+" user=postgres dbname=postgres",
		"CREATE TABLE orders (id int, note text)",
		"INSERT INTO orders VALUES (1, 'for your eyes only')",
		"SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
	if got != "f" {
		t.Errorf("psql prints %q, want f: not encrypted", got)
	}
	w.signal(syscall.SIGTERM)
	w.stopped()

	printed := w.stdout.String()
	if strings.Contains(printed, "eyes only") {
		t.Error("a literal is on a span")
	}
	insert := consoleSpans(t, &w.stdout)["INSERT orders"]
	if insert.Name == "" {
		t.Fatalf("no span INSERT orders:\n%s\n%s", printed, w.log())
	}
	for key, want := range map[string]any{
		"db.system.name": "postgresql", "db.namespace": "postgres", "db.operation.name": "INSERT",
		"postgresql.application_name": "psql",
	} {
		if got := insert.attribute(key); got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	if got, _ := insert.attribute("db.query.text").(string); !strings.HasPrefix(got, "INSERT INTO orders VALUES ($?, $?)") {
		t.Errorf("db.query.text is %q", got)
	}
	for _, part := range []string{"wirewait.wait.request_ms", "wirewait.wait.reply_ms"} {
		if ms, _ := insert.attribute(part).(float64); ms < 10 {
			t.Errorf("%s is %v, want at least 10", part, insert.attribute(part))
		}
	}
}

func TestRun_EncryptedBytesPassAndAreSaid(t *testing.T) {
	pg := startPostgres(t, lab.PostgresOptions{TLS: true})
	w := start(t, []string{"OTEL_TRACES_EXPORTER=console"}, "--listen", "127.0.0.1:0", "--upstream", pg.Addr())
	host, port, _ := strings.Cut(w.addr(), ":")
	for range 2 {
		if got := psql(t, pg, "sslmode=require user=postgres dbname=postgres host="+host+" port="+port, "SELECT 42"); got != "42" {
			t.Errorf("psql prints %q", got)
		}
	}
	w.signal(syscall.SIGTERM)
	w.stopped()
	if n := strings.Count(w.log(), "encrypted, not decoded: use --tls decline or --tls-cert/--tls-key"); n != 1 {
		t.Errorf("said %d times, want once:\n%s", n, w.log())
	}
}

func TestRun_UnixSockets(t *testing.T) {
	pg := startPostgres(t, lab.PostgresOptions{})
	if pg.Socket() == "" {
		t.Skip("the temporary directory's name is too long for a unix socket: set TMPDIR")
	}
	dir, err := os.MkdirTemp("", "ww")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	w := start(t, nil, "--listen", "unix:"+dir+"/.s.PGSQL.5432", "--upstream", "unix:"+pg.Socket(), "--protocol", "postgres")
	if got, want := w.addr(), "unix:"+dir+"/.s.PGSQL.5432"; got != want {
		t.Errorf("listens on %s, want %s", got, want)
	}
	if got := psql(t, pg, "host="+dir+" user=postgres dbname=postgres", "SELECT inet_client_addr() IS NULL"); got != "t" {
		t.Errorf("psql prints %q, want t: no address", got)
	}
	w.signal(syscall.SIGTERM)
	w.stopped()
	if _, err := os.Stat(dir + "/.s.PGSQL.5432"); err == nil {
		t.Error("the socket was left behind")
	}
}
