package rig

import (
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// Process is a server that a test started.
type Process struct {
	Log   Log           // both outputs, unless the command had its own
	Ended chan struct{} // closed when it has
	cmd   *exec.Cmd
}

// StartProcess starts a server. It ends with the test.
func StartProcess(t *testing.T, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{cmd: cmd, Ended: make(chan struct{})}
	if cmd.Stdout == nil && cmd.Stderr == nil {
		cmd.Stdout, cmd.Stderr = &p.Log, &p.Log
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait()
		close(p.Ended)
	}()
	t.Cleanup(p.Stop)
	return p
}

// Stop interrupts the process and waits for its end. One that doesn't end is
// killed.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(os.Interrupt)
	select {
	case <-p.Ended:
	case <-time.After(30 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.Ended
	}
}

// Until asks again and again whether the server is ready. False: it ended, or
// isn't after a minute.
func (p *Process) Until(ready func() bool) bool {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if ready() {
			return true
		}
		select {
		case <-p.Ended:
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
	return false
}

// nextPort is behind the last that FreeAddr gave.
var nextPort atomic.Int32

// FreeAddr is a free port below the range from which systems take the ports of
// outgoing connections. It gives none twice until all have been.
func FreeAddr(t *testing.T) string {
	t.Helper()
	const first, count = 18_000, 14_000
	nextPort.CompareAndSwap(0, int32(os.Getpid()%5000))
	for range count {
		port := first + int(nextPort.Add(1))%count
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
	t.Fatal("no free port")
	return ""
}
