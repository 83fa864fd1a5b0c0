package main

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/trace/otlp"
	"github.com/wirewait/wirewait/wire"
)

// runOptions are run's flags, checked.
type runOptions struct {
	links    []proxy.LinkConfig
	set      *replicaSet // nil: the upstream is one server
	rules    []inject.Rule
	file     *runFile // nil: flags only
	seed     uint64
	auto     bool // --tls auto
	text     wire.TextMode
	children otlp.Children
	admin    string // empty: off
	token    string // of /v1; empty: none
	drain    time.Duration
	driver   string
	level    slog.Level
	// toxiproxy is for the command of that name; nil: it's another.
	toxiproxy *toxiproxyOptions
}

// reader reads flags and gathers what is wrong with them.
type reader struct {
	*cli.Context
	problems  []string
	throwAway bool // --tls auto
}

func (r *reader) problem(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

// parseRun checks every flag before it complains of any.
func parseRun(c *cli.Context) (runOptions, error) {
	r := &reader{Context: c}
	link := proxy.LinkConfig{
		Listen:   r.address("listen"),
		Upstream: r.upstream(),
		Protocol: wire.Protocol(r.choice("protocol", "", "mongodb", "postgres", "tcp")),
		TLS:      r.tls(),
		Delay:    r.delay(),
	}
	o := r.processOptions()
	o.links, o.auto = []proxy.LinkConfig{link}, r.throwAway
	if v := r.String("upstream"); isMongoURI(v) {
		if link.Protocol != "" && link.Protocol != wire.MongoDB {
			r.problem("--protocol %s contradicts --upstream mongodb://: leave it out", link.Protocol)
		}
		if o.set = r.replicaSet(v); o.set != nil {
			o.links = o.set.links(r, link)
		}
	}
	return o, r.err()
}

// processOptions are those that are no link's.
func (r *reader) processOptions() runOptions {
	o := runOptions{
		seed:     r.seed(),
		children: otlp.Children(r.choice("children", "auto", "always", "never")),
		admin:    r.admin(),
		token:    r.token(),
		drain:    r.duration("drain"),
		driver:   r.driver(),
	}
	if r.Bool("statement-text") {
		o.text = wire.TextSanitised
	}
	_ = o.level.UnmarshalText([]byte(r.choice("log-level", "debug", "info", "warn", "error")))
	return o
}

// err is a usageError with all problems, or nil.
func (r *reader) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	return &usageError{commandName(r.Context), r.problems}
}

// driver is what moves the bytes; empty: the best for the system.
func (r *reader) driver() string {
	v := r.choice("driver", "auto", proxy.DriverEpoll, proxy.DriverNet)
	if v == "auto" {
		return ""
	}
	if err := proxy.CheckDriver(v); err != nil {
		r.problem("--driver %s: %v", v, err)
	}
	return v
}

// choice is the value of a flag that knows a few words.
func (r *reader) choice(flag string, words ...string) string {
	v := r.String(flag)
	if !slices.Contains(words, v) {
		words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
		r.problem("--%s %q: use %s or %s", flag, v, strings.Join(words[:len(words)-1], ", "), words[len(words)-1])
		return words[0]
	}
	return v
}

func (r *reader) duration(flag string) time.Duration {
	v := r.String(flag)
	if v == "" {
		return 0
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		r.problem("--%s %q: write a number with a unit, such as 80ms or 1.5s", flag, v)
		return 0
	}
	if d < 0 {
		r.problem("--%s %s: it can't be less than 0", flag, v)
		return 0
	}
	return d
}

func (r *reader) seed() uint64 {
	v := r.String("seed")
	if v == "" {
		return uint64(rand.Uint32()) // short enough to be typed again
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		r.problem("--seed %q: write a whole number from 0 to 18446744073709551615", v)
	}
	return n
}

// address checks host:port or unix:/path. Every address names its host, so
// that nothing is reachable from other machines unless somebody wrote so.
func (r *reader) address(flag string) string {
	v := r.String(flag)
	if path, ok := strings.CutPrefix(v, "unix:"); ok {
		if path == "" {
			r.problem("--%s %q has no path: write unix:/run/db.sock", flag, v)
		}
		return v
	}
	host, port, err := net.SplitHostPort(v)
	if err != nil {
		r.problem("--%s %q: write host:port, [::1]:port or unix:/path", flag, redactURI(v))
		return v
	}
	r.port(flag, redactURI(v), port)
	if host == "" {
		r.problem("--%s %q names no host: write 127.0.0.1:%s, or 0.0.0.0:%s to mean every interface", flag, v, port, port)
	}
	return v
}

