package study

import (
	"context"
	"encoding/csv"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestRounds_EachTriesAllInAnOrderOfItsOwn(t *testing.T) {
	var orders []string
	order := ""
	err := Rounds(20, 4, rand.New(rand.NewPCG(1, 2)), func(round, setting int) error {
		if order += string(rune('0' + setting)); len(order) == 4 {
			orders, order = append(orders, order), ""
		}
		if round != (len(orders)*4+len(order)-1)/4 {
			t.Fatalf("round %d after %d settings", round, len(orders)*4+len(order))
		}
		return nil
	})
	if err != nil || len(orders) != 20 {
		t.Fatalf("%v, %v", orders, err)
	}
	for _, o := range orders {
		if b := []byte(o); slices.Compare(sorted(b), []byte("0123")) != 0 {
			t.Errorf("a round tried %s", o)
		}
	}
	if slices.Sort(orders); len(slices.Compact(orders)) < 5 {
		t.Errorf("the orders are always the same: %v", orders)
	}
	stop := errors.New("stop")
	if err := Rounds(9, 9, rand.New(rand.NewPCG(1, 2)), func(int, int) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("an error doesn't end it: %v", err)
	}
}

func sorted(b []byte) []byte { return slices.Sorted(slices.Values(b)) }

func TestLoad_MeasuresEveryOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Load(t.Context(), 3, time.Second, func(_ context.Context, client, _ int) error {
			time.Sleep(time.Duration(client+1) * 100 * time.Millisecond)
			return nil
		})
		// 10 of 100 ms, 5 of 200 ms, and 4 of 300 ms, the last of them beyond the end.
		if err != nil || len(s.Latencies) != 19 || s.Elapsed != 1200*time.Millisecond {
			t.Fatalf("%d operations in %v, %v", len(s.Latencies), s.Elapsed, err)
		}
		if p := s.Quantile(0.5); p != 100*time.Millisecond {
			t.Errorf("p50 %v", p)
		}
		if p := s.Quantile(1); p != 300*time.Millisecond {
			t.Errorf("the longest %v", p)
		}
		if x := s.Throughput(); x < 15.8 || x > 15.9 {
			t.Errorf("%v a second", x)
		}
	})
}

func TestLoad_EndsAtTheFirstError(t *testing.T) {
	broken := errors.New("broken")
	s, err := Load(t.Context(), 4, time.Hour, func(ctx context.Context, client, i int) error {
		if client == 2 && i == 3 {
			return broken
		}
		if client != 2 {
			<-ctx.Done()
		}
		return nil
	})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "client 2") {
		t.Errorf("%v", err)
	}
	if len(s.Latencies) < 3 {
		t.Errorf("%d operations", len(s.Latencies))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Load(ctx, 1, time.Hour, func(context.Context, int, int) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted one says %v", err)
	}
}

func TestSamples_Zero(t *testing.T) {
	var s Samples
	if s.Quantile(0.5) != 0 || s.Throughput() != 0 {
		t.Error("nothing measured has figures")
	}
	s.Add(Samples{Latencies: []time.Duration{time.Second}, Elapsed: time.Second})
	if s.Quantile(0.99) != time.Second || s.Throughput() != 1 {
		t.Error("one sample isn't found again")
	}
}

func table() *Table {
	t := &Table{Title: "T", Note: "N", Columns: []string{"what", "p50 ms", "writes/s", "n"}, Left: 1}
	t.Add("a, b", 1234567*time.Nanosecond, 1234.5678, 3)
	t.Add("c", nil, 0.0)
	return t
}

func TestTable(t *testing.T) {
	var text, file strings.Builder
	table().Text(&text)
	const want = "\nT\n\n  what  p50 ms  writes/s  n\n  a, b    1.23      1235  3\n  c          -         0\n\nN\n"
	if text.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", text.String(), want)
	}
	if err := table().CSV(&file); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(file.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]string{{"what", "p50_ms", "writes_per_s", "n"}, {"a, b", "1.234567", "1234.5678", "3"}, {"c", "", "0", ""}} {
		if !slices.Equal(rows[i], want) {
			t.Errorf("row %d is %q, want %q", i, rows[i], want)
		}
	}
}

