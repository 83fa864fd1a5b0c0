package main

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// visitor looks at the page as soon as it's told where it is.
type visitor struct {
	t       *testing.T
	said    bytes.Buffer
	address string
}

func (v *visitor) Write(p []byte) (int, error) {
	v.said.Write(p)
	if found := regexp.MustCompile(`page    (http://127\.0\.0\.1:\d+)/`).FindSubmatch(v.said.Bytes()); found != nil && v.address == "" {
		v.address = string(found[1])
		v.look("/", "<title>wirewait</title>")
		v.look("/v1/links", `"members-rs0.b"`)
		v.look("/v1/writes", `"writes"`)
	}
	return len(p), nil
}

func (v *visitor) look(path, want string) {
	resp, err := http.Get(v.address + path)
	if err != nil {
		v.t.Error(err)
		return
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(body), want) {
		v.t.Errorf("%s: %d, %v, %s lacks %s", path, resp.StatusCode, err, body, want)
	}
}

func TestDemo_HasAPageWhileItRuns(t *testing.T) {
	quietTraces(t)
	v := &visitor{t: t}
	var out bytes.Buffer
	if code := run(t.Context(), []string{"wirewait", "demo", "--json", "--writes", "2"}, strings.NewReader(""), &out, v); code != 0 || v.address == "" {
		t.Fatalf("exit %d, the page is at %q: %s", code, v.address, v.said.String())
	}
	var errs bytes.Buffer
	if code := run(t.Context(), []string{"wirewait", "demo", "--admin", "8474"}, strings.NewReader(""), io.Discard, &errs); code != exitUsage || !strings.Contains(errs.String(), "write host:port, or off") {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}
