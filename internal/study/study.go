// Package study is what the experiments in examples/ and the benchmarks share:
// several settings measured in rounds, what their samples say, and a table, a
// CSV file and a chart of it.
//
//	round 1   b a c       each round tries every setting once, in an order of
//	round 2   a c b       its own: what slows the machine down for a while slows
//	round 3   c a b       all of them
//
// An experiment is a command; Main reads the flags that all of them have.
package study

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// Run is one run of an experiment: its flags, and where it puts what it finds.
type Run struct {
	// URI of a real cluster; empty: one is started.
	URI string
	// Dir is where files go; empty: none are written.
	Dir string
	// Quick runs take seconds and show the shape, not figures.
	Quick bool
	// Seed of all that is left to chance.
	Seed uint64
	// Stdout gets the tables, Stderr the progress.
	Stdout, Stderr io.Writer

	name string
}

// Experiment says what a command is.
type Experiment struct {
	// Name is the command's, and the first word of its files' names.
	Name string
	// About says in a sentence or two what it does.
	About string
	// URI says what the flag of that name is for.
	URI string
	// Flags adds the experiment's own; nil: it has none.
	Flags func(*flag.FlagSet)
	// Do is the experiment. It's to end with the context.
	Do func(context.Context, *Run) error
}

// Main runs the experiment as a command and ends the process: with 1 if it
// failed, with 2 if the command line is wrong.
func (e Experiment) Main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := e.run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func (e Experiment) run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	r := &Run{Stdout: stdout, Stderr: stderr, name: e.Name}
	f := flag.NewFlagSet(e.Name, flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&r.URI, "uri", "", e.URI)
	f.StringVar(&r.Dir, "out", "", "`directory` for the CSV and the SVG (default: none are written)")
	f.BoolVar(&r.Quick, "quick", false, "take seconds: shows that it works, and no figures to rely on")
	f.Uint64Var(&r.Seed, "seed", 1, "of what is left to chance")
	if e.Flags != nil {
		e.Flags(f)
	}
	f.Usage = func() {
		fmt.Fprintf(stderr, "%s\n\nusage: go run ./examples/%s [flags]\n\n", e.About, e.Name)
		f.PrintDefaults()
	}
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if f.NArg() > 0 {
		fmt.Fprintf(stderr, "%s: %q: it takes flags only (see -help)\n", e.Name, f.Args())
		return 2
	}
	if err := r.writable(); err != nil { // rather now than after the measurements
		fmt.Fprintf(stderr, "%s: --out: %v\n", e.Name, err)
		return 1
	}
	if err := e.Do(ctx, r); err != nil {
		if ctx.Err() != nil {
			err = errors.New("interrupted")
		}
		fmt.Fprintf(stderr, "%s: %v\n", e.Name, err)
		return 1
	}
	return 0
}

// Say tells a person at the terminal what goes on.
func (r *Run) Say(format string, args ...any) { fmt.Fprintf(r.Stderr, format+"\n", args...) }

// Chance is a source that the seed decides; each name has one of its own.
func (r *Run) Chance(name string) *rand.Rand {
	h := uint64(14695981039346656037) // FNV-1a
	for _, b := range []byte(name) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return rand.New(rand.NewPCG(r.Seed, h))
}

// Table prints a table, and writes it to NAME-SUFFIX.csv, or NAME.csv without
// a suffix, if files are wanted.
func (r *Run) Table(suffix string, t *Table) error {
	t.Text(r.Stdout)
	return r.CSV(suffix, t)
}

// CSV is Table without the printing: for what is too long for a terminal.
func (r *Run) CSV(suffix string, t *Table) error {
	if r.Dir == "" {
		return nil
	}
	var b strings.Builder
	if err := t.CSV(&b); err != nil {
		return err
	}
	return r.file(suffix, ".csv", []byte(b.String()))
}

// SVG writes a drawing to NAME-SUFFIX.svg, as Table does.
func (r *Run) SVG(suffix string, drawing []byte) error {
	if r.Dir == "" || drawing == nil {
		return nil
	}
	return r.file(suffix, ".svg", drawing)
}

// writable makes the directory for files, and reports whether they can be written.
func (r *Run) writable() error {
	if r.Dir == "" {
		return nil
	}
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		return fmt.Errorf("make the directory for results: %w", err)
	}
	f, err := os.CreateTemp(r.Dir, ".writable-*")
	if err != nil {
		return fmt.Errorf("no results can be written there: %w", err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func (r *Run) file(suffix, ext string, content []byte) error {
	name := r.name
	if suffix != "" {
		name += "-" + suffix
	}
	path := filepath.Join(r.Dir, name+ext)
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	r.Say("wrote %s", path)
	return nil
}
