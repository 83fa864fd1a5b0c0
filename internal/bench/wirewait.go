package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// errNoWirewait is returned when only relays are to be measured.
var errNoWirewait = errors.New("wirewait was left out by -relays")

// build makes the wirewait that is measured.
func (b *bench) build(ctx context.Context) error {
	b.wirewaitPath = filepath.Join(b.temp, "wirewait")
	c := exec.CommandContext(ctx, "go", "build", "-o", b.wirewaitPath, "./cmd/wirewait")
	c.Dir = b.root
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build cmd/wirewait (-relays measures without it): %w\n%s", err, bytes.TrimSpace(out))
	}
	return nil
}

// wirewait starts one in front of an upstream, without delay and connect cost
// unless the arguments say so, and waits until it listens.
func (b *bench) wirewait(upstream string, env []string, args ...string) (*process, error) {
	if b.wirewaitPath == "" {
		return nil, errNoWirewait
	}
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	all := append([]string{"run", "--listen", addr, "--upstream", upstream, "--connect=false"}, args...)
	if !strings.Contains(strings.Join(args, " "), "--admin") {
		all = append(all, "--admin", "off")
	}
	p := &process{Addr: addr, command: exec.Command(b.wirewaitPath, all...)}
	p.command.Env = append(plainEnvironment(), env...)
	log, err := os.CreateTemp(b.temp, "wirewait-*.log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.command.Stderr = log
	if err := b.fleet.start(p); err != nil {
		return nil, fmt.Errorf("start wirewait: %w", err)
	}
	if err := p.reachable(); err != nil {
		said, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(said))
	}
	return p, nil
}

// plainEnvironment is ours without what would change how wirewait runs.
func plainEnvironment() []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "OTEL_") && !strings.HasPrefix(e, "GO") {
			env = append(env, e)
		}
	}
	return env
}

// tracing is the environment that sends spans to a receiver.
func tracing(receiver *process, sampler ...string) []string {
	return append(sampler, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://"+receiver.Addr+"/v1/traces")
}
