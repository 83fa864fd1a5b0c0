//go:build unix

package proxy

import (
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// who is whose connections a proxy has, and how that is known.
func (p *Proxy) who() (who []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.mu.Lock()
		info := c.info
		c.mu.Unlock()
		if info == nil {
			info = &trace.Conn{}
		}
		who = append(who, info.From+" "+info.FromBasis+" "+hostOf(info.ClientAddr))
	}
	return who
}

// wantWho waits until the proxy's one connection is whose it should be.
func wantWho(t *testing.T, p *Proxy, want string) {
	t.Helper()
	var got []string
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if got = p.who(); len(got) == 1 && got[0] == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%q, want %q", got, want)
		}
	}
}

func prefixes(list ...string) (p []netip.Prefix) {
	for _, s := range list {
		p = append(p, netip.MustParsePrefix(s))
	}
	return p
}

func TestSources_TellApart(t *testing.T) {
	s := newSources([]Source{
		{Name: "app", Addresses: prefixes("10.0.0.0/8", "fd00::/8")},
		{Name: "b", Addresses: prefixes("10.0.1.12/32"), Names: []string{"mongo-b.internal:27017", "Proxy:27202"}},
		{Name: "c", Addresses: prefixes("10.0.1.0/24"), Names: []string{"mongo-c", "shared:1"}},
		{Name: "d", Names: []string{"shared:2", "mongo-b.internal:27018", "twice", "proxy:27203"}},
		{Name: "e", Names: []string{"twice"}},
	})
	name := func(s *source) string {
		if s == nil {
			return ""
		}
		return s.name
	}
	for address, want := range map[string]string{
		"10.0.1.12:5": "b", "10.0.1.13:5": "c", "10.9.9.9:5": "app", "192.168.0.1:5": "", "[fd00::1%eth0]:5": "app",
		"[::ffff:10.0.1.12]:5": "b",
	} {
		a := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))
		if got := name(s.at(a)); got != want {
			t.Errorf("%s is %q, want %q", address, got, want)
		}
	}
	if got := s.at(&net.UnixAddr{Name: "@"}); got != nil {
		t.Errorf("a unix socket is %q", got.name)
	}
	for member, want := range map[string]string{
		"mongo-b.internal:27017": "b", "MONGO-B.internal:27018": "d", "mongo-b.internal:27019": "", "proxy:27202": "b",
		"mongo-c:27017": "c", "mongo-c": "c", "twice:1": "", "nobody:1": "",
	} {
		if got := name(s.member(member)); got != want {
			t.Errorf("member %s is %q, want %q", member, got, want)
		}
	}
	for certificate, want := range map[string]string{
		"mongo-c": "c", "mongo-b.internal": "", "shared": "", "twice": "", "nobody": "", "": "",
	} {
		if got := name(s.certified(certificate)); got != want {
			t.Errorf("certificate of %s is %q, want %q", certificate, got, want)
		}
	}
	if got := name(s.certified("nobody", "mongo-c")); got != "c" {
		t.Errorf("by the second name: %q", got)
	}
}

