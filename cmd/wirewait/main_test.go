package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// asWirewait makes this test binary the command itself.
const asWirewait = "WIREWAIT_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asWirewait) != "" {
		main()
	}
	os.Exit(m.Run())
}

// golden compares got with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update rewrites it):\n%s", path, got)
	}
}

// transcript runs commands and writes down what a person would see of each.
func transcript(t *testing.T, commands ...string) string {
	t.Helper()
	var b strings.Builder
	for _, c := range commands {
		var out, errs bytes.Buffer
		code := run(t.Context(), strings.Fields(c), strings.NewReader(""), &out, &errs)
		fmt.Fprintf(&b, "$ %s\n%s%s", c, out.String(), errs.String())
		if code != 0 {
			fmt.Fprintf(&b, "exit %d\n", code)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestHelp(t *testing.T) {
	golden(t, "help.txt", transcript(t, "wirewait", "wirewait --help", "wirewait run --help", "wirewait decode --help", "wirewait report --help",
		"wirewait assert --help", "wirewait connections --help", "wirewait scenario start --help", "wirewait rules --help", "wirewait help version"))
}

func TestBadUsage(t *testing.T) {
	golden(t, "usage.txt", transcript(t,
		"wirewait nonsense",
		"wirewait --rtt 80ms",
		"wirewait help nonsense",
		"wirewait run",
		"wirewait run --rtt",
		"wirewait run --upstream db:5432 --latency 80ms",
		"wirewait run --upstream db:5432 --connect=perhaps",
		"wirewait run wirewait.yaml",
		"wirewait run wirewait.yaml --rtt 80ms",
		"wirewait run --upstream mongodb://user:secret@db:27017/",
		"wirewait run --upstream postgres://user:secret@db:5432/shop",
		"wirewait run --upstream mongodb+srv://user:secret@db.example/?replicaSet=rs0 --protocol postgres",
		"wirewait run --upstream mongodb://user:secret@a,b:x,:27017/?replicaSet=rs0 --listen 0.0.0.0:65534",
		"wirewait run --upstream mongodb://a,b/?replicaSet=rs0 --listen unix:/tmp/s",
		"wirewait run --upstream db --listen :5432 --admin :8474",
		"wirewait run --upstream unix: --listen db:port --admin here",
		"wirewait run --upstream db:5432 --rtt 80 --jitter fast --drain -1s --seed -3",
		"wirewait run --upstream db:5432 --rtt -5ms --delay-to-server 1ms",
		"wirewait run --upstream db:5432 --jitter 5ms",
		"wirewait run --upstream db:5432 --rtt 80ms --jitter 41ms",
		"wirewait run --upstream db:5432 --protocol mysql --tls maybe --upstream-tls on --children some --driver fast --log-level loud",
		"wirewait run --upstream db:5432 --tls terminate",
		"wirewait run --upstream db:5432 --tls decline --tls-cert a.pem --tls-key a.key --protocol mongodb",
		"wirewait run --upstream db:5432 --upstream-tls require --upstream-ca ca.pem",
		"wirewait run --upstream db:5432 --tls auto --tls-cert a.pem --tls-key a.key --upstream-cert b.pem --upstream-tls-direct",
		"wirewait run --upstream db:5432 --tls-client-ca ca.pem --upstream-cert b.pem --upstream-key b.key",
		"wirewait run --upstream db:27017 --protocol mongodb --tls decline --upstream-tls prefer --upstream-tls-direct",
		"wirewait run --upstream db:5432 --upstream-server-name db",
		"wirewait decode",
		"wirewait decode --protocol tcp --to-server - --to-client -",
		"wirewait decode --protocol postgres a.bin --to-server b.bin",
		"wirewait decode --protocol postgres a.bin",
		"wirewait decode --protocol postgres --to-server /nonexistent/a.bin",
		"wirewait version please",
	))
}

func TestVersion(t *testing.T) {
	got := transcript(t, "wirewait version")
	if !strings.Contains(got, "\nwirewait ") || !strings.Contains(got, ", go1.") || strings.Contains(got, "exit") {
		t.Errorf("version prints %q", got)
	}
	if got := describeBuild(nil); !strings.HasPrefix(got, "wirewait (devel), go1.") {
		t.Errorf("without build information: %q", got)
	}
}
