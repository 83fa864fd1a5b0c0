package mongod

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

// TestMain fails the run if goroutines are left once all tests are over.
func TestMain(m *testing.M) {
	before := runtime.NumGoroutine()
	code := m.Run()
	if f := flag.Lookup("test.fuzz"); f.Value.String() != "" {
		os.Exit(code) // what runs the workers leaves a goroutine of its own
	}
	for range 500 {
		if runtime.NumGoroutine() <= before {
			os.Exit(code)
		}
		time.Sleep(10 * time.Millisecond)
	}
	buf := make([]byte, 1<<20)
	fmt.Printf("goroutines left: %d before, %d after\n%s\n", before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
	os.Exit(1)
}
