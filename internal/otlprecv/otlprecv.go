// Package otlprecv is a small OTLP receiver that runs in a process of its own,
// for tests and benchmarks that must not measure or trust themselves. It
// counts what it gets over gRPC and HTTP and can write it down as JSON.
//
// The process is the caller's own binary, run again. TestMain (or main) says
//
//	if otlprecv.Requested() {
//		otlprecv.Main()
//	}
//
// and whoever wants a receiver calls Start. The two talk over pipes:
//
//	receiver's standard output        its standard input
//	{"grpc":"...","http":"..."}
//	                                  a line: "how many?"
//	{"requests":1,"spans":4,...}
//	                                  end: stop
//
// The receiver ends with its starter, however that ends.
package otlprecv

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
)

const (
	variable     = "WIREWAIT_OTLP_RECEIVER"
	variableDump = "WIREWAIT_OTLP_RECEIVER_DUMP"
)

// Addresses are where a receiver listens, as host:port.
type Addresses struct {
	GRPC string `json:"grpc"`
	HTTP string `json:"http"`
}

// Counts are what a receiver got so far. Bytes are those of the requests'
// messages, uncompressed.
type Counts struct {
	Requests uint64 `json:"requests"`
	Spans    uint64 `json:"spans"`
	Metrics  uint64 `json:"metrics"`
	Bytes    uint64 `json:"bytes"`
}

// Process is a receiver that runs. One goroutine uses it.
type Process struct {
	Addresses
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

// Start runs a receiver. Each trace request is appended to the file dump as a
// line of JSON (protobuf's mapping); "" writes nothing.
func Start(dump string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start a receiver: %w", err)
	}
	p := &Process{command: exec.Command(self)}
	p.command.Env = append(os.Environ(), variable+"=1", variableDump+"="+dump)
	p.command.Stderr = os.Stderr
	if p.in, err = p.command.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start a receiver: %w", err)
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start a receiver: %w", err)
	}
	p.out = bufio.NewReader(out)
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start a receiver: %w", err)
	}
	if err := p.read(&p.Addresses); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

// Counts asks the receiver.
func (p *Process) Counts() (c Counts, err error) {
	if _, err := io.WriteString(p.in, "how many?\n"); err != nil {
		return c, fmt.Errorf("ask the receiver: %w", err)
	}
	return c, p.read(&c)
}

func (p *Process) read(v any) error {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the receiver said nothing (does main or TestMain call otlprecv.Main?): %w", err)
	}
	if err := json.Unmarshal(line, v); err != nil {
		return fmt.Errorf("the receiver said %q: %w", line, err)
	}
	return nil
}

// Pid is the receiver's, to read what it costs.
func (p *Process) Pid() int { return p.command.Process.Pid }

// Stop ends the receiver. The dump is complete when it returns.
func (p *Process) Stop() error {
	p.in.Close()
	return p.command.Wait()
}
