package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/wirewait/wirewait/internal/otlprecv"
)

// roleVariable makes this program one of its own helpers. A role prints its
// address as a JSON string, answers jobs if it takes any, and ends with its
// standard input.
const roleVariable = "WIREWAIT_BENCH_ROLE"

// job is what a client or a receiver is asked to do. Durations are in
// nanoseconds.
type job struct {
	Kind  string // "ping", "steady", "walk", "stream", "hold", "release"; a receiver just counts
	Addr  string
	Addrs []string // of a hold: in place of the one address, each in turn
	Speak string   // the bytes are a protocol's: "postgres", "mongodb" or ""
	Conns int
	Held  bool          // pings go over connections that are held
	Warm  time.Duration // not measured
	For   time.Duration // measured
	Count int           // pings, in place of a time; all samples are returned
	Gap   time.Duration // between two pings
	Rate  int           // pings a second over all connections; 0: as they come
	Bytes int64         // of a stream
	Watch int           // the process whose processor time is read; 0: none
}

// outcome is what came of it. Times are in nanoseconds.
type outcome struct {
	Error   string
	Count   int   // pings measured; spans received
	All     int   // pings with those of the warm-up
	Bytes   int64 // of a stream
	Elapsed time.Duration
	P50     float64
	P99     float64
	CPU     time.Duration // of the process watched
	Samples []float64     // round trips, if Count was asked
}

// playRole is a helper's whole life.
func playRole(name string, args []string) error {
	say := json.NewEncoder(os.Stdout)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	addr := ln.Addr().String()
	work := func(job) outcome { return outcome{} }
	switch name {
	case "server":
		go serve(ln)
	case "relay":
		go relay(ln, args[0], args[1])
	case "client":
		c := &client{}
		work = c.do
	case "receiver":
		p, err := otlprecv.Start("")
		if err != nil {
			return err
		}
		defer p.Stop()
		addr = p.HTTP
		work = func(job) outcome {
			c, err := p.Counts()
			return outcome{Count: int(c.Spans), Error: text(err)}
		}
	default:
		return fmt.Errorf("%s=%s: there is no such role", roleVariable, name)
	}
	if err := say.Encode(addr); err != nil {
		return err
	}
	for asked := json.NewDecoder(os.Stdin); ; {
		var j job
		if err := asked.Decode(&j); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := say.Encode(work(j)); err != nil {
			return err
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
