package toxiproxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// defect is something that Toxiproxy 2.12.0 does wrong. check does what shows it
// and says what is wrong; nil: nothing.
type defect struct {
	name  string
	flags []string
	check func(t *testing.T, s *server) error
}

// TestDefects: each check fails with Toxiproxy and passes with wirewait. One that
// passes with both says nothing any more.
func TestDefects(t *testing.T) {
	for _, d := range slicesOf(bytesDefects, hangingDefects, serverDefects) {
		t.Run(strings.ReplaceAll(d.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			if err := d.check(t, start(t, true, d.flags...)); err == nil {
				t.Error("toxiproxy passes it")
			} else {
				t.Logf("toxiproxy: %v", err)
			}
			s := start(t, false, d.flags...)
			if err := d.check(t, s); err != nil {
				t.Errorf("wirewait: %v\n%s", err, s.process.Log.String())
			}
			if code, _, err := s.try("GET", "/proxies", ""); err != nil || code != http.StatusOK {
				t.Errorf("wirewait afterwards: %d, %v", code, err)
			}
		})
	}
}

func slicesOf(all ...[]defect) (joined []defect) {
	for _, d := range all {
		joined = append(joined, d...)
	}
	return joined
}

// TestDefects_BadValues: what Toxiproxy takes and dies of as soon as bytes pass,
// or takes and makes no sense, is refused.
func TestDefects_BadValues(t *testing.T) {
	for _, bad := range []struct {
		toxic string
		kills bool
	}{
		{`{"type":"bandwidth","attributes":{"rate":-1}}`, true},
		{`{"type":"slicer","attributes":{"average_size":0,"delay":1}}`, true}, // once its stack has 1 GB
		{`{"type":"slicer","attributes":{"average_size":10,"size_variation":100}}`, true},
		{`{"type":"latency","attributes":{"jitter":9223372036854775807}}`, true},
		{`{"type":"latency","attributes":{"latency":-5}}`, false},
		{`{"type":"latency","attributes":{"latency":5,"jitter":-1}}`, false},
		{`{"type":"limit_data","attributes":{"bytes":-1}}`, false},
		{`{"type":"timeout","attributes":{"timeout":-1}}`, false},
		{`{"type":"slow_close","attributes":{"delay":-1}}`, false},
		{`{"type":"reset_peer","attributes":{"timeout":-1}}`, false},
	} {
		t.Run(bad.toxic, func(t *testing.T) {
			t.Parallel()
			s := start(t, true)
			addr := s.proxy(t, "p", echo(t))
			s.toxic(t, "p", bad.toxic)
			_, _ = io.WriteString(dial(t, addr), strings.Repeat("much ", 1000))
			if bad.kills && !s.dead(30*time.Second) {
				t.Error("toxiproxy lives")
			}

			s = start(t, false)
			addr = s.proxy(t, "p", echo(t))
			code, reply, err := s.try("POST", "/proxies/p/toxics", bad.toxic)
			if err != nil || code != http.StatusBadRequest {
				t.Errorf("wirewait answers %d %s, %v", code, reply, err)
			}
			if err := refusesUpdate(t, s, bad.toxic); err != nil {
				t.Error(err)
			}
			if list := s.do(t, "GET", "/proxies/p/toxics", ""); list != "[]" {
				t.Errorf("wirewait keeps %s", list)
			}
			if err := echoes(dial(t, addr), "still here"); err != nil {
				t.Error(err)
			}
		})
	}
}

// refusesUpdate makes a good toxic of a bad one's type, and wants the bad one's
// attributes refused, and the good ones kept.
func refusesUpdate(t *testing.T, s *server, bad string) error {
	t.Helper()
	var toxic map[string]any
	if err := json.Unmarshal([]byte(bad), &toxic); err != nil {
		t.Fatal(err)
	}
	// of other types they are ignored
	s.toxic(t, "p", fmt.Sprintf(`{"name":"good","type":%q,"attributes":{"average_size":9,"size_variation":2,"latency":1,"rate":1000}}`, toxic["type"]))
	defer s.do(t, "DELETE", "/proxies/p/toxics/good", "")
	good := s.do(t, "GET", "/proxies/p/toxics/good", "")
	if code, reply, err := s.try("PATCH", "/proxies/p/toxics/good", bad); err != nil || code != http.StatusBadRequest {
		return fmt.Errorf("an update is answered %d %s, %w", code, reply, err)
	}
	if now := s.do(t, "GET", "/proxies/p/toxics/good", ""); now != good {
		return fmt.Errorf("an update that was refused made %s of %s", now, good)
	}
	return nil
}