// try runs an experiment as a command.
func try(do func(context.Context, *Run) error, args ...string) (code int, stdout, stderr string) {
	var out, errs strings.Builder
	e := Experiment{Name: "x", About: "Tries x.", URI: "where", Do: do}
	code = e.run(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestExperiment_Files(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	do := func(_ context.Context, r *Run) error {
		return errors.Join(r.Table("", table()), r.SVG("more", []byte("<svg/>")))
	}
	code, out, errs := try(do, "--quick", "--out", dir)
	if code != 0 || !strings.Contains(out, "a, b") || !strings.Contains(errs, "wrote ") {
		t.Fatalf("%d\n%s\n%s", code, out, errs)
	}
	for name, want := range map[string]string{"x.csv": "1.234567", "x-more.svg": "<svg/>"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	if code, _, errs := try(do); code != 0 || strings.Contains(errs, "wrote") {
		t.Errorf("without --out: %d, %s", code, errs)
	}
}

func TestExperiment_FilesThatCantBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		do := func(context.Context, *Run) error {
			t.Error("it was measured for nothing")
			return nil
		}
		if code, _, errs := try(do, "--out", dir); code != 1 || !strings.Contains(errs, "x: --out: ") {
			t.Errorf("%d, %s", code, errs)
		}
	}
}

func TestExperiment_ExitCodes(t *testing.T) {
	nothing := func(context.Context, *Run) error { return nil }
	fails := func(context.Context, *Run) error { return errors.New("no luck") }
	for _, c := range []struct {
		args []string
		do   func(context.Context, *Run) error
		code int
		says string
	}{
		{nil, nothing, 0, ""},
		{nil, fails, 1, "x: no luck"},
		{[]string{"-help"}, fails, 0, "Tries x."},
		{[]string{"-help"}, fails, 0, "-seed"},
		{[]string{"--nonsense"}, nothing, 2, "nonsense"},
		{[]string{"more"}, nothing, 2, "it takes flags only"},
	} {
		if code, _, errs := try(c.do, c.args...); code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%q: %d, %q", c.args, code, errs)
		}
	}
}

func TestChance_IsTheSeeds(t *testing.T) {
	draw := func(seed uint64, name string) uint64 { return (&Run{Seed: seed}).Chance(name).Uint64() }
	first := draw(1, "a")
	if again := draw(1, "a"); again != first || draw(2, "a") == first || draw(1, "b") == first {
		t.Error("draws don't hang on seed and name alone")
	}
}

func TestPaced_CountsFromWhenAnOperationWasDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Two clients, each due every 200 ms; the first one's first takes 500 ms.
		got, err := Paced(t.Context(), 2, 10, time.Second, func(_ context.Context, client, i int) error {
			if client == 0 && i == 0 {
				time.Sleep(500 * time.Millisecond)
			}
			return nil
		})
		const ms = time.Millisecond
		want := []Timed{{0, 500 * ms}, {100 * ms, 0}, {200 * ms, 300 * ms}, {300 * ms, 0}, {400 * ms, 100 * ms},
			{500 * ms, 0}, {600 * ms, 0}, {700 * ms, 0}, {800 * ms, 0}, {900 * ms, 0}}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
		late := Between(got, 0, 500*ms)
		if len(late.Latencies) != 5 || late.Quantile(1) != 500*ms || late.Throughput() != 10 {
			t.Errorf("in the first half %v", late)
		}
	})
}

func TestPaced_EndsAtTheFirstError(t *testing.T) {
	broken := errors.New("broken")
	_, err := Paced(t.Context(), 4, 1000, time.Hour, func(_ context.Context, client, i int) error {
		if client == 3 && i == 2 {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "client 3") {
		t.Errorf("%v", err)
	}
}