func (r *reader) port(flag, v, port string) {
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		r.problem("--%s %q: the port is a number from 0 to 65535", flag, v)
	}
}

func (r *reader) upstream() string {
	v := r.String("upstream")
	switch {
	case v == "":
		r.problem("--upstream is missing: say which server, such as --upstream 127.0.0.1:5432")
		return v
	case isMongoURI(v):
		return v // see replicaSet
	case strings.Contains(v, "://"):
		r.problem("--upstream %q is a URI: write one server's host:port, and give the rest of the URI to the client", redactURI(v))
		return v
	}
	return r.address("upstream")
}

func isMongoURI(v string) bool {
	return strings.HasPrefix(v, "mongodb://") || strings.HasPrefix(v, "mongodb+srv://")
}

// redactURI is a URI, or an address, without what may be a password: what stands
// before the host or in the place of its port, and the options.
func redactURI(v string) string {
	scheme, rest, isURI := strings.Cut(v, "://")
	switch {
	case isURI:
		scheme += "://"
	case strings.HasPrefix(v, "unix:"):
		return v
	default:
		scheme, rest = "", v
	}
	rest = withoutUser(rest)
	hosts, more := rest, ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		hosts = rest[:i]
		if more = rest[i:]; len(more) > 1 {
			more = more[:1] + "..."
		}
	}
	each := strings.Split(hosts, ",")
	for i, host := range each {
		at := strings.LastIndexByte(host, ':')
		if at < 0 || at < strings.LastIndexByte(host, ']') {
			continue
		}
		if _, err := strconv.ParseUint(host[at+1:], 10, 64); err != nil && host[at+1:] != "" {
			each[i] = host[:at] + ":..."
		}
	}
	return scheme + strings.Join(each, ",") + more
}

// withoutUser is what follows a URI's scheme, from the host on.
func withoutUser(rest string) string {
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		return rest[i+1:]
	}
	return rest
}

func (r *reader) admin() string {
	v := r.String("admin")
	if v == "off" {
		return ""
	}
	host, port, err := net.SplitHostPort(v)
	if err != nil {
		r.problem("--admin %q: write host:port, or off", v)
		return v
	}
	r.port("admin", v, port)
	if host == "" {
		r.problem("--admin %q names no host: write 127.0.0.1:%s, or 0.0.0.0:%s to mean every interface", v, port, port)
	}
	return v
}

func (r *reader) delay() inject.Settings {
	rtt, toServer, toClient, jitter := r.duration("rtt"), r.duration("delay-to-server"), r.duration("delay-to-client"), r.duration("jitter")
	oneWay := r.IsSet("delay-to-server") || r.IsSet("delay-to-client")
	if r.IsSet("rtt") && oneWay {
		r.problem("--rtt sets both ways: leave it out, or --delay-to-server and --delay-to-client")
	}
	s := inject.Symmetric(rtt, jitter)
	if oneWay {
		s.Delay[wire.ToServer].Base, s.Delay[wire.ToClient].Base = toServer, toClient
	}
	for i := range s.Delay { // a way without delay has nothing to vary
		if s.Delay[i].Base == 0 {
			s.Delay[i].Jitter = 0
		}
	}
	s.FreeConnect = !r.Bool("connect")
	r.checkJitter(&s, jitter)
	return s
}

func (r *reader) checkJitter(s *inject.Settings, jitter time.Duration) {
	if jitter > 0 && s.RTT() == 0 {
		r.problem("--jitter %v varies a delay, and there is none: add --rtt", jitter)
		return
	}
	for dir, d := range s.Delay {
		if d.Jitter > d.Base {
			r.problem("--jitter %v is more than the one-way delay %s, %v, and none can be less than 0: make it smaller",
				jitter, strings.ReplaceAll(wire.Direction(dir).String(), "_", " "), d.Base)
			return
		}
	}
}