// from dials a link from an address of loopback's.
func from(t *testing.T, l *Link, address string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	c, err := d.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Skipf("only Linux has all of 127.0.0.0/8: %v", err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestLink_DelaysByAddress: each source has its own delay on one listener, and
// who isn't known has the link's.
func TestLink_DelaysByAddress(t *testing.T) { eachDriver(t, delaysByAddress) }

func delaysByAddress(t *testing.T, on driverName) {
	var log logBuffer
	up := server(t, "tcp", "127.0.0.1:0", echo)
	p, l := on.start(t, LinkConfig{
		Protocol: wire.TCP, Upstream: up, From: "members", To: "a", Delay: rtt(90 * time.Millisecond),
		Sources: []Source{
			{Name: "b", Addresses: prefixes("127.0.0.2/32"), Delay: rtt(60 * time.Millisecond)},
			{Name: "c", Addresses: prefixes("127.0.0.3/32")},
		},
	}, func(c *Config) { c.Log = log.logger() })
	for _, tc := range []struct {
		address, who string
		least        time.Duration
	}{
		{"127.0.0.2", "b address 127.0.0.2", 60 * time.Millisecond},
		{"127.0.0.3", "c address 127.0.0.3", 0},
		{"127.0.0.4", "members unknown 127.0.0.4", 90 * time.Millisecond},
	} {
		c := from(t, l, tc.address)
		exchange(t, c, "x") // has the cost of connecting
		if d := exchange(t, c, "x"); d < tc.least {
			t.Errorf("%s: %v, want %v at least", tc.address, d, tc.least)
		}
		wantWho(t, p, tc.who)
		l.SetDelay(rtt(120 * time.Millisecond))
		if d := exchange(t, c, "x"); d < 120*time.Millisecond {
			t.Errorf("%s after SetDelay: %v", tc.address, d)
		}
		if err := p.Reload([]LinkConfig{l.Config()}); err != nil {
			t.Fatal(err)
		}
		c.Close()
		soon(t, "it ends", func() bool { return len(p.who()) == 0 })
	}
	if n := log.count("nothing tells whose connection this is"); n != 1 || log.count("client=127.0.0.4:") != 1 {
		t.Errorf("the log says it %d times:\n%s", n, log.b.String())
	}
}

// TestLink_TellsMembersByWhatTheySay: a replica set's member is known from its
// first message on, and has its delay from then on.
func TestLink_TellsMembersByWhatTheySay(t *testing.T) { eachDriver(t, tellsMembers) }

func tellsMembers(t *testing.T, on driverName) {
	up := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	p, l := on.start(t, LinkConfig{
		Upstream: up, From: "members", To: "a", Delay: rtt(time.Millisecond),
		Sources: []Source{
			{Name: "b", Names: []string{"mongo-b:27017"}, Delay: rtt(2 * time.Millisecond)},
			{Name: "c", Names: []string{"mongo-c:27017"}, Delay: rtt(3 * time.Millisecond)},
		},
	})
	hello := func(host string) bson.D { return bson.D{{Key: "hello", Value: 1}, {Key: "hostInfo", Value: host}} }
	beat := func(host string) bson.D {
		return bson.D{{Key: "replSetHeartbeat", Value: "rs0"}, {Key: "from", Value: host}}
	}
	for _, tc := range []struct {
		says []bson.D
		who  string
		rtt  time.Duration
	}{
		{[]bson.D{hello("mongo-b:27017")}, "b host_info 127.0.0.1", 2 * time.Millisecond},
		{[]bson.D{hello("mongo-c:27017"), beat("mongo-b:27017")}, "c host_info 127.0.0.1", 3 * time.Millisecond},
		{[]bson.D{hello("9f3c2a:27017"), beat("mongo-b:27017")}, "b heartbeat 127.0.0.1", 2 * time.Millisecond},
		{[]bson.D{hello("9f3c2a:27017")}, "members unknown 127.0.0.1", time.Millisecond},
	} {
		c := dialLink(t, l)
		for i, d := range tc.says {
			m := opMsg(int32(i+1), 0, 0, append(d, bson.E{Key: "$db", Value: "admin"}))
			if _, err := c.Write(m); err != nil {
				t.Fatal(err)
			}
		}
		wantWho(t, p, tc.who)
		if got := p.anyConn().settings().RTT(); got != tc.rtt {
			t.Errorf("%s: a round trip of %v, want %v", tc.who, got, tc.rtt)
		}
		c.Close()
		soon(t, "it ends", func() bool { return len(p.who()) == 0 })
	}
}

func (p *Proxy) anyConn() *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		return c
	}
	return nil
}

// TestLink_TellsByCertificate: only by one that the link's authority signed.
func TestLink_TellsByCertificate(t *testing.T) {
	ca := newTestCA(t)
	config := terminate(ca.issue(t, "localhost", soonToEnd()))
	config.ClientCA = ca.file
	p, l := start(t, LinkConfig{
		Upstream: server(t, "tcp", "127.0.0.1:0", echo), Protocol: wire.TCP, TLS: config, From: "members", To: "a",
		Sources: []Source{{Name: "b", Names: []string{"mongo-b.internal:27017"}}, {Name: "c", Names: []string{"mongo-c"}}},
	})
	for name, who := range map[string]string{
		"mongo-b.internal": "b certificate 127.0.0.1", "mongo-c": "c certificate 127.0.0.1", "else": "members unknown 127.0.0.1",
	} {
		i := ca.issue(t, name, soonToEnd())
		c := tls.Client(dialLink(t, l), &tls.Config{RootCAs: ca.pool, ServerName: "localhost", Certificates: []tls.Certificate{i.pair}})
		exchange(t, c, "x")
		wantWho(t, p, who)
		c.Close()
		soon(t, "it ends", func() bool { return len(p.who()) == 0 })
	}
}
