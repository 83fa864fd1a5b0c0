package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// haproxy starts HAProxy in tcp mode with its defaults, a thread for each
// processor among them; only its limit of connections is ours.
// https://docs.haproxy.org/2.6/configuration.html
func (b *bench) haproxy(program, upstream string) (*process, error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(b.temp, "haproxy-"+strings.ReplaceAll(addr, ":", "-")+".cfg")
	err = os.WriteFile(config, []byte(strings.Join([]string{
		"global",
		fmt.Sprintf("  maxconn %d", mostConns()),
		"defaults",
		"  mode tcp",
		"  timeout connect 10s",
		"  timeout client 1h",
		"  timeout server 1h",
		"listen bench",
		"  bind " + addr,
		"  server upstream " + upstream, "",
	}, "\n")), 0o644)
	if err != nil {
		return nil, err
	}
	p := &process{Addr: addr, command: exec.Command(program, "-q", "-db", "-f", config)}
	log, err := p.logTo(b.temp)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if err := b.fleet.start(p); err != nil {
		return nil, fmt.Errorf("start HAProxy: %w", err)
	}
	return p, p.reachable()
}
