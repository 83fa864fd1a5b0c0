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
	"time"
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
	listen = freeAddr(t)
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
	var log lockedLog
	cmd.Stdout, cmd.Stderr = &log, &log
	return listen, startUntilReady(t, cmd, listen, &log)
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
		missing(t, "no user postgres here: apt-get install postgresql")
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

// startUntilReady starts a server and returns when it listens on addr. stop ends
// it, and so does the test's end.
func startUntilReady(t *testing.T, cmd *exec.Cmd, addr string, log *lockedLog) (stop func()) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
	}
	t.Cleanup(stop)
	for deadline := time.Now().Add(time.Minute); ; {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
			return stop
		}
		select {
		case <-ended:
			t.Fatalf("%s ended: %v\n%s", cmd.Path, cmd.ProcessState, log.text())
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not listen on %s: %v\n%s", cmd.Path, addr, err, log.text())
		}
	}
}

// freeAddr is below the range from which the kernel takes the ports of outgoing
// connections.
func freeAddr(t *testing.T) string {
	t.Helper()
	for port := 18000 + os.Getpid()%1000; port < 32000; port++ {
		l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no free port")
	return ""
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
			addr, stop := startBouncer(t, l.addr())
			return l, addr, stop
		},
		"PgBouncer behind the link": func(t *testing.T) (*link, string, func()) {
			addr, _ := startBouncer(t, s.Addr())
			l := startLink(t, addr)
			return l, l.addr(), func() {}
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
