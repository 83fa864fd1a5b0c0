package main

import (
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/proxy/admin"
)

// What is shown of addresses that somebody wrote in a hurry is right where nothing
// is secret, and has no password.
func TestRedactURI(t *testing.T) {
	for wrote, want := range map[string]string{
		"127.0.0.1:5432":                            "127.0.0.1:5432",
		"[::1]:5432":                                "[::1]:5432",
		"unix:/run/a@b:c.sock":                      "unix:/run/a@b:c.sock",
		"mongodb://u:planted@h:1,[::1]:2,i/?a=b":    "mongodb://h:1,[::1]:2,i/...",
		"mongodb://u:plan@ted/planted?@h:27017/":    "mongodb://h:27017/",
		"mongodb://u:planted":                       "mongodb://u:...",
		"mongodb://h,u:planted/planted?replicaSet=": "mongodb://h,u:.../...",
		"postgres://h/db?password=planted":          "postgres://h/...",
		"postgres://h?password=planted":             "postgres://h?...",
		"u:planted@h:5432":                          "h:5432",
		"u:planted":                                 "u:...",
	} {
		if got := redactURI(wrote); got != want {
			t.Errorf("%s is shown as %s, not %s", wrote, got, want)
		}
	}
}

func TestRun_ComplainsWithoutPasswords(t *testing.T) {
	for _, upstream := range []string{
		"postgres://h/db?password=" + planted,
		"postgres://u:" + planted,
		"mongodb://u:" + planted,
		"mongodb://u:" + planted + "/?replicaSet=rs0",
		"mongodb://h/?replicaSet=rs0&a=%zz&password=" + planted,
		"mongodb://h/?tlsCertificateKeyFilePassword=" + planted,
		"mongodb+srv://h/?password=" + planted,
		"u:" + planted + "@h",
		"u:" + planted + "@h:5432",
	} {
		code, _, said := command(t, "run", "--listen", "127.0.0.1:0", "--admin", "off", "--upstream", upstream)
		if code != 2 || !strings.Contains(said, "--upstream") || strings.Contains(said, planted) {
			t.Errorf("%s: exit code %d, %s", upstream, code, said)
		}
	}
}

// A proxy that is made through Toxiproxy's API may have any name.
func TestTables_MoveNoCursor(t *testing.T) {
	name := "a\x1b[31m\nb"
	for _, table := range []string{
		linkTable([]admin.Link{{Name: name}}),
		connectionTable([]admin.Connection{{Link: name}}, time.Time{}),
		ruleTable([]admin.Rule{{Name: name}}),
	} {
		if !strings.Contains(table, "a?[31m?b ") || strings.Contains(table, "\x1b") {
			t.Errorf("%q", table)
		}
	}
}
