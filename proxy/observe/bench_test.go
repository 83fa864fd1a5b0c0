package observe

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/internal/lab/mongod"
)

// What a look costs: docs/observe.md has the figures.

func benchmarkLook(b *testing.B, s *Sampler, spent func(asker) time.Duration) {
	s.Log = slog.New(slog.DiscardHandler)
	a, err := s.asker()
	if err != nil {
		b.Fatal(err)
	}
	defer a.close()
	if _, err := a.look(b.Context()); err != nil { // connects
		b.Fatal(err)
	}
	before := spent(a)
	for b.Loop() {
		if _, err := a.look(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	if server := spent(a) - before; server > 0 {
		b.ReportMetric(float64(server.Microseconds())/float64(b.N), "server-cpu-µs/op")
	}
}

func BenchmarkLook_Mongo(b *testing.B) {
	set, err := mongod.StartSet(b.Context(), mongod.SetOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer set.Close()
	benchmarkLook(b, &Sampler{Server: "rs0.a", URI: set.Member("a").URI()}, func(asker) time.Duration { return 0 })
}

// BenchmarkLook_Postgres also says how much of the server's processor time a look
// takes, where the system tells (Linux).
func BenchmarkLook_Postgres(b *testing.B) {
	pg, err := lab.StartPostgresCluster(b.Context(), lab.PostgresClusterOptions{Standbys: []string{"s1"}})
	if err != nil {
		b.Skip(err)
	}
	defer func() {
		if err := pg.Stop(); err != nil {
			b.Error(err)
		}
	}()
	benchmarkLook(b, &Sampler{Server: "pg.p", URI: pg.URL(pg.Primary.Addr())}, func(a asker) time.Duration {
		return processorTime(a.(*postgresAsker).conn.PID())
	})
}

// processorTime is what a process has taken so far; 0: the system doesn't tell.
func processorTime(pid uint32) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100
}
