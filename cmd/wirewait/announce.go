package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/wire"
)

// announce prints what runs: a line per link, one for --tls auto, one for traces, two for the
// admin server. They go where the log goes, so that standard output is left
// to spans.
func (s *service) announce(w io.Writer) {
	for _, l := range s.proxy.Load().Links() {
		config := l.Config()
		listen := l.Addr().String()
		if l.Addr().Network() == "unix" {
			listen = "unix:" + listen
		}
		head := "link"
		if config.Name != config.Listen {
			head = "link " + config.Name
		}
		fmt.Fprintf(w, "%s: %s -> %s, %s, %s, seed %d\n",
			head, listen, l.Upstream(), describeProtocol(config.Protocol), describeRoute(config), s.options.seed)
	}
	if set := s.options.set; set != nil {
		fmt.Fprintf(w, "connect to: %s\n", set.uri(s.proxy.Load().Links()))
	}
	if s.throwAway != nil {
		fmt.Fprintf(w, "tls: clients trust %s (sslrootcert, tlsCAFile); it is removed at exit\n", s.throwAway.CAFile)
	}
	fmt.Fprintln(w, s.exporter.Describe())
	if s.admin == nil {
		fmt.Fprintln(w, "admin: off")
		return
	}
	fmt.Fprintf(w, "page: http://%s/\n", s.admin.Addr())
	fmt.Fprintf(w, "admin: http://%s/metrics and /healthz\n", s.admin.Addr())
}

func describeProtocol(p wire.Protocol) string {
	if p == "" {
		return "protocol detected"
	}
	return string(p)
}

// describeRoute is the delay of a link, and who has it if that's not everybody.
func describeRoute(c proxy.LinkConfig) (words string) {
	words = describeDelay(c.Delay)
	if len(c.Sources) > 0 {
		words += ", unless the source is known"
	}
	if len(c.ProxyProtocol.Accept) > 0 {
		words += ", PROXY headers accepted"
	}
	if c.ProxyProtocol.Send {
		words += ", PROXY headers sent"
	}
	return words
}

// describeDelay is "rtt 80ms (40ms ± 5ms each way)".
func describeDelay(s inject.Settings) string {
	there, back := s.Delay[wire.ToServer], s.Delay[wire.ToClient]
	model := describeModel(there, back)
	if s.RTT() == 0 {
		return "no delay" + model
	}
	ways := []string{describeOneWay(there) + " to server", describeOneWay(back) + " to client"}
	if there.Base == back.Base && there.Jitter == back.Jitter {
		ways = []string{describeOneWay(there) + " each way"}
	}
	words := fmt.Sprintf("rtt %s (%s)%s", short(s.RTT()), strings.Join(ways, ", "), model)
	if s.FreeConnect {
		words += ", connecting is free"
	}
	return words
}

// describeModel is ", normal jitter, loss 0.1%", or empty. A file's pair has the
// same model both ways, but for a way without delay, which has no jitter.
func describeModel(there, back inject.Delay) (words string) {
	d := there
	if d.Jitter == 0 {
		d = back
	}
	if d.Distribution != inject.Uniform {
		words += fmt.Sprintf(", %v jitter", d.Distribution)
	}
	if d.Correlation > 0 {
		words += fmt.Sprintf(", %.4g%% correlated", 100*d.Correlation)
	}
	if rate := d.Loss.Rate(); rate > 0 {
		words += fmt.Sprintf(", loss %.3g%%", 100*rate)
		if d.Loss.P > 0 {
			words += " in bursts"
		}
	}
	if d.Bandwidth > 0 {
		words += ", " + inUnits(d.Bandwidth, 1000, "bit/s", "kbit/s", "Mbit/s", "Gbit/s")
		if d.PerConnection {
			words += " per connection"
		}
	}
	if d.Window > 0 {
		words += ", window " + inUnits(d.Window, 1024, "B", "KiB", "MiB", "GiB")
	}
	return words
}

// inUnits is n in the largest of units that it has one of.
func inUnits(n int64, step float64, units ...string) string {
	v, i := float64(n), 0
	for ; v >= step && i < len(units)-1; i++ {
		v /= step
	}
	return fmt.Sprintf("%.4g%s", v, units[i])
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
