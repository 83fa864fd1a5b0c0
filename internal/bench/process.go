package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// process is a child in a session of its own.
type process struct {
	Addr    string
	command *exec.Cmd
	in      io.WriteCloser // closing it ends a role
	out     *json.Decoder
	log     string // the file of what it said; empty: nowhere
	done    chan struct{}
}

func (p *process) pid() int { return p.command.Process.Pid }

// fleet is everything that was started. One goroutine uses it.
type fleet struct{ all []*process }

// role runs this program again as one of its helpers and waits until it says
// where it listens.
func (f *fleet) role(name string, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{command: exec.Command(self, args...)}
	p.command.Env = append(os.Environ(), roleVariable+"="+name)
	p.command.Stderr = os.Stderr
	if p.in, err = p.command.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p.out = json.NewDecoder(out)
	if err := f.start(p); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	if err := p.out.Decode(&p.Addr); err != nil {
		return nil, fmt.Errorf("start %s: it did not say where it listens: %w", name, err)
	}
	return p, nil
}

func (f *fleet) start(p *process) error {
	p.command.SysProcAttr = ownSession()
	if err := p.command.Start(); err != nil {
		return err
	}
	p.done = make(chan struct{})
	f.all = append(f.all, p)
	go func() {
		_ = p.command.Wait()
		close(p.done)
	}()
	return nil
}

// stop ends a process: politely, and after some seconds by force.
func (p *process) stop() {
	if p.in != nil {
		p.in.Close()
	} else {
		_ = p.command.Process.Signal(syscall.SIGTERM)
	}
	select {
	case <-p.done:
	case <-time.After(15 * time.Second):
		_ = p.command.Process.Kill()
		<-p.done
	}
}

// stop ends what was started, the last first.
func (f *fleet) stop() {
	for i := len(f.all) - 1; i >= 0; i-- {
		f.all[i].stop()
	}
	f.all = nil
}

// end stops one process.
func (f *fleet) end(pid int) {
	f.all = slices.DeleteFunc(f.all, func(p *process) bool {
		if p.pid() != pid {
			return false
		}
		p.stop()
		return true
	})
}

// ask sends a client a job and waits for its outcome.
func (p *process) ask(j job) (outcome, error) {
	var o outcome
	b, err := json.Marshal(j)
	if err != nil {
		return o, err
	}
	if _, err := p.in.Write(append(b, '\n')); err != nil {
		return o, fmt.Errorf("ask the client: %w", err)
	}
	if err := p.out.Decode(&o); err != nil {
		return o, fmt.Errorf("the client is gone: %w", err)
	}
	if o.Error != "" {
		return o, errors.New(o.Error)
	}
	return o, nil
}

// freeAddress is an address nobody listens on, below the ports that the kernel
// takes for outgoing connections, so that it stays free until it is used.
func freeAddress() (string, error) {
	for range 200 {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(20000+rand.IntN(12000)))
		if ln, err := net.Listen("tcp", addr); err == nil {
			ln.Close()
			return addr, nil
		}
	}
	return "", errors.New("no free port between 20000 and 32000 on 127.0.0.1")
}

// logTo keeps what a process says in a file. The caller closes it once the
// process runs.
func (p *process) logTo(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, filepath.Base(p.command.Path)+"-*.log")
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.command.Path, err)
	}
	p.log, p.command.Stdout, p.command.Stderr = f.Name(), f, f
	return f, nil
}

// said is what a process wrote into its log, with a colon before it.
func (p *process) said() string {
	b, _ := os.ReadFile(p.log)
	if b = bytes.TrimSpace(b); len(b) == 0 {
		return ""
	}
	return ": " + string(b)
}

// reachable waits until somebody listens, or the process has ended.
func (p *process) reachable() error {
	for range 1000 {
		c, err := net.Dial("tcp", p.Addr)
		if err == nil {
			return c.Close()
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended before it listened%s", p.command.Path, p.said())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s does not listen on %s after 10 s%s", p.command.Path, p.Addr, p.said())
}
