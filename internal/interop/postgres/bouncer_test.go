package postgres

import (
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/wirewait/wirewait/internal/interop/rig"
	"github.com/wirewait/wirewait/internal/testenv"
)

// startBouncer starts a PgBouncer in front of addr and returns its address and
// what ends it, which the test's end does otherwise. It does not run as root.
func startBouncer(t *testing.T, addr string) (listen string, stop func()) {
	t.Helper()
	path := onPath(t, "pgbouncer", "pgbouncer")
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	listen = rig.FreeAddr(t)
	_, listenPort, _ := net.SplitHostPort(listen)
	dir := openDir(t)
	users, config := filepath.Join(dir, "users.txt"), filepath.Join(dir, "pgbouncer.ini")
	files := map[string]string{users: `"postgres" ""` + "\n", config: fmt.Sprintf(`[databases]
* = host=%s port=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = trust
auth_file = %s
pool_mode = session
ignore_startup_parameters = extra_float_digits
`, host, port, listenPort, users)}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(path, config)
	cmd.Dir = "/"
	cmd.SysProcAttr = unprivileged(t)
	p := rig.StartProcess(t, cmd)
	listens := func() bool {
		c, err := net.Dial("tcp", listen)
		if err == nil {
			c.Close()
		}
		return err == nil
	}
	if !p.Until(listens) {
		t.Fatalf("PgBouncer does not listen on %s:\n%s", listen, p.Log.String())
	}
	return listen, p.Stop
}

// openDir is a directory of the test that other users can enter.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// unprivileged are the attributes of a program that does not run as root: that
// of a root process runs as postgres.
func unprivileged(t *testing.T) *syscall.SysProcAttr {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		testenv.Missing(t, "no user postgres here: apt-get install postgresql")
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

// PgBouncer before the link: clients, PgBouncer, the link, the server. Behind it:
// clients, the link, PgBouncer, the server. Both are held against PgBouncer alone.
func TestPgBouncer(t *testing.T) {
	s := startServer(t, machine)
	c := psycopgClient()
	const db = "matrix"
	version := versionNumber.FindString(must(t, exec.Command(onPath(t, "pgbouncer", "pgbouncer"), "--version")))
	s.freshDatabase(t, db)
	alone, _ := startBouncer(t, s.Addr())
	direct := c.run(t, alone, db)
	if direct.Code != 0 {
		t.Fatalf("without the link: %+v", direct)
	}
	for name, start := range map[string]func(t *testing.T) (l *link, addr string, stop func()){
		"PgBouncer before the link": func(t *testing.T) (*link, string, func()) {
			l := startLink(t, s.Addr())
			addr, stop := startBouncer(t, l.Addr())
			return l, addr, stop
		},
		"PgBouncer behind the link": func(t *testing.T) (*link, string, func()) {
			addr, _ := startBouncer(t, s.Addr())
			l := startLink(t, addr)
			return l, l.Addr(), func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.freshDatabase(t, db)
			l, addr, stop := start(t)
			same(t, direct, c.run(t, addr, db))
			stop() // it keeps its connections to the server
			got := l.finish()
			if !maps.Equal(got, c.writes) {
				t.Errorf("writes %v, want %v", got, c.writes)
			}
			report(t, row{
				Client: name, Version: version, Server: s.Version(), Writes: got, Exchanges: l.all,
				Does: "what psycopg did, session pooling",
			})
		})
	}
}
