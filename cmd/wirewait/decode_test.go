package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

// own is the path of one of the captures that this repository keeps.
func own(name string) string { return filepath.Join("testdata", "captures", name) }

func TestDecode_Golden(t *testing.T) {
	tests := []struct {
		golden string
		args   string
	}{
		{"mongodb-write-concerns", "--protocol mongodb --to-server ferretdb-pymongo.1.c2s.bin --to-client ferretdb-pymongo.1.s2c.bin"},
		{"mongodb-zstd-requests", "--protocol mongodb --to-server stub-godriver-zstd.1.c2s.bin"},
		{"mongodb-legacy-requests", "--protocol mongodb --to-server stub-libmongo-client-legacy.c2s.bin"},
		{"mongodb-replies", "--protocol mongodb --to-client ferretdb-pymongo.1.s2c.bin"},
		{"postgres-pipeline-errors", "--protocol postgres --text --to-server libpq-abort.c2s.bin --to-client libpq-abort.s2c.bin"},
		{"postgres-psycopg3", "--protocol postgres --text --to-server psycopg3.c2s.bin --to-client psycopg3.s2c.bin"},
		{"postgres-simple", "--protocol postgres --to-server pgbench-simple.1.c2s.bin --to-client pgbench-simple.1.s2c.bin"},
		{"postgres-pipeline", "--protocol postgres --to-server pgbench-pipeline.1.c2s.bin --to-client pgbench-pipeline.1.s2c.bin"},
		{"postgres-terminated", "--protocol postgres --text --to-server terminate-backend.c2s.bin --to-client terminate-backend.s2c.bin"},
		{"postgres-replication", "--protocol postgres --text --to-server recvlogical-test_decoding.1.c2s.bin --to-client recvlogical-test_decoding.1.s2c.bin"},
		{"postgres-requests", "--protocol postgres --to-server psycopg3.c2s.bin"},
		{"postgres-replies", "--protocol postgres --to-client psycopg3.s2c.bin"},
	}
	for _, tt := range tests {
		t.Run(tt.golden, func(t *testing.T) {
			args := []string{"wirewait", "decode"}
			for _, a := range strings.Fields(tt.args) {
				if strings.HasSuffix(a, ".bin") {
					a = own(a)
				}
				args = append(args, a)
			}
			var out, errs bytes.Buffer
			if code := run(t.Context(), args, strings.NewReader(""), &out, &errs); code != 0 {
				t.Fatalf("exit %d: %s", code, errs.String())
			}
			golden(t, "decode-"+tt.golden+".jsonl", out.String())
		})
	}
}

// TestDecode_AnyCut: a stream that is cut gives what can be read, and every
// byte of it is a message's, an exchange's or trailing.
func TestDecode_AnyCut(t *testing.T) {
	for protocol, name := range map[string]string{"mongodb": "stub-libmongo-client-legacy.c2s.bin", "postgres": "libpq-abort.c2s.bin"} {
		whole, err := os.ReadFile(own(name))
		if err != nil {
			t.Fatal(err)
		}
		cut := filepath.Join(t.TempDir(), "cut.bin")
		messages, trailed := 0, false
		for n := 0; n <= len(whole); n++ {
			if err := os.WriteFile(cut, whole[:n], 0o644); err != nil {
				t.Fatal(err)
			}
			lines, sum := decodeLines(t, "--protocol", protocol, "--to-server", cut)
			if sum.MessagesToServer < messages || sum.MessagesToServer > messages+1 {
				t.Fatalf("%s cut at %d: %d messages after %d", name, n, sum.MessagesToServer, messages)
			}
			if whole := sum.MessagesToServer > messages; whole && sum.TrailingBytes != 0 {
				t.Errorf("%s cut at %d, a message's end: %d trailing bytes", name, n, sum.TrailingBytes)
			}
			var counted int64
			for _, l := range lines {
				counted += l.BytesToServer
			}
			// Some of PostgreSQL's messages (Terminate) belong to no exchange.
			if rest := int64(n) - sum.TrailingBytes - counted; rest < 0 || rest > 0 && protocol == "mongodb" {
				t.Errorf("%s cut at %d: %d bytes in exchanges and %d trailing", name, n, counted, sum.TrailingBytes)
			}
			messages = sum.MessagesToServer
			trailed = trailed || sum.TrailingBytes > 0
		}
		if messages < 20 || !trailed {
			t.Errorf("%s: %d messages, trailing bytes seen: %v", name, messages, trailed)
		}
	}
}

