package proxy

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// A client of a replica set dials the names that hello replies have, and leaves
// the proxy unless those lead to it. So they are replaced by the addresses of
// the links that lead to the same members, among the links of one set that are
// dialled from one place:
//
//	hello reply of the set      links from app
//	hosts: mongo-a:27017  --->  127.0.0.1:27101  app-rs0.a --> mongo-a:27017
//	       mongo-b:27017  --->  127.0.0.1:27102  app-rs0.b --> 10.0.0.7:27017
//	                                                  me = mongo-b:27017, as it was asked
//
// A member goes by LinkConfig.Hosts, by the link's upstream, and by what it calls
// itself (me), for which each is asked when the proxy starts, and again when a
// name turns up that none has.
type members struct {
	proxy *Proxy
	// addresses are what clients are to dial, by place and lower-case name.
	addresses atomic.Pointer[map[memberKey]string]
	asked     chan struct{} // closed when all were asked once
	again     chan struct{} // room for one: ask again
	start     sync.Once

	mu    sync.Mutex
	names map[string]string // by upstream: what it calls itself
}

// memberKey is a name as it's known in one place, or on one link: of several
// that lead from one place to a member each stands for it itself.
type memberKey struct{ set, from, link, name string }

// askTime bounds the asking of one member, and how long the first connections
// wait for it.
const askTime = 3 * time.Second

func newMembers(p *Proxy) *members {
	m := &members{
		proxy: p, names: map[string]string{}, asked: make(chan struct{}), again: make(chan struct{}, 1),
	}
	m.addresses.Store(&map[memberKey]string{})
	return m
}

// reloaded takes in what the links are now, and has their members asked.
func (m *members) reloaded() {
	m.update()
	if len(*m.addresses.Load()) == 0 {
		return
	}
	started := true
	m.start.Do(func() {
		started = false
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			<-m.proxy.stopping
			cancel()
		}()
		m.proxy.running.Go(func() { m.learn(ctx) })
	})
	if started {
		m.askAgain()
	}
}

func (m *members) askAgain() {
	select {
	case m.again <- struct{}{}:
	default:
	}
}

// update takes in what the links are now. It's called with no lock held.
func (m *members) update() {
	addresses := map[memberKey]string{}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.proxy.Links() {
		c := l.Config()
		if c.Set == "" {
			continue
		}
		to := c.Advertise
		if to == "" {
			to = l.Addr().String()
		}
		for _, name := range append([]string{c.Upstream, m.names[c.Upstream]}, c.Hosts...) {
			if name == "" {
				continue
			}
			name = strings.ToLower(name)
			addresses[memberKey{set: c.Set, link: l.name, name: name}] = to
			if here := (memberKey{set: c.Set, from: c.From, name: name}); addresses[here] == "" {
				addresses[here] = to
			}
		}
	}
	m.addresses.Store(&addresses)
}

// learn asks every member for its name, until ctx ends: at once, when a name
// turns up that none is known by, and until all have answered.
func (m *members) learn(ctx context.Context) {
	pause := time.Second
	for first := true; ; first = false {
		all := m.askAll(ctx)
		m.update()
		if first {
			close(m.asked)
		}
		var later <-chan time.Time
		if !all {
			later = time.After(pause)
			pause = min(2*pause, 30*time.Second)
		}
		select {
		case <-ctx.Done():
			return
		case <-later:
		case <-m.again:
			select { // not more often than that, whatever names turn up
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
		}
	}
}

// askAll reports whether every member has answered.
func (m *members) askAll(ctx context.Context) bool {
	routes := map[string]*route{}
	for _, l := range m.proxy.Links() {
		if r := l.route.Load(); r.config.Set != "" {
			routes[r.config.Upstream] = r
		}
	}
	var failed atomic.Bool
	var all sync.WaitGroup
	for upstream, r := range routes {
		all.Go(func() {
			name, err := m.ask(ctx, r)
			if err != nil {
				failed.Store(true)
				m.proxy.log.Debug("cannot ask a member what it is called", "upstream", upstream, "error", err)
				return
			}
			m.mu.Lock()
			m.names[upstream] = name
			m.mu.Unlock()
		})
	}
	all.Wait()
	return !failed.Load()
}

// ask is what a member calls itself.
func (m *members) ask(ctx context.Context, r *route) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	nc, err := m.proxy.dial(ctx, r.upstream.network, r.upstream.value)
	if err != nil {
		return "", err
	}
	defer func() { nc.Close() }()
	defer context.AfterFunc(ctx, func() { nc.Close() })()
	if r.config.ProxyProtocol.Send {
		if _, err := nc.Write(proxyHeader(nc.LocalAddr(), nc.RemoteAddr())); err != nil {
			return "", err
		}
	}
	if r.tls.upstream != nil {
		nc = tls.Client(nc, r.tls.upstream)
	}
	if _, err := nc.Write(helloRequest()); err != nil {
		return "", err
	}
	return readHello(nc)
}

func readHello(nc net.Conn) (string, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(nc, head); err != nil {
		return "", fmt.Errorf("hello: %w", err)
	}
	size, err := helloSize(head)
	if err != nil {
		return "", err
	}
	reply := append(head, make([]byte, size-len(head))...)
	if _, err := io.ReadFull(nc, reply[len(head):]); err != nil {
		return "", fmt.Errorf("hello: %w", err)
	}
	return helloName(reply)
}

// awaitMembers waits until it's known what the members of a link's set are called, but
// not for long: one that is down has no say.
func (c *conn) awaitMembers() {
	if c.route.config.Set == "" {
		return
	}
	select {
	case <-c.link.proxy.members.asked:
	case <-c.ctx.Done():
	}
}

// rename is what clients of the connection's link are to dial for a member.
func (c *conn) rename(name string) string {
	m := c.link.proxy.members
	set, low := &c.route.config, strings.ToLower(name)
	addresses := *m.addresses.Load()
	for _, k := range []memberKey{{set: set.Set, link: c.link.name, name: low}, {set: set.Set, from: set.From, name: low}} {
		if to, ok := addresses[k]; ok {
			return to
		}
	}
	m.askAgain()
	c.link.say(noticeBypass, "no link leads to a member of the replica set: drivers will dial it past this proxy",
		"set", set.Set, "member", name, "hint", "add a link to it, or give its member host: and this name")
	return name
}

// inSet says, of a link that leads to one server, that clients may not stay.
func (c *conn) inSet(name string) {
	c.link.say(noticeBypass, "drivers will bypass this proxy: use directConnection=true or --upstream mongodb://...?replicaSet="+name, "set", name)
}

// setOptions has hello replies looked at.
func (c *conn) setOptions(o *wire.Options) {
	switch set := &c.route.config; {
	case set.Set != "":
		o.Rename = c.rename
	case !strings.Contains(set.To, "."): // else it's a member's own link, or the file says what it is
		o.ReplicaSet = c.inSet
	}
}
