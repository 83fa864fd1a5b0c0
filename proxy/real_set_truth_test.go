//go:build unix

package proxy_test

import (
	"flag"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/internal/lab/mongod"
	"github.com/wirewait/wirewait/internal/testenv"
	"github.com/wirewait/wirewait/trace"
)

var quiet = flag.Bool("quiet", false, "this machine does nothing else: figures in milliseconds must keep within their bounds too")

// Many writes of all kinds against what the lab has noted of them.
func TestRealSet_ManyClientsAgainstTheTruth(t *testing.T) {
	testenv.Timely(t)
	// Here the servers are in the proxy's process. Each sync of a journal keeps one
	// of the scheduler's processors until sysmon takes it away, and where there are
	// as few as cores the proxy's next stamp waits for that, by milliseconds.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(8, runtime.NumCPU())))
	concerns := []*writeconcern.WriteConcern{
		writeconcern.Majority(), {W: 3}, {W: 2}, {W: "majority", Journal: &yes}, {W: 2, Journal: &yes}, nil, {W: 3, Journal: &yes},
	}
	const clients, each, alone = 16, 42, 21
	y := &verdicts{}
	for _, o := range []setOptions{{}, {noHostInfo: true}, {pairs: true}} {
		if o.noHostInfo && runtime.GOOS != "linux" {
			continue
		}
		o.jitter = 6 * time.Millisecond
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			r := newSetRig(t, o)
			list := r.orders(t, clients)
			r.write(t, list, each, concerns...)
			y.crowd = append(y.crowd, y.judge(t, r, clients*each)...)
			if !o.pairs {
				return
			}
			r.write(t, list[:1], alone, concerns...)
			y.alone = y.judge(t, r, alone)
		})
	}
	if y.all < 2000 && runtime.GOOS == "linux" {
		t.Errorf("%d writes: too few to say anything", y.all)
	}
	for _, f := range y.figures() {
		t.Logf("%-62s %12s   bound %s", f.what, f.measured, f.bound)
		if !f.holds && (!f.load || *quiet) {
			t.Errorf("%s: %s, want at most %s", f.what, f.measured, f.bound)
		}
	}
	// What load can't explain: most of them.
	if y.near*2 < len(y.starts) || y.tie*5 > y.all {
		t.Errorf("replication is within 1 ms or 3%% for %d of %d; %d ties of %d", y.near, len(y.starts), y.tie, y.all)
	}
}

// verdicts count how what was said of writes compares with what they did.
type verdicts struct {
	all, right, wrong, unknown, tie int
	stood                           int             // answered long after the release: the primary stood still, or its disk did
	near                            int             // replication within its bound
	starts, ends                    []time.Duration // of replication: how much later, and earlier, than the primary's own record
	alone, crowd                    []time.Duration // by how much a client waited longer than its span
}

// judge takes n writes, and returns by how much their clients waited longer than
// their spans.
func (y *verdicts) judge(t *testing.T, r *setRig, n int) (beyond []time.Duration) {
	t.Helper()
	truth := r.releases()
	bases := map[string]int{}
	for _, w := range r.take(t, n) {
		rel, ok := truth[w.at]
		if !ok {
			t.Fatalf("the lab knows nothing of %+v", w)
		}
		bases[w.concern+" "+w.by+" "+w.basis]++
		y.compare(t, &w, &rel)
		r.mu.Lock()
		measured := r.measured[w.at]
		r.mu.Unlock()
		if beyond = append(beyond, measured-w.total); w.total > measured {
			t.Errorf("%s: the span has %v, and its client waited for %v", w.concern, w.total, measured)
		}
	}
	t.Logf("%v", bases)
	return beyond
}

func (y *verdicts) compare(t *testing.T, w *judgedWrite, rel *mongod.Release) {
	t.Helper()
	y.all++
	if w.late > 30*time.Millisecond {
		y.stood++
	}
	switch {
	case w.by == "" && w.basis == trace.BasisTie:
		y.tie++
		return
	case w.by == "":
		y.unknown++
		return
	case w.by == "rs0."+rel.By:
		y.right++
		if rel.At.Before(w.released) {
			t.Errorf("%s: released %v after the primary knew", w.concern, w.released.Sub(rel.At))
		}
	default:
		y.wrong++
		t.Logf("%s: by %s, %s, %v before the reply; in truth by %s, %v after that", w.concern, w.by, w.basis, w.late, rel.By, rel.At.Sub(w.released))
	}
	y.starts = append(y.starts, w.began.Sub(rel.Since))
	y.ends = append(y.ends, rel.At.Sub(w.released))
	was := rel.At.Sub(rel.Since)
	if d := (w.replication - was).Abs(); d <= time.Millisecond || float64(d) <= 0.03*math.Abs(float64(was)) {
		y.near++
	}
}

// figure is one of the results beside its bound.
type figure struct {
	what, measured, bound string
	holds                 bool
	load                  bool // it depends on what else the machine does
}

func (y *verdicts) figures() (list []figure) {
	percent := func(what string, n, of int, most float64, load bool) {
		share := 100 * float64(n) / float64(max(of, 1))
		list = append(list, figure{what, fmt.Sprintf("%.1f%% (%d)", share, n), fmt.Sprintf("%g%%", most), share <= most, load})
	}
	most := 1.0
	if y.stood*30 > y.all && !*quiet {
		most = 5 // what a server takes in after such a pause, and when, nobody can see
	}
	percent("attributed to the wrong member, of those attributed", y.wrong, y.right+y.wrong, most, false)
	percent("unknown", y.unknown, y.all, 2, false)
	percent("answered more than 30 ms after the release", y.stood, y.all, 3.3, true)
	percent("ties: two acknowledgements, either of which it may have been", y.tie, y.all, 5, true)
	percent("replication_ms off by more than 1 ms and 3%", len(y.starts)-y.near, len(y.starts), 5, true)
	quantile := func(what string, of []time.Duration, percent int, most time.Duration) {
		slices.Sort(of)
		f := figure{what: what, measured: "none", bound: "none", holds: true, load: true}
		if len(of) > 0 {
			d := of[len(of)*percent/100]
			f.measured = d.Round(time.Microsecond).String()
			if most > 0 {
				f.bound, f.holds = most.String(), d <= most
			}
		}
		list = append(list, f)
	}
	quantile("client's wait beyond its span, one client, median", y.alone, 50, 300*time.Microsecond)
	quantile("client's wait beyond its span, 16 clients at once, median", y.crowd, 50, 0)
	for _, q := range []int{1, 50, 95} {
		quantile(fmt.Sprintf("entry read after the primary began to wait, %d%%", q), y.starts, q, 0)
		quantile(fmt.Sprintf("acknowledgement passed on before the primary knew, %d%%", q), y.ends, q, 0)
	}
	return list
}
