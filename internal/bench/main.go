// Command bench measures wirewait beside what it is to be compared with.
//
//	                             bench: asks, pairs, judges
//	                               |  jobs as JSON over pipes
//	                               v
//	client ----------------------------------------------------> server
//	(load, round trips)  \--> bare relays: copy, splice, timer -/  (echo, stream,
//	                      |--> HAProxy, Toxiproxy, PgBouncer ---|   PostgreSQL by script)
//	                      \--> wirewait: each driver -----------/
//	                               |  OTLP
//	                               v
//	                            receiver
//
// Every box is a process in a session of its own, since the kernel shares the
// processors out between sessions first. All but wirewait and the proxies of
// the field are this program, run again. Everything listens on 127.0.0.1.
//
// Nothing is measured alone: in each round every target has its turn, in an
// order drawn anew, and what is judged is the ratio to the baseline of the same
// round. The median of those ratios is printed with the interval that holds it
// with 95 %. A noisy machine makes the interval wide; it doesn't make the run
// fail.
//
// What comes of it: text for a terminal, bench-out/bench.json, and with -docs
// docs/performance.md (page.md and the results) with its charts.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/wirewait/wirewait/internal/otlprecv"
)

func main() {
	if otlprecv.Requested() {
		otlprecv.Main()
	}
	if role := os.Getenv(roleVariable); role != "" {
		if err := playRole(role, os.Args[1:]); err != nil {
			fmt.Fprintf(os.Stderr, "bench, as %s: %v\n", role, err)
			os.Exit(1)
		}
		return
	}
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is a run. One goroutine uses it.
type bench struct {
	fleet          fleet
	client, server *process
	report         *Report
	root, temp     string
	drivers        []string // of wirewait; none: it isn't measured
	wirewaitPath   string
	toxiproxyPath  string // empty: not looked for yet
	quick          bool
	log            io.Writer
}

// pick is the first number, or the second if the run is quick.
func (b *bench) pick(full, quick int) int {
	if b.quick {
		return quick
	}
	return full
}

// missing notes, once, what could not be measured.
func (b *bench) missing(format string, args ...any) {
	if what := fmt.Sprintf(format, args...); !slices.Contains(b.report.Missing, what) {
		b.report.Missing = append(b.report.Missing, what)
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	quick := flags.Bool("quick", false, "less of everything, with wide intervals")
	only := flags.String("only", "", "measure only these, separated by commas: "+strings.Join(names(new(bench).measurements(context.Background())), ", "))
	driver := flags.String("driver", defaultDrivers, "wirewait's drivers, separated by commas; empty: its default, for binaries that have no --driver")
	relays := flags.Bool("relays", false, "measure without wirewait")
	binary := flags.String("wirewait", "", "measure this binary rather than building cmd/wirewait")
	docs := flags.Bool("docs", false, "write the results into docs/ as well: performance.md, its charts and its JSON")
	from := flags.String("from", "", "measure nothing, and print the results in this file")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is no flag: see -h", flags.Arg(0))
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	b := &bench{root: root, quick: *quick, log: stderr, wirewaitPath: *binary,
		report: &Report{Schema: reportSchema, Machine: machine(root), Quick: *quick}}
	if *from != "" {
		if b.report, err = loadReport(*from); err != nil {
			return err
		}
	} else {
		if !*relays {
			b.drivers = parseDrivers(*driver)
		}
		if err := b.all(*only); err != nil {
			return err
		}
	}
	b.report.text(stdout)
	if *from == "" {
		path, err := b.report.save(root)
		if err != nil {
			return err
		}
		fmt.Fprintln(stdout, "written to", path)
	}
	if *docs {
		return b.report.writeDocs(filepath.Join(root, "docs"))
	}
	return nil
}

// all builds what is measured, and measures it until it is interrupted.
func (b *bench) all(only string) (err error) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if b.temp, err = os.MkdirTemp("", "wirewait-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.temp)
	if len(b.drivers) > 0 && b.wirewaitPath == "" {
		if err := b.build(ctx); err != nil {
			return err
		}
	}
	start := time.Now()
	err = b.measure(ctx, only)
	b.report.Seconds = math.Round(time.Since(start).Seconds())
	return err
}

type measurement struct {
	name string
	run  func() error
}

func (b *bench) measurements(ctx context.Context) []measurement {
	return []measurement{
		{"pingpong", b.pingpong}, {"bulk", b.bulk}, {"bulk-delayed", b.bulkDelayed},
		{"delay", b.delayError}, {"steady", b.steady}, {"idle", b.idle},
		{"connections", func() error { return b.connections(ctx) }}, {"links", func() error { return b.links(ctx) }},
		{"writes", b.writes}, {"pgbench", func() error { return b.pgbench(ctx) }},
	}
}

func names(all []measurement) (n []string) {
	for _, m := range all {
		n = append(n, m.name)
	}
	return n
}

var errInterrupted = errors.New("interrupted; nothing was written")

// measure does what was asked for, one after the other.
func (b *bench) measure(ctx context.Context, only string) error {
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(only, ",") {
		if only != "" && !slices.Contains(names(b.measurements(ctx)), name) {
			return fmt.Errorf("there is no measurement %q: see -h", name)
		}
		wanted[name] = true
	}
	for _, m := range b.measurements(ctx) {
		if only == "" || wanted[m.name] {
			start := time.Now()
			fmt.Fprintf(b.log, "%s... ", m.name)
			if err := b.one(ctx, m.run); err != nil {
				fmt.Fprintln(b.log)
				if ctx.Err() != nil {
					err = errInterrupted // what followed from it says less
				}
				return fmt.Errorf("%s: %w", m.name, err)
			}
			fmt.Fprintf(b.log, "%.0f s\n", time.Since(start).Seconds())
		}
	}
	return nil
}

// one gives a measurement a server and a client, and ends what it started.
// An interrupt ends the client, and with it whatever waits for it.
func (b *bench) one(ctx context.Context, measure func() error) (err error) {
	defer b.fleet.stop()
	if b.server, err = b.fleet.role("server"); err != nil {
		return err
	}
	if b.client, err = b.fleet.role("client"); err != nil {
		return err
	}
	client := b.client.command.Process
	defer context.AfterFunc(ctx, func() { _ = client.Kill() })()
	return measure()
}

func moduleRoot() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the repository's root (run this inside of it): %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

func machine(root string) Machine {
	load, _ := os.ReadFile("/proc/loadavg")
	return Machine{
		Processor: processorModel(), Cores: runtime.NumCPU(), Kernel: kernel(), Go: runtime.Version(),
		Commit: commit(root), Load: strings.Join(strings.Fields(string(load))[:min(3, len(strings.Fields(string(load))))], " "),
		Date: time.Now().UTC(),
	}
}

// commit is the checkout's, with a note if files differ from it.
func commit(root string) string {
	git := func(args ...string) string {
		c := exec.Command("git", args...)
		c.Dir = root
		out, _ := c.Output()
		return strings.TrimSpace(string(out))
	}
	id := git("rev-parse", "--short", "HEAD")
	if id == "" {
		return "unknown"
	}
	if git("status", "--porcelain", "--untracked-files=no") != "" {
		id += " with changes"
	}
	return id
}
