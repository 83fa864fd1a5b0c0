//go:build unix

package admin

import (
	"io/fs"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// page asks for a path and returns the answer, whose body is closed.
func (a *api) page(path, host string) *http.Response {
	a.t.Helper()
	r, err := http.NewRequest("GET", "http://"+a.s.Addr().String()+path, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	r.Host = host
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	resp.Body.Close()
	return resp
}

func TestPage_IsServedWithAStrictPolicy(t *testing.T) {
	a, _, _ := control(t)
	for path, kind := range map[string]string{
		"/": "text/html", "/page/style.css": "text/css", "/page/main.js": "text/javascript", "/page/icon.svg": "image/svg+xml",
	} {
		resp := a.page(path, "")
		if resp.StatusCode != 200 || !strings.HasPrefix(resp.Header.Get("Content-Type"), kind) {
			t.Errorf("%s: %d, %s", path, resp.StatusCode, resp.Header.Get("Content-Type"))
		}
		policy := resp.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: the policy lacks %s: %s", path, want, policy)
			}
		}
		if strings.Contains(policy, "unsafe") || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, resp.Header)
		}
		if resp := a.page(path, "rebound.example"); resp.StatusCode != 403 {
			t.Errorf("%s for another host: %d", path, resp.StatusCode)
		}
	}
	for _, path := range []string{"/page/", "/page/nothing.js", "/page/..%2fadmin.go", "/page", "/index.html"} {
		if resp := a.page(path, ""); resp.StatusCode != 404 {
			t.Errorf("%s: %d, want 404", path, resp.StatusCode)
		}
	}
}

// TestPage_HoldsNothingButItself: with a token the files are still given to
// whoever asks, and /v1 is not.
func TestPage_HoldsNothingButItself(t *testing.T) {
	s := start(t, Config{Listen: "127.0.0.1:0", Token: "open sesame", Control: &Control{}})
	a := &api{t: t, s: s}
	if resp := a.page("/", ""); resp.StatusCode != 200 {
		t.Errorf("/: %d", resp.StatusCode)
	}
	if resp := a.page("/v1/writes", ""); resp.StatusCode != 401 {
		t.Errorf("/v1/writes without the token: %d", resp.StatusCode)
	}
}

// TestPage_NeedsNothingFromElsewhere reads the files: every module and file that
// they name is there, and nothing else is named. What the policy would refuse in a
// browser isn't tried.
func TestPage_NeedsNothingFromElsewhere(t *testing.T) {
	there, named := map[string]bool{"page/index.html": true}, map[string]bool{"page/index.html": true}
	err := fs.WalkDir(pageFiles, "page", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		there[path] = true
		b, err := fs.ReadFile(pageFiles, path)
		text := strings.ReplaceAll(string(b), "http://www.w3.org/2000/svg", "")
		for _, found := range regexp.MustCompile(`from "\./([\w.]+)"|"/page/([\w.]+)"`).FindAllStringSubmatch(text, -1) {
			named["page/"+found[1]+found[2]] = true
		}
		for _, never := range []string{"http:", "https:", "innerHTML", "insertAdjacentHTML", "document.write", "eval(", "style=", "@import", "url("} {
			if strings.Contains(text, never) {
				t.Errorf("%s has %s", path, never)
			}
		}
		if lines := strings.Count(text, "\n"); lines > 400 {
			t.Errorf("%s has %d lines", path, lines)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for path := range there {
		if !named[path] {
			t.Errorf("nothing names %s", path)
		}
	}
	for path := range named {
		if !there[path] {
			t.Errorf("there is no %s", path)
		}
	}
	if len(there) < 10 {
		t.Errorf("only %d files were read", len(there))
	}
}
