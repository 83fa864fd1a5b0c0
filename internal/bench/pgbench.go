package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/internal/study"
)

// pgbenchClients is how many connections pgbench uses.
const pgbenchClients = 8

// pgbench runs pgbench's SELECT-only script through each way to a real server.
func (b *bench) pgbench(ctx context.Context) error {
	program, bouncer := find("pgbench"), find("pgbouncer")
	if program == "" {
		b.missing("pgbench -S: pgbench is not installed (Debian: postgresql-contrib or postgresql-15)")
		return nil
	}
	db, err := lab.StartPostgres(ctx, lab.PostgresOptions{})
	if err != nil {
		b.missing("pgbench -S: %v", err)
		return nil
	}
	defer db.Stop()
	if out, err := exec.CommandContext(ctx, program, pgbenchArgs(db.Addr(), "-i", "-q", "-s", "10")...).CombinedOutput(); err != nil {
		return fmt.Errorf("pgbench -i: %w: %s", err, out)
	}
	targets, err := b.pgbenchTargets(db.Addr(), bouncer)
	if err != nil {
		return err
	}
	tps, work := map[string][]float64{}, map[string][]float64{}
	for range b.pick(6, 3) {
		for _, i := range rand.Perm(len(targets)) {
			t := targets[i]
			v, cpu, err := runPgbench(ctx, program, t, b.pick(2, 1))
			if err != nil {
				return fmt.Errorf("%s: %w", t.name(), err)
			}
			tps[t.name()] = append(tps[t.name()], v)
			work[t.name()] = append(work[t.name()], cpu)
		}
	}
	b.reportPgbench(db.Version(), targets, tps, work)
	return nil
}

func (b *bench) pgbenchTargets(upstream, bouncer string) ([]target, error) {
	targets := []target{{kind: direct, addr: upstream}}
	more, err := b.targets(upstream, "", append([]program{b.relayProgram()}, b.others()...))
	if err != nil {
		return nil, err
	}
	targets = append(targets, more...)
	if bouncer == "" {
		b.missing("PgBouncer: it is not installed (Debian: pgbouncer)")
	} else {
		p, err := b.bouncer(bouncer, upstream)
		if err != nil {
			return nil, err
		}
		targets = append(targets, target{kind: pgBouncer, addr: p.Addr, pid: p.pid()})
	}
	receiver, err := b.fleet.role("receiver")
	if err != nil {
		return nil, err
	}
	for _, driver := range b.drivers {
		p, err := b.wirewait(driver, upstream, tracing(receiver), "--protocol", "postgres")
		if err != nil {
			return nil, err
		}
		targets = append(targets, target{kind: everyWrite, driver: driver, addr: p.Addr, pid: p.pid()})
	}
	return targets, nil
}

func (b *bench) reportPgbench(version string, targets []target, tps, work map[string][]float64) {
	t := b.report.table("pgbench", fmt.Sprintf("pgbench -S, %d clients, PostgreSQL %s", pgbenchClients, version),
		"transactions/s", "CPU µs/transaction", "tps / PgBouncer", "tps / relay")
	for _, x := range targets {
		name := x.name()
		var used study.Spread
		if x.pid != 0 {
			used = study.SpreadOf(work[name])
		}
		t.add(name, study.SpreadOf(tps[name]), used, study.SpreadOf(study.Ratios(tps[name], tps[pgBouncer])), study.SpreadOf(study.Ratios(tps[name], tps[relayTCP])))
		if x.kind == everyWrite {
			b.report.goal(label("pgbench -S / PgBouncer", x.driver), t.cell(name, "tps / PgBouncer"), "x", 1, true)
		}
	}
}

func pgbenchArgs(addr string, args ...string) []string {
	host, port, _ := net.SplitHostPort(addr)
	return append(args, "-h", host, "-p", port, "-U", "postgres", "postgres")
}

var tpsLine = regexp.MustCompile(`(?m)^tps = ([0-9.]+)`)

// runPgbench returns transactions a second and the processor time in µs that
// the process in the middle took for each.
func runPgbench(ctx context.Context, program string, t target, seconds int) (tps, work float64, err error) {
	c := exec.CommandContext(ctx, program, pgbenchArgs(t.addr, "-n", "-S", "-c", strconv.Itoa(pgbenchClients),
		"-j", "1", "-T", strconv.Itoa(seconds))...)
	c.SysProcAttr = ownSession()
	before := watched(t.pid)
	out, err := c.CombinedOutput()
	used := watched(t.pid) - before
	if err != nil {
		return 0, 0, fmt.Errorf("pgbench: %w: %s", err, out)
	}
	m := tpsLine.FindSubmatch(out)
	if m == nil {
		return 0, 0, fmt.Errorf("pgbench printed no tps: %s", out)
	}
	tps, err = strconv.ParseFloat(string(m[1]), 64)
	return tps, float64(used.Nanoseconds()) / 1e3 / (tps * float64(seconds)), err
}

// bouncer starts PgBouncer in session mode. It refuses to run as root.
func (b *bench) bouncer(program, upstream string) (*process, error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(addr)
	host, upstreamPort, _ := net.SplitHostPort(upstream)
	ini := filepath.Join(b.temp, "pgbouncer.ini")
	err = os.WriteFile(ini, []byte(strings.Join([]string{
		"[databases]",
		fmt.Sprintf("* = host=%s port=%s user=postgres", host, upstreamPort),
		"[pgbouncer]",
		"listen_addr = 127.0.0.1",
		"listen_port = " + port,
		"unix_socket_dir =",
		"auth_type = any",
		"pool_mode = session",
		"default_pool_size = 50",
		"log_connections = 0",
		"log_disconnections = 0",
		"ignore_startup_parameters = extra_float_digits", "",
	}, "\n")), 0o644)
	if err != nil {
		return nil, err
	}
	args := []string{ini}
	if os.Geteuid() == 0 {
		args = []string{"-u", "nobody", ini}
		if err := os.Chmod(b.temp, 0o755); err != nil {
			return nil, err
		}
	}
	p := &process{Addr: addr, command: exec.Command(program, args...)}
	if err := b.fleet.start(p); err != nil {
		return nil, fmt.Errorf("start pgbouncer: %w", err)
	}
	return p, p.reachable()
}

// find looks for a program on PATH and where Debian keeps the others.
func find(program string) string {
	if p, err := exec.LookPath(program); err == nil {
		return p
	}
	for _, pattern := range []string{"/usr/sbin/", "/usr/lib/postgresql/*/bin/"} {
		if all, _ := filepath.Glob(pattern + program); len(all) > 0 {
			return all[len(all)-1]
		}
	}
	return ""
}
