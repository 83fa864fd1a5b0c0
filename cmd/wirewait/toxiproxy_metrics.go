package main

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/wirewait/wirewait/wire"
)

// collectors are what /metrics has beyond wirewait's own, where Toxiproxy's flags
// ask for it.
func (s *service) collectors() (list []prometheus.Collector) {
	t := s.options.toxiproxy
	if t == nil {
		return nil
	}
	if t.proxyMetrics {
		list = append(list, newProxyBytes(s))
	}
	if t.runtimeMetrics { // the others of Toxiproxy's are there anyway
		list = append(list, collectors.NewBuildInfoCollector())
	}
	return list
}

// proxyBytes are Toxiproxy's two counters, with their names and labels. They count
// what passes while it does.
type proxyBytes struct {
	service        *service
	received, sent *prometheus.Desc
}

func newProxyBytes(s *service) *proxyBytes {
	labels := []string{"direction", "proxy", "listener", "upstream"}
	return &proxyBytes{
		service:  s,
		received: prometheus.NewDesc("toxiproxy_proxy_received_bytes_total", "bytes read, by the stream that they are of", labels, nil),
		sent:     prometheus.NewDesc("toxiproxy_proxy_sent_bytes_total", "bytes passed on, by the stream that they are of", labels, nil),
	}
}

// Describe is prometheus.Collector's.
func (m *proxyBytes) Describe(c chan<- *prometheus.Desc) {
	c <- m.received
	c <- m.sent
}

// Collect is prometheus.Collector's.
func (m *proxyBytes) Collect(c chan<- prometheus.Metric) {
	p := m.service.proxy.Load()
	if p == nil {
		return
	}
	read, passed := map[string][2]uint64{}, map[string][2]uint64{}
	for _, n := range p.Counters().Links { // one that's gone may have connections yet
		r, s := read[n.Link], passed[n.Link]
		for dir := range n.Ways {
			r[dir] += n.Ways[dir].Read
			s[dir] += n.Ways[dir].Bytes
		}
		read[n.Link], passed[n.Link] = r, s
	}
	for _, l := range p.Links() {
		for dir, stream := range [2]string{wire.ToServer: "upstream", wire.ToClient: "downstream"} {
			labels := []string{stream, l.Name(), l.Addr().String(), l.Upstream()}
			c <- prometheus.MustNewConstMetric(m.received, prometheus.CounterValue, float64(read[l.Name()][dir]), labels...)
			c <- prometheus.MustNewConstMetric(m.sent, prometheus.CounterValue, float64(passed[l.Name()][dir]), labels...)
		}
	}
}
