package observe

import (
	"strings"
	"testing"
)

func TestPostgresConfig_AnotherHostOfTheSameUser(t *testing.T) {
	t.Parallel()
	c, err := postgresConfig("pg.s1", "postgres://reader:secret@db-a:5432/postgres?sslmode=verify-full", "db-b:6543")
	if err != nil {
		t.Fatal(err)
	}
	if c.Host != "db-b" || c.Port != 6543 || c.User != "reader" || c.Password != "secret" || c.TLSConfig.ServerName != "db-b" {
		t.Errorf("%s:%d as %s, certificate of %s", c.Host, c.Port, c.User, c.TLSConfig.ServerName)
	}
	c, err = postgresConfig("pg.s1", "postgres://reader@db-a/postgres?sslmode=prefer", "[::1]:6543")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range c.Fallbacks {
		if f.Host != "::1" || f.Port != 6543 {
			t.Errorf("a fallback leads to %s:%d", f.Host, f.Port)
		}
	}
	if c.RuntimeParams["default_transaction_read_only"] != "on" {
		t.Error("it could write")
	}
	for _, addr := range []string{"db-b", "db-b:x", "db-b:70000"} {
		if _, err := postgresConfig("pg.s1", "postgres://reader:secret@db-a/", addr); err == nil || !strings.Contains(err.Error(), "pg.s1") {
			t.Errorf("%s: %v", addr, err)
		}
	}
}
