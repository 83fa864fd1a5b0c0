package otlp

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/internal/otlprecv"
)

func TestMain(m *testing.M) {
	if otlprecv.Requested() {
		otlprecv.Main()
	}
	for _, kv := range os.Environ() { // the developer's own settings are not tested
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "OTEL_") {
			os.Unsetenv(name)
		}
	}
	code := m.Run()
	if left := leftGoroutines(); left != "" && code == 0 {
		fmt.Fprintf(os.Stderr, "goroutines are left:\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

// leftGoroutines gives those that end by themselves some time to do so.
func leftGoroutines() string {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); ; <-tick.C {
		buf := make([]byte, 1<<20)
		stacks := string(buf[:runtime.Stack(buf, true)])
		others := strings.Split(stacks, "\n\n")[1:] // the first is ours
		others = slices.DeleteFunc(others, func(stack string) bool {
			return strings.Contains(stack, "os/signal.loop") // the fuzzer's
		})
		if len(others) == 0 {
			return ""
		}
		if time.Now().After(deadline) {
			return strings.Join(others, "\n\n")
		}
	}
}
