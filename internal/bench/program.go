package main

import (
	"strings"
	"time"
)

// program is something to put between client and server.
type program struct {
	kind   string
	driver string // what moves wirewait's bytes; empty: its default, or another program
	speak  string // the protocol of the bytes to send through it: see job
	// start runs one in front of an upstream that delays what goes to it.
	start func(upstream string, delay time.Duration) (*process, error)
	// delays says whether it can delay by so much; nil: not at all.
	delays func(time.Duration) bool
}

func (p program) name() string { return label(p.kind, p.driver) }

// label is what a row is called.
func label(kind, driver string) string {
	if driver == "" {
		return kind
	}
	return kind + ", " + driver
}

// parseDrivers reads a list such as "epoll,net"; an empty word is wirewait's
// default, for binaries that have no --driver.
func parseDrivers(list string) (drivers []string) {
	for d := range strings.SplitSeq(list, ",") {
		drivers = append(drivers, strings.TrimSpace(d))
	}
	return drivers
}

// Kinds that goals and ratios speak of.
const (
	direct        = "direct"
	relayTCP      = "bare relay, 32 KiB"
	relayPostgres = "bare relay, 32 KiB (postgres)"
	relayMongo    = "bare relay, 32 KiB (mongodb)"
	timerRelay    = "relay with time.Timer"
	haProxy       = "HAProxy, tcp mode"
	toxiProxy     = "Toxiproxy"
	pgBouncer     = "PgBouncer, session mode"
	wirewaitTCP   = "wirewait tcp"
	untraced      = "wirewait postgres, traces off"
	onePercent    = "wirewait postgres, 1 % sampled"
	everyWrite    = "wirewait postgres, every write"
	everyMongo    = "wirewait mongodb, every write"
)

func (b *bench) relayProgram() program {
	return program{kind: relayTCP, start: func(upstream string, _ time.Duration) (*process, error) {
		return b.fleet.role("relay", "copy32", upstream)
	}}
}

// timerProgram reads 64 KiB at once, as wirewait does.
func (b *bench) timerProgram() program {
	return program{kind: timerRelay, delays: anyDelay,
		start: func(upstream string, delay time.Duration) (*process, error) {
			mode := "copy64"
			if delay > 0 {
				mode = "timer:" + delay.String()
			}
			return b.fleet.role("relay", mode, upstream)
		}}
}

// wirewaits is one program for each driver.
func (b *bench) wirewaits(kind, protocol string) (all []program) {
	for _, driver := range b.drivers {
		p := program{kind: kind, driver: driver, delays: anyDelay,
			start: func(upstream string, delay time.Duration) (*process, error) {
				return b.wirewait(driver, upstream, nil, "--protocol", protocol, "--delay-to-server", delay.String())
			}}
		if protocol != "tcp" {
			p.speak = protocol
		}
		all = append(all, p)
	}
	return all
}

func anyDelay(time.Duration) bool { return true }

// others are the proxies of the field that are installed, or can be built.
func (b *bench) others() (all []program) {
	if path := find("haproxy"); path == "" {
		b.missing("HAProxy: it is not installed (Debian: haproxy)")
	} else {
		all = append(all, program{kind: haProxy, start: func(upstream string, _ time.Duration) (*process, error) {
			return b.haproxy(path, upstream)
		}})
	}
	return append(all, b.toxiproxies()...)
}

// toxiproxies is Toxiproxy's program, if there is one. It delays by whole
// milliseconds.
func (b *bench) toxiproxies() []program {
	path, err := b.toxiproxyServer()
	if err != nil {
		b.missing("Toxiproxy: %v", err)
		return nil
	}
	return []program{{kind: toxiProxy,
		delays: func(d time.Duration) bool { return d%time.Millisecond == 0 },
		start: func(upstream string, delay time.Duration) (*process, error) {
			return b.toxiproxy(path, upstream, "upstream", delay)
		}}}
}

// targets starts programs in front of an upstream, without delay. Ratios are
// against the baseline.
func (b *bench) targets(upstream, baseline string, programs []program) (all []target, err error) {
	for _, x := range programs {
		p, err := x.start(upstream, 0)
		if err != nil {
			return nil, err
		}
		all = append(all, target{kind: x.kind, driver: x.driver, addr: p.Addr, pid: p.pid(), speak: x.speak, baseline: baseline})
	}
	return all, nil
}
