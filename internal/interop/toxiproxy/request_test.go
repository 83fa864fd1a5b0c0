package toxiproxy

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// web asks servers. It follows no redirect, and waits longer than any call may
// take.
var web = &http.Client{
	Timeout:       time.Minute,
	Transport:     &http.Transport{Proxy: nil, DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func (s *server) url() string { return "http://" + s.addr }

// try asks, and returns the answer's code and body.
func (s *server) try(method, path, body string) (int, string, error) {
	return s.tryWith(web, method, path, body)
}

func (s *server) tryWith(c *http.Client, method, path, body string) (int, string, error) {
	r, err := http.NewRequest(method, s.url()+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	resp, err := c.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// do asks for what must work.
func (s *server) do(t *testing.T, method, path, body string) string {
	t.Helper()
	code, reply, err := s.try(method, path, body)
	if err != nil || code >= 300 {
		t.Fatalf("%s: %s %s %s: %d %s %v", s, method, path, body, code, reply, err)
	}
	return reply
}

// proxy creates one and returns the address where it listens.
func (s *server) proxy(t *testing.T, name, upstream string) string {
	t.Helper()
	body, _ := json.Marshal(map[string]string{"name": name, "listen": "127.0.0.1:0", "upstream": upstream})
	var p struct{ Listen string }
	if err := json.Unmarshal([]byte(s.do(t, "POST", "/proxies", string(body))), &p); err != nil {
		t.Fatal(err)
	}
	return p.Listen
}

// toxic adds one.
func (s *server) toxic(t *testing.T, proxy, body string) {
	t.Helper()
	s.do(t, "POST", "/proxies/"+proxy+"/toxics", body)
}
