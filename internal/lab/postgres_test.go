package lab_test

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/wirewait/wirewait/internal/lab"
)

// helperEnv makes the test binary a process that starts a server and waits for
// its own death.
const helperEnv = "WIREWAIT_LAB_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		helper()
	}
	os.Exit(m.Run())
}

func helper() {
	pg, err := lab.StartPostgres(context.Background(), lab.PostgresOptions{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(pg.Addr())
	fmt.Println(filepath.Dir(pg.Socket()))
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func startPostgres(t *testing.T, o lab.PostgresOptions) *lab.Postgres {
	t.Helper()
	pg, err := lab.StartPostgres(t.Context(), o)
	if errors.Is(err, lab.ErrNoPostgres) && os.Getenv("WIREWAIT_CI") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.Stop(); err != nil {
			t.Error(err)
		}
	})
	return pg
}

// ownTemp gives a test a temporary directory of its own, so that it starts
// without a template and can see everything that's left behind. The server's
// user must be able to pass through it, which it can't through t.TempDir.
func ownTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "wwt")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func runs(t *testing.T, tmp string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(tmp, "wirewait-lab-*", "run-*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func queryText(t *testing.T, conn *pgx.Conn, sql string) string {
	t.Helper()
	var s string
	if err := conn.QueryRow(t.Context(), sql).Scan(&s); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return s
}

func TestPostgres_ServesAndLeavesNothing(t *testing.T) {
	tmp := ownTemp(t)
	awkward := `it's \ 100%`
	pg := startPostgres(t, lab.PostgresOptions{Settings: map[string]string{"wirewait.note": awkward}})
	conn := connect(t, pg.URL(pg.Addr()))
	if _, err := conn.Exec(t.Context(), "create table t (n int); insert into t values (7)"); err != nil {
		t.Fatal(err)
	}
	if got := queryText(t, conn, "select n::text from t"); got != "7" {
		t.Errorf("read %q, want 7", got)
	}
	if got := queryText(t, conn, "show wirewait.note"); got != awkward {
		t.Errorf("setting %q, want %q", got, awkward)
	}
	for name, want := range map[string]string{"fsync": "on", "listen_addresses": "127.0.0.1"} {
		if got := queryText(t, conn, "show "+name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if got := queryText(t, conn, "show server_version"); !strings.HasPrefix(got, pg.Version()) {
		t.Errorf("server_version %q, Version %q", got, pg.Version())
	}
	_, port, _ := net.SplitHostPort(pg.Addr())
	if n, _ := strconv.Atoi(port); n <= 0 || n >= 32768 {
		t.Errorf("port %s, want below 32768", port)
	}
	local := connect(t, "host="+filepath.Dir(pg.Socket())+" port="+port+" user=postgres dbname=postgres")
	if got := queryText(t, local, "select coalesce(host(inet_server_addr()), 'unix')"); got != "unix" {
		t.Errorf("connected through %s, want the unix socket", got)
	}
	if len(runs(t, tmp)) != 1 {
		t.Errorf("workspaces %v, want one", runs(t, tmp))
	}

	if err := pg.Stop(); err != nil {
		t.Fatal(err)
	}
	if left := runs(t, tmp); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if c, err := net.Dial("tcp", pg.Addr()); err == nil {
		c.Close()
		t.Error("the server still listens after Stop")
	}
	if err := pg.Stop(); err != nil {
		t.Errorf("second Stop: %v", err)
	}
}

func TestPostgres_NeverRunsAsRoot(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	pg := startPostgres(t, lab.PostgresOptions{})
	conn := connect(t, pg.URL(pg.Addr()))
	info, err := os.Stat("/proc/" + queryText(t, conn, "select pg_backend_pid()::text"))
	if err != nil {
		t.Fatal(err)
	}
	uid := int(info.Sys().(*syscall.Stat_t).Uid)
	if uid == 0 {
		t.Error("the server runs as root")
	}
	if me := os.Getuid(); me != 0 && uid != me {
		t.Errorf("the server runs as %d, want %d", uid, me)
	}
}

func TestPostgres_TLSCertificateVerifies(t *testing.T) {
	pg := startPostgres(t, lab.PostgresOptions{TLS: true})
	config, err := pgx.ParseConfig(pg.URL(pg.Addr()) + "&sslmode=verify-full")
	if err != nil {
		t.Fatal(err)
	}
	if config.TLSConfig == nil {
		t.Fatal("the later sslmode didn't win")
	}
	config.TLSConfig.RootCAs = x509.NewCertPool()
	if !config.TLSConfig.RootCAs.AppendCertsFromPEM(pg.Certificate()) {
		t.Fatal("Certificate is not PEM")
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if got := queryText(t, conn, "select ssl::text from pg_stat_ssl where pid = pg_backend_pid()"); got != "true" {
		t.Errorf("ssl = %s, want true", got)
	}
}

func TestPostgres_FailedStartLeavesNothing(t *testing.T) {
	startPostgres(t, lab.PostgresOptions{}) // skips where there are no binaries
	for name, settings := range map[string]map[string]string{
		"refused by the server": {"shared_buffers": "no such size"},
		"not a setting's name":  {"port = 1\nfsync": "off"},
		"a line end":            {"cluster_name": "a\nb"},
	} {
		t.Run(name, func(t *testing.T) {
			tmp := ownTemp(t)
			pg, err := lab.StartPostgres(t.Context(), lab.PostgresOptions{Settings: settings})
			if err == nil {
				pg.Stop()
				t.Fatal("started, want an error")
			}
			if name == "refused by the server" && !strings.Contains(err.Error(), "no such size") {
				t.Errorf("%v doesn't hold the server's own words", err)
			}
			if left := runs(t, tmp); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestPostgres_StartEndsWithContext(t *testing.T) {
	startPostgres(t, lab.PostgresOptions{})
	tmp := ownTemp(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	pg, err := lab.StartPostgres(ctx, lab.PostgresOptions{})
	if err == nil {
		pg.Stop()
		t.Fatal("started with a context that is over")
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
	if left := runs(t, tmp); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestPostgres_ConcurrentFirstStarts(t *testing.T) {
	startPostgres(t, lab.PostgresOptions{})
	ownTemp(t)
	const n = 3
	var wg sync.WaitGroup
	servers := make([]*lab.Postgres, n)
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() { servers[i], errs[i] = lab.StartPostgres(t.Context(), lab.PostgresOptions{}) })
	}
	wg.Wait()
	seen := map[string]bool{}
	for i, pg := range servers {
		if errs[i] != nil {
			t.Error(errs[i])
			continue
		}
		defer pg.Stop()
		seen[pg.Addr()] = true
		conn := connect(t, pg.URL(pg.Addr()))
		queryText(t, conn, "select version()")
	}
	if len(seen) != n {
		t.Errorf("%d addresses, want %d", len(seen), n)
	}
}

func TestPostgres_NoBinaries(t *testing.T) {
	_, err := lab.StartPostgres(t.Context(), lab.PostgresOptions{BinDir: t.TempDir()})
	if !errors.Is(err, lab.ErrNoPostgres) {
		t.Errorf("%v, want ErrNoPostgres", err)
	}
	t.Setenv(lab.PostgresBinEnv, t.TempDir())
	_, err = lab.StartPostgres(t.Context(), lab.PostgresOptions{})
	if !errors.Is(err, lab.ErrNoPostgres) || !strings.Contains(err.Error(), lab.PostgresBinEnv) {
		t.Errorf("%v, want ErrNoPostgres that names %s", err, lab.PostgresBinEnv)
	}
}

// A process that is killed takes its server with it, and the next one clears
// its files away.
func TestPostgres_KilledOwnerLeavesNoServer(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a child with its parent")
	}
	startPostgres(t, lab.PostgresOptions{})
	tmp := ownTemp(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), helperEnv+"=1")
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	addr := lines.Text()
	lines.Scan()
	conn := connect(t, "postgres://postgres@"+addr+"/postgres?sslmode=disable")
	queryText(t, conn, "select version()")

	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	// The session ends when the server does: a read that waits for it, with no
	// clock of ours. The test's own time limit is the bound.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := conn.WaitForNotification(ctx); ctx.Err() != nil {
		t.Fatalf("the server lives on after its owner was killed: %v", err)
	}
	for {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			break
		}
		c.Close()
		if ctx.Err() != nil {
			t.Fatal("the server still listens after its owner was killed")
		}
	}
	if len(runs(t, tmp)) != 1 {
		t.Fatalf("workspaces %v, want the dead one", runs(t, tmp))
	}
	pg, err := lab.StartPostgres(t.Context(), lab.PostgresOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer pg.Stop()
	if left := runs(t, tmp); len(left) != 1 || !strings.HasPrefix(pg.Socket(), left[0]) {
		t.Errorf("workspaces %v, want only that of %s", left, pg.Socket())
	}
}
