package proxy

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// Link is one listener and the upstream that it leads to. Its methods are safe
// for concurrent use.
type Link struct {
	config   LinkConfig
	proxy    *Proxy
	listener net.Listener
	upstream address
	tls      tlsLink
	settings atomic.Pointer[inject.Settings]
	pipes    Pipes // if the configuration has no others
	rare     rare
	past     trace.LinkCounters // of connections that ended; guarded by Proxy.mu

	said [numNotices]sync.Once
}

// Things that a link says once at warning level, however often they happen.
const (
	noticeEncrypted = iota
	noticeMalformed
	noticeDial
	noticeTLSClient
	noticeTLSUpstream
	noticeBinding
	numNotices
)

func (p *Proxy) newLink(c LinkConfig) (*Link, error) {
	if c.Name == "" {
		c.Name = c.Listen
	}
	if p.Link(c.Name) != nil {
		return nil, fmt.Errorf("link %s: the name is taken: give each link its own", c.Name)
	}
	if _, err := NewSession(c.Protocol, wire.Options{}); err != nil {
		return nil, fmt.Errorf("link %s: %w", c.Name, err)
	}
	if err := c.Delay.Check(); err != nil {
		return nil, fmt.Errorf("link %s: %w", c.Name, err)
	}
	l := &Link{config: c, proxy: p}
	l.settings.Store(&c.Delay)
	var err error
	if l.upstream, err = parseAddress(c.Upstream); err != nil {
		return nil, fmt.Errorf("link %s: upstream: %w", c.Name, err)
	}
	if l.tls, err = newTLSLink(c.TLS, l.upstream); err != nil {
		return nil, fmt.Errorf("link %s: %w", c.Name, err)
	}
	listen, err := parseAddress(c.Listen)
	if err != nil {
		return nil, fmt.Errorf("link %s: listen: %w", c.Name, err)
	}
	if l.listener, err = listen.listen(); err != nil {
		return nil, fmt.Errorf("link %s: %w", c.Name, err)
	}
	return l, nil
}

// Name is the link's name.
func (l *Link) Name() string { return l.config.Name }

// Addr is where the link listens.
func (l *Link) Addr() net.Addr { return l.listener.Addr() }

// Upstream is where the link leads to, as configured.
func (l *Link) Upstream() string { return l.config.Upstream }

// Delay is what the link adds at present.
func (l *Link) Delay() inject.Settings { return *l.settings.Load() }

// SetDelay changes what the link adds, from the next read on, on connections
// that exist as well. Bytes that already wait keep their due times, and none
// overtakes another.
func (l *Link) SetDelay(s inject.Settings) { l.settings.Store(&s) }

// accept serves the listener until it is closed.
func (l *Link) accept() {
	defer l.proxy.running.Done()
	var pause time.Duration
	var lastSaid time.Time
	for {
		nc, err := l.listener.Accept()
		if err == nil {
			pause = 0
			l.proxy.running.Add(1)
			go l.serve(nc)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		// Out of descriptors, or the peer is gone already: neither ends a
		// listener. Descriptors come back as connections end.
		l.rare.acceptFails.Add(1)
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		if time.Since(lastSaid) > 10*time.Second {
			lastSaid = time.Now()
			hint := ""
			if outOfFiles(err) {
				hint = "raise the limit of open files (ulimit -n): each connection takes two"
			}
			l.proxy.log.Warn("cannot accept", "link", l.Name(), "error", err, "hint", hint)
		}
		select {
		case <-time.After(pause):
		case <-l.proxy.stopping:
		}
	}
}

// address is "host:port" or "unix:/path".
type address struct {
	network, value string
	host           string // as configured; the path of a unix socket
	port           int
}

func parseAddress(s string) (address, error) {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		if path == "" {
			return address{}, fmt.Errorf("%q has no path: write unix:/run/db.sock", s)
		}
		return address{network: "unix", value: path, host: path}, nil
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return address{}, fmt.Errorf("%q is not an address: write host:port, [::1]:port or unix:/path", s)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return address{}, fmt.Errorf("%q: the port is a number from 0 to 65535", s)
	}
	return address{network: "tcp", value: s, host: host, port: int(n)}, nil
}

func (a address) listen() (net.Listener, error) {
	ln, err := net.Listen(a.network, a.value)
	if a.network == "unix" && errors.Is(err, syscall.EADDRINUSE) && a.stale() {
		if err := os.Remove(a.value); err != nil {
			return nil, fmt.Errorf("remove the socket that nobody listens on: %w", err)
		}
		return net.Listen(a.network, a.value)
	}
	return ln, err
}

// stale reports whether a unix socket's file was left behind by a process that
// is gone.
func (a address) stale() bool {
	if fi, err := os.Lstat(a.value); err != nil || fi.Mode()&os.ModeSocket == 0 {
		return false
	}
	c, err := net.Dial("unix", a.value)
	if err == nil {
		c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
