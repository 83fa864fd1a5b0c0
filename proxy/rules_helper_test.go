//go:build unix

package proxy_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// ruledRig is a proxy with one link, called link, and rules.
type ruledRig struct {
	*proxy.Proxy
	t      *testing.T
	tracer *trace.Tracer
	faults *faultLog
}

// faultLog keeps what exchanges say rules did to them.
type faultLog struct{ all []wire.Fault }

func (l *faultLog) Consume(f *trace.Finished) { l.all = append(l.all, f.Faults...) }

func newRuledRig(t *testing.T, driver string, lc proxy.LinkConfig, rules ...inject.Rule) *ruledRig {
	t.Helper()
	r := &ruledRig{t: t, faults: &faultLog{}}
	r.tracer = trace.New(1<<16, r.faults)
	t.Cleanup(r.tracer.Close)
	lc.Name, lc.Listen = "link", "127.0.0.1:0"
	var err error
	r.Proxy, err = proxy.Start(context.Background(), proxy.Config{
		Links: []proxy.LinkConfig{lc}, Rules: rules, Seed: 42, Driver: driver, Tracer: r.tracer, Reads: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.cut)
	return r
}

func (r *ruledRig) addr() string { return r.Links()[0].Addr().String() }

func (r *ruledRig) cut() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = r.Shutdown(ctx)
}

// counts are what the rule of that name did on the link.
func (r *ruledRig) counts(name string) proxy.LinkRule {
	r.t.Helper()
	for _, s := range r.Rules() {
		if s.Name == name && len(s.Links) == 1 {
			return s.Links[0]
		}
	}
	r.t.Fatalf("there is no rule %s on one link", name)
	return proxy.LinkRule{}
}

// wantHits checks how often a rule fired.
func (r *ruledRig) wantHits(name string, n uint64) {
	r.t.Helper()
	if c := r.counts(name); c.Hits != n {
		r.t.Errorf("rule %s: %d hits, want %d (%+v)", name, c.Hits, n, c)
	}
}

// wantFault ends the proxy and checks that an exchange says what was done to it.
func (r *ruledRig) wantFault(f wire.Fault) {
	r.t.Helper()
	r.cut()
	r.tracer.Close()
	for _, g := range r.faults.all {
		if g == f {
			return
		}
	}
	r.t.Errorf("no exchange has %+v; there are %+v", f, r.faults.all)
}

// onDrivers runs a test over each driver.
func onDrivers(t *testing.T, f func(t *testing.T, driver string)) {
	drivers := []string{proxy.DriverNet}
	if runtime.GOOS == "linux" {
		drivers = append(drivers, proxy.DriverEpoll)
	}
	for _, driver := range drivers {
		t.Run(driver, func(t *testing.T) { f(t, driver) })
	}
}