// echoes sends text and wants it back.
func echoes(c net.Conn, text string) error {
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	defer func() { _ = c.SetDeadline(time.Time{}) }()
	if _, err := io.WriteString(c, text); err != nil {
		return err
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(c, got); err != nil {
		return fmt.Errorf("no echo: %w", err)
	}
	if string(got) != text {
		return fmt.Errorf("%q came back of %q", got, text)
	}
	return nil
}

var serverDefects = []defect{
	{name: "an update that fails is done by half", check: func(t *testing.T, s *server) error {
		s.proxy(t, "p", sink(t))
		s.toxic(t, "p", `{"name":"t","type":"latency","attributes":{"latency":5,"jitter":1}}`)
		before := s.do(t, "GET", "/proxies/p/toxics/t", "")
		if code, _, err := s.try("PATCH", "/proxies/p/toxics/t", `{"attributes":{"latency":9,"jitter":"x"}}`); err != nil || code != http.StatusBadRequest {
			return fmt.Errorf("it wasn't refused: %d, %v", code, err)
		}
		if after := s.do(t, "GET", "/proxies/p/toxics/t", ""); after != before {
			return fmt.Errorf("%s became %s", before, after)
		}
		return nil
	}},
	{name: "metrics of an open connection don't move", flags: []string{"-proxy-metrics"}, check: liveMetrics},
	{name: "toxics of populate are ignored", check: func(t *testing.T, s *server) error {
		s.do(t, "POST", "/populate", `[{"name":"p","listen":"127.0.0.1:0","upstream":"`+sink(t)+`","toxics":[{"type":"latency","attributes":{"latency":5}}]}]`)
		return oneLatency(s.do(t, "GET", "/proxies/p/toxics", ""))
	}},
	{name: "toxics of the file are ignored", check: func(t *testing.T, s *server) error {
		file := filepath.Join(t.TempDir(), "proxies.json")
		err := os.WriteFile(file, []byte(`[{"name":"p","listen":"127.0.0.1:0","upstream":"`+sink(t)+`","toxics":[{"type":"latency","attributes":{"latency":5}}]}]`), 0o600)
		if err != nil {
			t.Fatal(err)
		}
		return oneLatency(start(t, s.real, "-config", file).do(t, "GET", "/proxies/p/toxics", ""))
	}},
	{name: "it runs without its file", check: func(t *testing.T, s *server) error {
		return ends(t, command(t, s.real, "-port", "0", "-config", filepath.Join(t.TempDir(), "none.json")), s.patience())
	}},
	{name: "it runs with a broken file", check: func(t *testing.T, s *server) error {
		file := filepath.Join(t.TempDir(), "proxies.json")
		if err := os.WriteFile(file, []byte(`[{"name":"p",`), 0o600); err != nil {
			t.Fatal(err)
		}
		return ends(t, command(t, s.real, "-port", "0", "-config", file), s.patience())
	}},
	{name: "it runs without its port", check: func(t *testing.T, s *server) error {
		_, port, _ := net.SplitHostPort(s.addr)
		return ends(t, command(t, s.real, "-host", "127.0.0.1", "-port", port), s.patience())
	}},
	{name: "a seed has no effect", check: func(t *testing.T, s *server) error {
		var drawn [2]string
		for i := range drawn {
			drawn[i] = draws(t, start(t, s.real, "-seed", "42"))
		}
		if drawn[0] != drawn[1] {
			return fmt.Errorf("the same seed draws %s and %s", drawn[0], drawn[1])
		}
		if !strings.Contains(drawn[0], "0") || !strings.Contains(drawn[0], "1") {
			return fmt.Errorf("a toxicity of a half draws %s", drawn[0])
		}
		return nil
	}},
}

func oneLatency(toxics string) error {
	if !strings.Contains(toxics, `"name":"latency_downstream"`) {
		return fmt.Errorf("the toxics are %s", toxics)
	}
	return nil
}

// ends wants a server to end by itself, and not well.
func ends(t *testing.T, cmd *exec.Cmd, patience time.Duration) error {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err == nil {
			return fmt.Errorf("it ended as if all were well")
		}
		return nil
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		<-ended
		return fmt.Errorf("it goes on")
	}
}

// draws are those of 40 connections, one after the other, of which a toxic cuts
// one half: 1 where it did.
func draws(t *testing.T, s *server) string {
	t.Helper()
	addr := s.proxy(t, "p", serve(t, func(c *net.TCPConn) { _, _ = io.WriteString(c, "hello") }))
	s.toxic(t, "p", `{"name":"t","type":"limit_data","toxicity":0.5,"attributes":{"bytes":1}}`)
	var all strings.Builder
	for range 40 {
		c := dial(t, addr)
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		got, _ := io.ReadAll(c)
		c.Close()
		switch string(got) {
		case "h":
			all.WriteByte('1')
		case "hello":
			all.WriteByte('0')
		default:
			t.Fatalf("%q arrived", got)
		}
	}
	return all.String()
}

// liveMetrics wants the bytes of a connection counted while it's open.
func liveMetrics(t *testing.T, s *server) error {
	addr := s.proxy(t, "p", echo(t))
	c := dial(t, addr)
	if err := echoes(c, "twelve bytes"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(s.patience()); ; {
		missing := missingMetric(s.do(t, "GET", "/metrics", ""), addr)
		if missing == "" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no %s", missing)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func missingMetric(metrics, addr string) string {
	for _, name := range []string{"received", "sent"} {
		for _, direction := range []string{"upstream", "downstream"} {
			want := fmt.Sprintf("toxiproxy_proxy_%s_bytes_total{direction=%q,listener=%q,proxy=\"p\",upstream=", name, direction, addr)
			_, rest, found := strings.Cut(metrics, want)
			if line, _, _ := strings.Cut(rest, "\n"); !found || !strings.HasSuffix(line, "} 12") {
				return want
			}
		}
	}
	return ""
}
