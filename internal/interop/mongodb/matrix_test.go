package mongodb

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/internal/interop/rig"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/wire"
)

// rtt and jitter of the link that every client is run over.
const (
	rtt    = 5 * time.Millisecond
	jitter = time.Millisecond
)

var servers = []server{ferretDB, secantus, peer("snappy"), peer("zlib"), peer("zstd"), labSet}

func TestMatrix(t *testing.T) {
	for _, c := range clients {
		t.Run(c.dir, func(t *testing.T) {
			version := c.version(t)
			for _, s := range servers {
				_, compressor, _ := strings.Cut(s.name, ", ")
				if compressor != "" && strings.Contains(c.without, compressor) {
					continue // not claimed, not shown
				}
				t.Run(strings.ReplaceAll(s.name, " ", "-"), func(t *testing.T) {
					r := result{Client: c.name, ClientVersion: version, Server: s.name, ServerVersion: s.version(t)}
					r.run(t, c, s)
					record(t, r)
				})
			}
		})
	}
	if !t.Failed() && complete() {
		publish(t)
	}
}

// complete reports whether every client ran, on every server that it can use.
func complete() bool {
	want := 0
	for _, c := range clients {
		want += len(servers)
		if c.without != "" {
			want -= len(strings.Split(c.without, ","))
		}
	}
	return len(results.all) == want
}

// run runs a client on a server of its own, directly and through a link, and
// holds the two against each other and the second against what was seen.
func (r *result) run(t *testing.T, c *client, s server) {
	uri := func(addr string) string { return "mongodb://" + addr + "/?" + s.query }
	direct, code := c.run(t, uri(s.run(t)[0]), s.flags)
	if code != 0 {
		t.Fatalf("directly: exit %d after\n%s", code, brief(direct))
	}
	l := startLinks(t, s.run(t))
	through, code := c.run(t, uri(l.Addr()), s.flags)
	if code != 0 {
		t.Errorf("through the proxy: exit %d", code)
	}
	compare(t, s.settled(direct), s.settled(through))
	if s.members != nil && !moved.MatchString(through) {
		t.Errorf("there was no step-down in the midst of 40 writes, or some are lost or done twice:\n%s", brief(through))
	}
	l.stop(t, s)
	r.Steps = strings.Count(through, "\n") - 1
	r.Commands, r.Writes = l.check(t, s, sent(t, through))
}

func compare(t *testing.T, direct, through string) {
	t.Helper()
	d, p := strings.Split(direct, "\n"), strings.Split(through, "\n")
	if len(d) < 25 {
		t.Errorf("only %d lines:\n%s", len(d), brief(direct))
	}
	// That it isn't the same failure twice.
	for _, line := range []string{"insert many: .*250", "delete: .*25", "count: .*229", "15 MB back: .*true"} {
		if !regexp.MustCompile("(?m)^" + line).MatchString(direct) {
			t.Errorf("no line %q:\n%s", line, brief(direct))
		}
	}
	for i := range max(len(d), len(p)) {
		if i >= len(d) || i >= len(p) || d[i] != p[i] {
			t.Errorf("line %d:\n directly %q\n through  %q", i+1, at(d, i), at(p, i))
		}
	}
}

func at(lines []string, i int) string {
	if i >= len(lines) {
		return "(nothing)"
	}
	return brief(lines[i])
}

func brief(s string) string {
	if len(s) > 2000 {
		return s[:1000] + " ... " + s[len(s)-1000:]
	}
	return s
}

// link leads to one server and keeps what it saw.
type link struct {
	*rig.Link
	got rig.Keep
}

func startLink(t *testing.T, upstream string) *link { return startLinks(t, []string{upstream}) }

// startLinks leads to each of a set's members.
func startLinks(t *testing.T, upstreams []string) *link {
	t.Helper()
	l := &link{}
	var links []proxy.LinkConfig
	for i, u := range upstreams {
		c := proxy.LinkConfig{Upstream: u}
		if len(upstreams) > 1 {
			c.Name, c.From, c.To, c.Set = fmt.Sprint("app-", i), "app", fmt.Sprint("rs0.", i), "rs0"
		}
		links = append(links, c)
	}
	l.Link = rig.StartLinks(t, rig.Options{Protocol: wire.MongoDB, RTT: rtt, Jitter: jitter, Reads: true}, links, &l.got)
	return l
}

// stop ends the link, whose clients are gone, and checks that it read
// everything, but of a server that compresses the biggest messages.
func (l *link) stop(t *testing.T, s server) {
	t.Helper()
	if !s.compresses {
		l.Stop(t, "")
		return
	}
	if cut := l.Stop(t, "compressed_cut"); cut < 1 || cut > 2 {
		t.Errorf("%d big messages read in part, want the reply, or it and the insert", cut)
	}
}

// always are commands that every scenario sends, and that are writes.
var always = []string{"insert", "update", "delete", "findAndModify", "createIndexes", "drop"}

// check holds what the proxy saw against what the client says it sent, and
// returns the numbers of commands and of writes.
func (l *link) check(t *testing.T, s server, sent map[string]int) (commands, writes int) {
	t.Helper()
	seen, written, monitors, streams := map[string]int{}, map[string]int{}, 0, 0
	for i := range l.got.All {
		x := &l.got.All[i]
		switch {
		case x.Mongo.Monitor:
			monitors++
			if x.Mongo.Exhaust {
				streams++
			}
			if x.Write {
				t.Errorf("%s is a write", x.Operation)
			}
			continue
		case s.answersAll && x.Sides[wire.ToServer].Bytes == 0:
			continue // a reply that nobody asked for
		case x.Write:
			written[x.Operation]++
			writes++
		}
		seen[x.Operation]++
		commands++
	}
	if monitors == 0 {
		t.Error("no hello was seen")
	}
	if s.streams && streams == 0 {
		t.Errorf("none of %d hellos streamed", monitors)
	}
	// By their drivers' counts these aren't always sent, or not always counted.
	for _, name := range []string{"hello", "isMaster", "ismaster", "ping", "endSessions", "killCursors"} {
		delete(sent, name)
		delete(seen, name)
	}
	if !maps.Equal(sent, seen) {
		t.Errorf("commands:\n sent %v\n seen %v", sent, seen)
	}
	for _, name := range always {
		if written[name] == 0 || written[name] != sent[name] {
			t.Errorf("%s: seen as a write %d times, sent %d times", name, written[name], sent[name])
		}
	}
	for name, n := range written {
		if n != sent[name] {
			t.Errorf("%s: seen as a write %d times, sent %d times", name, n, sent[name])
		}
	}
	l.checkConcerns(t)
	return commands, writes
}

// checkConcerns: what the scenarios state must be there, in this order.
func (l *link) checkConcerns(t *testing.T) {
	t.Helper()
	var got []string
	for i := range l.got.All {
		x := &l.got.All[i]
		if x.Operation == "update" && x.Mongo.WriteConcern.Source == "command" {
			s := x.Mongo.WriteConcern.Label()
			if w := x.Mongo.WriteConcern.WTimeout; w > 0 {
				s += fmt.Sprint(" ", w)
			}
			got = append(got, s)
		}
	}
	want := []string{"w:1", "w:1 j", "w:default j", "majority", "majority 1.5s", "w:2 100ms"}
	if !slices.Equal(got, want) {
		t.Errorf("write concerns of updates: %q, want %q", got, want)
	}
}
