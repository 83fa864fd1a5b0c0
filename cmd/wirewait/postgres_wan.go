package main

import (
	"context"
	"fmt"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// A postgresWAN is a PostgreSQL cluster in several places: links lead to the
// primary from its application and from each standby.
//
//	app ---------- 0 ms ----------+
//	s1  ---------- 40 ms ---------+--> pg.p
//	s2  ---------- 120 ms --------+
type postgresWAN struct {
	syncNames string
	standbys  []farStandby
}

// farStandby is a standby and the round trip between it and the primary.
type farStandby struct {
	name string
	rtt  time.Duration
}

// The primary as links call it, and the application's link.
const (
	wanPrimary = "pg.p"
	wanAppLink = "app-pg.p"
)

// defaultPostgresWAN has one standby near and one far.
func defaultPostgresWAN() postgresWAN {
	return postgresWAN{
		syncNames: "ANY 1 (s1, s2)",
		standbys:  []farStandby{{"s1", 40 * time.Millisecond}, {"s2", 120 * time.Millisecond}},
	}
}

// links are those to a primary.
func (w *postgresWAN) links(primary string) []proxy.LinkConfig {
	link := func(from string, rtt time.Duration) proxy.LinkConfig {
		return proxy.LinkConfig{
			Name: from + "-" + wanPrimary, From: from, To: wanPrimary, Listen: "127.0.0.1:0", Upstream: primary,
			Protocol: wire.Postgres, Delay: inject.Symmetric(rtt, 0),
		}
	}
	links := []proxy.LinkConfig{link("app", 0)}
	for _, s := range w.standbys {
		links = append(links, link("pg."+s.name, s.rtt))
	}
	return links
}

// start starts the cluster; open is asked to open the links to its primary once
// that runs.
func (w *postgresWAN) start(ctx context.Context, tracer func() *trace.Tracer, open func([]proxy.LinkConfig) (*proxy.Proxy, error)) (*lab.PostgresCluster, error) {
	rule, err := trace.ParseStandbyNames(w.syncNames)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, s := range w.standbys {
		names = append(names, s.name)
	}
	return lab.StartPostgresCluster(ctx, lab.PostgresClusterOptions{
		Standbys: names, SyncNames: w.syncNames,
		Through: func(primary string) (map[string]string, error) {
			p, err := open(w.links(primary))
			if err != nil {
				return nil, err
			}
			tracer().SetRule(wanPrimary, rule)
			addrs := map[string]string{}
			for _, s := range w.standbys {
				addrs[s.name] = p.Link("pg." + s.name + "-" + wanPrimary).Addr().String()
			}
			return addrs, nil
		},
	})
}

// String is "s1 at 40ms, s2 at 120ms, ANY 1 (s1, s2)".
func (w *postgresWAN) String() string {
	text := ""
	for _, s := range w.standbys {
		text += fmt.Sprintf("%s at %v, ", s.name, s.rtt)
	}
	if w.syncNames == "" {
		return text + "no synchronous_standby_names"
	}
	return text + w.syncNames
}
