package config

import (
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// quote is a scalar as it is written in the file: what its variables hold may
// be a password, and so may what stands before the @ of a URI.
func quote(n *node) string {
	v := n.Value
	if scheme, rest, ok := strings.Cut(v, "://"); ok {
		if i := strings.LastIndexByte(rest, '@'); i >= 0 {
			v = scheme + "://...@" + rest[i+1:]
		}
	}
	if len(v) > 60 {
		v = v[:60] + "..."
	}
	return strconv.Quote(v)
}

// variable is $${...}, which stands for ${...} itself, or ${NAME}, or what a
// person wrote who wanted that.
var variable = regexp.MustCompile(`\$\$\{|\$\{[^}]*\}?`)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// text is a scalar with its ${VARIABLES} replaced. Only values have them: never
// keys, and what a variable holds is never read as YAML. It reports false after
// a problem.
func (r *reader) text(n *node, what string) (string, bool) {
	at := n
	if n = follow(n); n.Kind != yaml.ScalarNode || isNull(n) {
		r.problem(at, "%s is %s: write one value", what, describe(n))
		return "", false
	}
	ok := true
	v := variable.ReplaceAllStringFunc(n.Value, func(s string) string {
		if s == "$${" {
			return "${"
		}
		name := strings.TrimSuffix(strings.TrimPrefix(s, "${"), "}")
		if !strings.HasSuffix(s, "}") || !variableName.MatchString(name) {
			ok = false
			r.problem(at, "%q is no variable: write ${NAME}, or $${ for these characters themselves", s)
			return ""
		}
		value, set := r.lookup(name)
		if !set {
			ok = false
			r.problem(at, "the variable %s is not set: export it before wirewait starts", name)
		}
		return value
	})
	return v, ok
}

// duration is one that isn't negative; 0 needs no unit.
func (r *reader) duration(n *node, what string) (time.Duration, bool) {
	v, ok := r.text(n, what)
	if !ok {
		return 0, false
	}
	n = follow(n)
	d, err := time.ParseDuration(v)
	switch _, number := strconv.ParseFloat(v, 64); {
	case err == nil && d < 0:
		r.problem(n, "%s is %s: it can't be less than 0", what, quote(n))
	case err == nil:
		return d, true
	case number == nil && n.Value == v: // else a variable's value would be shown
		r.problem(n, "%s %s has no unit: write %sms, or %ss for seconds", what, quote(n), v, v)
	default:
		r.problem(n, "%s is %s: write a number with a unit and no space between, such as 80ms or 1.5s", what, quote(n))
	}
	return 0, false
}

func (r *reader) boolean(n *node, what string) bool {
	v, ok := r.text(n, what)
	if ok && v != "true" && v != "false" {
		r.problem(n, "%s is %s: write true or false", what, quote(follow(n)))
	}
	return v == "true"
}

func (r *reader) number(n *node) *uint64 {
	v, ok := r.text(n, "seed")
	if !ok {
		return nil
	}
	u, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		r.problem(n, "seed is %s: write a whole number from 0 to 18446744073709551615", quote(follow(n)))
	}
	return &u
}

func (r *reader) choice(n *node, what string, words []string) string {
	v, ok := r.text(n, what)
	if ok && !slices.Contains(words, v) {
		r.problem(n, "%s is %s: use %s", what, quote(follow(n)), list(words))
		return ""
	}
	return v
}

// word is the name of a site, cluster, member or link.
func (r *reader) word(n *node, what string) (string, bool) {
	v, ok := r.text(n, what)
	if !ok {
		return "", false
	}
	return v, r.checkWord(n, v, what)
}

var wordShape = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*$`)

func (r *reader) checkWord(n *node, v, what string) bool {
	switch {
	case v == "members":
		r.problem(n, "%s can't be called members: as an end of a link that means all members of a cluster", what)
	case !wordShape.MatchString(v):
		r.problem(n, "%s is called %s: use letters, digits, - and _ (a dot stands between a cluster and its member)", what, quote(follow(n)))
	default:
		return true
	}
	return false
}

// address is host:port or unix:/path. Every address names its host, so that
// nothing is reachable from other machines unless somebody wrote so.
func (r *reader) address(n *node, what string) string {
	v, ok := r.text(n, what)
	if !ok {
		return ""
	}
	if complaint := addressComplaint(v); complaint != "" {
		r.problem(n, "%s is %s: %s", what, quote(follow(n)), complaint)
		return ""
	}
	return v
}

func addressComplaint(v string) string {
	if path, ok := strings.CutPrefix(v, "unix:"); ok {
		if path == "" {
			return "it has no path; write unix:/run/db.sock"
		}
		return ""
	}
	if strings.Contains(v, "://") {
		return "a URI; write one server's host:port, and give the rest of the URI to the client"
	}
	if _, err := strconv.ParseUint(v, 10, 16); err == nil {
		return "it names no host; write 127.0.0.1 and the port, or 0.0.0.0 and the port to mean every interface"
	}
	host, port, err := net.SplitHostPort(v)
	if err != nil && strings.Count(v, ":") > 1 {
		return "an IPv6 address stands in brackets; write \"[::1]:5432\""
	}
	if err != nil {
		return "write host:port, \"[::1]:port\" or unix:/path"
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "the port is a number from 0 to 65535"
	}
	if host == "" {
		return "it names no host; write 127.0.0.1, or 0.0.0.0 to mean every interface"
	}
	return ""
}

func (r *reader) advertise(n *node) string { return r.dialled(n, "advertise") }

// dialled is what others dial: one host, and its port.
func (r *reader) dialled(n *node, what string) string {
	v := r.address(n, what)
	host, port, err := net.SplitHostPort(v)
	if v != "" && (err != nil || wildcard(host) || port == "0" || strings.HasPrefix(v, "unix:")) {
		r.problem(n, "%s is %s: write the HOST:PORT that others dial", what, quote(follow(n)))
		return ""
	}
	return v
}

func (r *reader) admin(n *node) string {
	v, ok := r.text(n, "admin")
	if !ok || v == "off" {
		return v
	}
	if strings.HasPrefix(v, "unix:") {
		r.problem(n, "admin is %s: write host:port, or off", quote(follow(n)))
		return ""
	}
	return r.address(n, "admin")
}

// upstream is an address to connect to.
func (r *reader) upstream(n *node) string {
	v := r.address(n, "upstream")
	if _, port, err := net.SplitHostPort(v); err == nil && port == "0" {
		r.problem(n, "upstream is %s: nothing listens on port 0; write the server's", quote(follow(n)))
	}
	return v
}

// fileName is relative to the configuration's directory.
func (r *reader) fileName(n *node, what string) string {
	v, ok := r.text(n, what)
	if !ok {
		return ""
	}
	if v == "" {
		r.problem(n, "%s is empty: write a file's name", what)
		return ""
	}
	if r.dir == "" || filepath.IsAbs(v) {
		return v
	}
	return filepath.Join(r.dir, v)
}

func portAfter(listen string, n int) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("%q has no port to count up from", listen)
	}
	p, err := strconv.Atoi(port)
	if err != nil {
		return "", err
	}
	if p == 0 {
		return listen, nil
	}
	if p+n > 65535 {
		return "", fmt.Errorf("there is no port %d", p+n)
	}
	return net.JoinHostPort(host, strconv.Itoa(p+n)), nil
}

func scheme(uri string) string {
	s, _, _ := strings.Cut(uri, "://")
	return s
}
