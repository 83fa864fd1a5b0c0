package toxiproxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// step is a request, and how the answers of the two servers are to compare.
type step struct {
	do   string // method, path and, behind a space, the body
	head string // "Name: value" lines of headers besides
	// save keeps the port of the answer's "listen" for later steps, where it's
	// written {save}.
	save string
	// ours is the status that wirewait answers with where it's to differ, and
	// differs says why. ours 0: both answer the same.
	ours    int
	differs string
}

// run asks a server all of a script, and returns what passed. {upstream} is the
// address of a listener; on {taken} nobody else can listen.
func run(t *testing.T, s *server, script []step) (all []exchange) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, taken, _ := net.SplitHostPort(l.Addr().String())
	known := []string{"{upstream}", l.Addr().String(), "{taken}", taken}
	var n names
	for _, st := range script {
		text := strings.NewReplacer(known...).Replace(st.do)
		method, rest, _ := strings.Cut(text, " ")
		path, body, _ := strings.Cut(rest, " ")
		resp, answer := ask(t, s, method, path, body, st.head)
		all = append(all, n.exchange(method, path, body, resp, answer))
		if st.save != "" {
			known = append(known, "{"+st.save+"}", listens(t, answer))
		}
	}
	return all
}

func ask(t *testing.T, s *server, method, path, body, head string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, s.url()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(head) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), ": ")
		r.Header.Set(k, v)
	}
	resp, err := web.Do(r)
	if err != nil {
		t.Fatalf("%s: %s %s %s: %v\n%s", s, method, path, body, err, s.process.Log.String())
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %s %s %s: %v", s, method, path, body, err)
	}
	return resp, string(b)
}

func listens(t *testing.T, answer string) string {
	t.Helper()
	_, rest, _ := strings.Cut(answer, `"listen":"`)
	addr, _, _ := strings.Cut(rest, `"`)
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatalf("%s has no listen: %v", answer, err)
	}
	return port
}

// compare runs a script on both and holds what they answered against each other.
func compare(t *testing.T, script []step) {
	t.Helper()
	var got [2][]exchange
	for i, k := range kinds {
		got[i] = run(t, start(t, k.real), script)
	}
	for i, st := range script {
		real, ours := got[0][i], got[1][i]
		if err := st.compare(real, ours); err != nil {
			t.Errorf("step %d: %v.\ntoxiproxy:\n%s\nwirewait:\n%s", i+1, err, real, ours)
		}
	}
}

func (st step) compare(real, ours exchange) error {
	switch {
	case st.ours == 0 && real != ours:
		return fmt.Errorf("the answers differ")
	case st.ours != 0 && real == ours:
		return fmt.Errorf("the answers are the same, though %s", st.differs)
	case st.ours != 0 && ours.status != st.ours:
		return fmt.Errorf("want %d of wirewait: %s", st.ours, st.differs)
	case st.ours >= 400 && !strings.Contains(ours.answer, fmt.Sprintf(`,"status":%d`, st.ours)):
		return fmt.Errorf("not the shape of an error")
	}
	return nil
}