func TestDecode_GarbageIsTrailing(t *testing.T) {
	garbage := filepath.Join(t.TempDir(), "garbage.bin")
	if err := os.WriteFile(garbage, bytes.Repeat([]byte{0xff}, 100_000), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, protocol := range []string{"mongodb", "postgres"} {
		lines, sum := decodeLines(t, "--protocol", protocol, "--to-server", garbage, "--to-client", garbage)
		if len(lines) != 0 || sum.TrailingBytes != 200_000 || sum.MessagesToServer+sum.MessagesToClient != 0 {
			t.Errorf("%s: %d exchanges, %+v", protocol, len(lines), sum)
		}
	}
}

// TestDecode_BrokenEndLeavesTheOtherStream: replies are read although the
// requests end in garbage.
func TestDecode_BrokenEndLeavesTheOtherStream(t *testing.T) {
	tests := []struct{ protocol, name string }{{"mongodb", "ferretdb-pymongo.1"}, {"postgres", "pgbench-simple.1"}}
	for _, tt := range tests {
		requests, err := os.ReadFile(own(tt.name + ".c2s.bin"))
		if err != nil {
			t.Fatal(err)
		}
		broken := filepath.Join(t.TempDir(), "broken.bin")
		if err := os.WriteFile(broken, append(requests, bytes.Repeat([]byte{0xff}, 100)...), 0o644); err != nil {
			t.Fatal(err)
		}
		whole, want := decodeLines(t, "--protocol", tt.protocol, "--to-server", own(tt.name+".c2s.bin"), "--to-client", own(tt.name+".s2c.bin"))
		lines, got := decodeLines(t, "--protocol", tt.protocol, "--to-server", broken, "--to-client", own(tt.name+".s2c.bin"))
		want.TrailingBytes += 100
		if got != want || !reflect.DeepEqual(lines, whole) {
			t.Errorf("%s: %+v with a broken end, want %+v and the same exchanges", tt.name, got, want)
		}
	}
}

func TestDecode_ReadsStandardInput(t *testing.T) {
	b, err := os.ReadFile(own("libpq-abort.c2s.bin"))
	if err != nil {
		t.Fatal(err)
	}
	var fromFile, fromStdin, errs bytes.Buffer
	args := []string{"wirewait", "decode", "--protocol", "postgres", "--to-client", own("libpq-abort.s2c.bin"), "--to-server"}
	if code := run(t.Context(), append(args, own("libpq-abort.c2s.bin")), nil, &fromFile, &errs); code != 0 {
		t.Fatal(errs.String())
	}
	if code := run(t.Context(), append(args, "-"), bytes.NewReader(b), &fromStdin, &errs); code != 0 {
		t.Fatal(errs.String())
	}
	if fromFile.Len() == 0 || fromFile.String() != fromStdin.String() {
		t.Errorf("from a file\n%s\nfrom standard input\n%s", &fromFile, &fromStdin)
	}
}

// brokenWriter fails like a pipe that nobody reads.
type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestDecode_FailsWhereItCannotReadOrWrite(t *testing.T) {
	args := []string{"wirewait", "decode", "--protocol", "mongodb", "--to-server", "-"}
	var out, errs bytes.Buffer
	if code := run(t.Context(), args, iotest.ErrReader(errors.New("disk on fire")), &out, &errs); code != exitFailure {
		t.Errorf("exit %d for input that fails, want %d", code, exitFailure)
	}
	if !strings.Contains(errs.String(), "disk on fire") {
		t.Errorf("stderr %q: want the cause", errs.String())
	}
	errs.Reset()
	requests, err := os.ReadFile(own("stub-libmongo-client-legacy.c2s.bin"))
	if err != nil {
		t.Fatal(err)
	}
	half := io.MultiReader(bytes.NewReader(requests), iotest.ErrReader(errors.New("disk on fire")))
	if code := run(t.Context(), args, half, &out, &errs); code != exitFailure {
		t.Errorf("exit %d for input that fails half-way, want %d", code, exitFailure)
	}
	if !strings.Contains(errs.String(), "disk on fire") || !strings.Contains(out.String(), `"messages_to_server":25`) {
		t.Errorf("stderr %q, stdout %q: want the cause, and what could be read", errs.String(), out.String())
	}
	args[len(args)-1] = own("stub-libmongo-client-legacy.c2s.bin")
	if code := run(t.Context(), args, nil, brokenWriter{}, &errs); code != exitFailure {
		t.Errorf("exit %d for output that fails, want %d", code, exitFailure)
	}
}

// TestDecode_Unescaped: characters that only HTML escapes stay as they are.
func TestDecode_Unescaped(t *testing.T) {
	query := "select a < b && c > d, 'ü'"
	body := append([]byte("Q\x00\x00\x00"), byte(len(query)+5))
	body = append(append(body, query...), 0)
	file := filepath.Join(t.TempDir(), "q.bin")
	if err := os.WriteFile(file, body, 0o644); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"wirewait", "decode", "--protocol", "postgres", "--text", "--to-server", file}, nil, &out, &errs); code != 0 {
		t.Fatal(errs.String())
	}
	if want := `"statement":"` + query + `"`; !strings.Contains(out.String(), want) {
		t.Errorf("%s has no %s", out.String(), want)
	}
}
