package config

import (
	"testing"
	"time"

	"github.com/wirewait/wirewait/proxy"
)

func TestParse_TimeoutsOfALinksCluster(t *testing.T) {
	const text = `
clusters:
  pg: {protocol: postgres, wal_sender_timeout: 4s, wal_receiver_timeout: 0, members: {p: {site: x, upstream: "p:1"}}}
  other: {protocol: postgres, members: {p: {site: x, upstream: "o:1"}}}
network: [{between: [x, y], rtt: 0}]
links:
  - {from: y, to: pg.p, listen: "127.0.0.1:1"}
  - {from: y, to: other.p, listen: "127.0.0.1:2"}
`
	f, err := Parse("wirewait.yaml", []byte(text), variables)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := f.Links[0].WALTimeouts, f.Links[1].WALTimeouts; a != (proxy.WALTimeouts{Sender: 4 * time.Second, Receiver: proxy.Never}) || b != (proxy.WALTimeouts{}) {
		t.Errorf("%+v and %+v", a, b)
	}
}
