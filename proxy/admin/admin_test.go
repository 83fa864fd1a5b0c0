package admin

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
)

var metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	io.WriteString(w, "wirewait_connections_open 3\n")
})

func start(t *testing.T, c Config) *Server {
	t.Helper()
	s, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// get asks s for a path, with headers as a browser would set them.
func get(t *testing.T, s *Server, method, path, host, origin string) (int, string) {
	t.Helper()
	_, port, _ := net.SplitHostPort(s.Addr().String())
	r, err := http.NewRequest(method, "http://127.0.0.1:"+port+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		r.Host = host
	}
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestServer_ServesMetricsAndHealth(t *testing.T) {
	var stopping atomic.Bool
	s := start(t, Config{Listen: "127.0.0.1:0", Metrics: metrics, Healthy: func() error {
		if stopping.Load() {
			return errors.New("stopping")
		}
		return nil
	}})
	if code, body := get(t, s, "GET", "/metrics", "", ""); code != 200 || body != "wirewait_connections_open 3\n" {
		t.Errorf("/metrics: %d %q", code, body)
	}
	if code, body := get(t, s, "GET", "/healthz", "", ""); code != 200 || body != "ok\n" {
		t.Errorf("/healthz: %d %q", code, body)
	}
	stopping.Store(true)
	if code, body := get(t, s, "GET", "/healthz", "", ""); code != 503 || body != "stopping\n" {
		t.Errorf("/healthz while stopping: %d %q", code, body)
	}
	if code, _ := get(t, s, "GET", "/", "", ""); code != 404 {
		t.Errorf("/: %d, want 404", code)
	}
	if code, _ := get(t, s, "POST", "/metrics", "", ""); code != 405 {
		t.Errorf("POST /metrics: %d, want 405", code)
	}
}

func TestServer_RefusesOtherHostsAndOrigins(t *testing.T) {
	tests := []struct {
		listen, host, origin string
		want                 int
	}{
		{"127.0.0.1:0", "", "", 200},
		{"127.0.0.1:0", "localhost:8474", "", 200},
		{"127.0.0.1:0", "LOCALHOST", "", 200},
		{"127.0.0.1:0", "[::1]:8474", "", 200},
		{"127.0.0.1:0", "127.1.2.3", "", 200},
		{"127.0.0.1:0", "rebound.example", "", 403},
		{"127.0.0.1:0", "rebound.example:8474", "", 403},
		{"127.0.0.1:0", "localhost.example", "", 403},
		{"127.0.0.1:0", "192.0.2.7:8474", "", 403},
		{"127.0.0.1:0", "localhost:8474", "http://localhost:8474", 200},
		{"127.0.0.1:0", "127.0.0.1:9000", "http://127.0.0.1:9000", 200}, // a port that is forwarded here
		{"127.0.0.1:0", "127.0.0.1:8474", "http://127.0.0.1:3000", 403},
		{"127.0.0.1:0", "127.0.0.1:8474", "http://localhost:8474", 403},
		{"127.0.0.1:0", "", "https://evil.example", 403},
		{"127.0.0.1:0", "", "http://evil.example:8474", 403},
		{"127.0.0.1:0", "", "null", 403}, // a sandboxed page, or a file
		{"localhost:0", "localhost:8474", "", 200},
		{"0.0.0.0:0", "192.0.2.7:8474", "", 200},
		{"0.0.0.0:0", "rebound.example", "", 403},
		{"0.0.0.0:0", "", "http://evil.example", 403},
	}
	servers := map[string]*Server{}
	for _, tt := range tests {
		s := servers[tt.listen]
		if s == nil {
			s = start(t, Config{Listen: tt.listen, Metrics: metrics})
			servers[tt.listen] = s
		}
		for _, path := range []string{"/metrics", "/healthz"} {
			if code, _ := get(t, s, "GET", path, tt.host, tt.origin); code != tt.want {
				t.Errorf("listen %s, GET %s, Host %q, Origin %q: %d, want %d", tt.listen, path, tt.host, tt.origin, code, tt.want)
			}
		}
	}
}

func TestServer_NamedListenHostIsServed(t *testing.T) {
	g := allowed{listen: "wirewait"}
	if !g.host("wirewait:8474") || g.host("other:8474") {
		t.Error("only the name that we were told to listen on is ours")
	}
}

func TestStart_SaysWhatIsWrong(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if _, err := Start(Config{Listen: taken.Addr().String()}); err == nil {
		t.Error("a taken port was accepted")
	} else if op := (*net.OpError)(nil); !errors.As(err, &op) {
		t.Errorf("%v wraps no *net.OpError", err)
	}
	if _, err := Start(Config{Listen: "8474"}); err == nil || !bytes.Contains([]byte(err.Error()), []byte("host:port")) {
		t.Errorf("an address without a host: %v", err)
	}
}
