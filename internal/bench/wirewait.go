package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

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
func (b *bench) wirewait(driver, upstream string, env []string, args ...string) (*process, error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	all := []string{"--listen", addr, "--upstream", upstream, "--connect=false"}
	if !slices.Contains(args, "--admin") {
		all = append(all, "--admin", "off")
	}
	p, err := b.runWirewait(driver, env, append(all, args...)...)
	if err != nil {
		return nil, err
	}
	p.Addr = addr
	return p, p.reachable()
}

// runWirewait starts "wirewait run".
func (b *bench) runWirewait(driver string, env []string, args ...string) (*process, error) {
	all := []string{"run"}
	if driver != "" {
		all = append(all, "--driver", driver)
	}
	p := &process{command: exec.Command(b.wirewaitPath, append(all, args...)...)}
	p.command.Env = append(plainEnvironment(), env...)
	log, err := p.logTo(b.temp)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if err := b.fleet.start(p); err != nil {
		return nil, fmt.Errorf("start wirewait: %w", err)
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
