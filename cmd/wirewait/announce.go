package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// announce prints what runs: a line per link, one for --tls auto, one for traces, one for the
// admin server. They go where the log goes, so that standard output is left
// to spans.
func (s *service) announce(w io.Writer) {
	for i, l := range s.proxy.Load().Links() {
		config := s.options.links[i]
		listen := l.Addr().String()
		if l.Addr().Network() == "unix" {
			listen = "unix:" + listen
		}
		head := "link"
		if config.Name != "" {
			head = "link " + config.Name
		}
		fmt.Fprintf(w, "%s: %s -> %s, %s, %s, seed %d\n",
			head, listen, l.Upstream(), describeProtocol(config.Protocol), describeDelay(l.Delay()), s.options.seed)
	}
	if s.throwAway != nil {
		fmt.Fprintf(w, "tls: clients trust %s (sslrootcert, tlsCAFile); it is removed at exit\n", s.throwAway.CAFile)
	}
	fmt.Fprintln(w, s.exporter.Describe())
	if s.admin == nil {
		fmt.Fprintln(w, "admin: off")
		return
	}
	fmt.Fprintf(w, "admin: http://%s/metrics and /healthz\n", s.admin.Addr())
}

func describeProtocol(p wire.Protocol) string {
	if p == "" {
		return "protocol detected"
	}
	return string(p)
}

// describeDelay is "rtt 80ms (40ms ± 5ms each way)".
func describeDelay(s inject.Settings) string {
	there, back := s.Delay[wire.ToServer], s.Delay[wire.ToClient]
	if s.RTT() == 0 {
		return "no delay"
	}
	ways := []string{describeOneWay(there) + " to server", describeOneWay(back) + " to client"}
	if there == back {
		ways = []string{describeOneWay(there) + " each way"}
	}
	words := fmt.Sprintf("rtt %s (%s)", short(s.RTT()), strings.Join(ways, ", "))
	if s.FreeConnect {
		words += ", connecting is free"
	}
	return words
}

func describeOneWay(d inject.Delay) string {
	if d.Jitter == 0 {
		return short(d.Base)
	}
	return short(d.Base) + " ± " + short(d.Jitter)
}

// short is Duration.String without units that are zero: 1m, not 1m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
