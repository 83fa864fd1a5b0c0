package toxiproxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// exchange is one request and its answer, of which what differs between runs
// was given a name: <version>, <id>, and <1>, <2>, ... for ports in the order in
// which they came.
type exchange struct {
	request string // method, path, body
	status  int
	answer  string // headers that matter, an empty line, the body
}

func (x exchange) String() string { return fmt.Sprintf("%s\n%d\n%s\n", x.request, x.status, x.answer) }

// answerHeaders are those that clients may look at.
var answerHeaders = []string{"Allow", "Content-Type", "Location", "X-Content-Type-Options", "X-Toxiproxy-Request-Id"}

// names gives names to what differs between two runs of the same.
type names struct{ ports map[string]string }

var (
	port = regexp.MustCompile(`(localhost|127\.0\.0\.1|\[::1?\]|::1?):(\d{4,5})\b`)
	id   = regexp.MustCompile(`^[0-9a-v]{20}$`) // github.com/rs/xid
	// Toxiproxy 2.5 and later show their logger, which has no exported field.
	logger = strings.NewReplacer(`,"Logger":{}`, ``)
	// What json calls the places that values don't fit in is the server's own.
	place   = regexp.MustCompile(`(json: cannot unmarshal .*? into )Go (?:\\.|[^"\\\n])*`)
	version = regexp.MustCompile(`(\\?"version\\?": \\?")[^"\\]+`)
)

func (n *names) of(s string) string {
	s = version.ReplaceAllString(logger.Replace(s), `$1<version>`)
	s = place.ReplaceAllString(s, `$1<place>`)
	return port.ReplaceAllStringFunc(s, func(addr string) string {
		m := port.FindStringSubmatch(addr)
		if n.ports == nil {
			n.ports = map[string]string{}
		}
		if n.ports[m[2]] == "" {
			n.ports[m[2]] = fmt.Sprintf("<%d>", len(n.ports)+1)
		}
		return m[1] + ":" + n.ports[m[2]]
	})
}

// exchange is what was asked and answered, under names.
func (n *names) exchange(method, path, body string, resp *http.Response, answer string) exchange {
	x := exchange{request: n.of(strings.TrimSpace(method + " " + path + " " + body)), status: resp.StatusCode}
	var b strings.Builder
	for _, h := range answerHeaders {
		if v := resp.Header.Get(h); id.MatchString(v) {
			fmt.Fprintf(&b, "%s: <id>\n", h)
		} else if v != "" {
			fmt.Fprintf(&b, "%s: %s\n", h, v)
		}
	}
	x.answer = n.of(b.String() + "\n" + answer)
	return x
}

// recorder stands between a client and a server, and keeps what passed.
type recorder struct {
	addr string
	mu   sync.Mutex
	all  []exchange
	n    names
}

func record(t *testing.T, s *server) *recorder {
	t.Helper()
	r := &recorder{}
	forward := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(&url.URL{Scheme: "http", Host: s.addr}) },
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		asked, _ := io.ReadAll(q.Body)
		q.Body = io.NopCloser(bytes.NewReader(asked))
		answer := httptest.NewRecorder()
		forward.ServeHTTP(answer, q)
		got := answer.Result()
		r.mu.Lock()
		r.all = append(r.all, r.n.exchange(q.Method, q.URL.RequestURI(), string(asked), got, answer.Body.String()))
		r.mu.Unlock()
		for k, v := range got.Header {
			w.Header()[k] = v
		}
		w.WriteHeader(got.StatusCode)
		_, _ = w.Write(answer.Body.Bytes())
	}))
	t.Cleanup(front.Close)
	r.addr = strings.TrimPrefix(front.URL, "http://")
	return r
}

// exchanges are what passed so far.
func (r *recorder) exchanges() []exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}

// sameExchanges reports where two recordings differ.
func sameExchanges(t *testing.T, real, ours []exchange, atLeast int) {
	t.Helper()
	for i := range min(len(real), len(ours)) {
		if real[i] != ours[i] {
			t.Errorf("exchange %d differs.\ntoxiproxy:\n%s\nwirewait:\n%s", i+1, real[i], ours[i])
		}
	}
	if len(real) != len(ours) {
		t.Errorf("%d exchanges with toxiproxy, %d with wirewait", len(real), len(ours))
	}
	if len(real) < atLeast {
		t.Errorf("%d exchanges with toxiproxy, want at least %d", len(real), atLeast)
	}
}
