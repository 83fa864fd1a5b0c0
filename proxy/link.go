package proxy

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/trace"
)

// Link is one listener and the upstream that it leads to. It stays the same
// through reloads, as long as there is one of its name. Its methods are safe for
// concurrent use.
type Link struct {
	name     string
	proxy    *Proxy
	route    atomic.Pointer[route]
	listener atomic.Pointer[listener]
	rules    atomic.Pointer[inject.Rules]
	rare     rare
	past     trace.LinkCounters // of connections that ended; guarded by Proxy.mu
	retired  bool               // by a reload; the same
	added    bool               // by AddLink
	starting sync.Mutex         // held in Start, before Proxy.reloading

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
	noticeSource
	noticeLoop
	noticeBypass
	noticeLog
	numNotices
)

// Name is the link's name.
func (l *Link) Name() string { return l.name }

// Addr is where the link listens.
func (l *Link) Addr() net.Addr { return l.listener.Load().Addr() }

// Config is what the link was started with, or what the last reload made of it.
// SetDelay doesn't change it.
func (l *Link) Config() LinkConfig { return l.route.Load().config }

// Upstream is where the link leads to, as configured.
func (l *Link) Upstream() string { return l.Config().Upstream }

// Delay is what the link adds at present: where several dial it, to connections
// that nothing tells.
func (l *Link) Delay() inject.Settings { return *l.route.Load().base.settings.Load() }

// SetDelay changes what the link adds, whoever dials, from the next read on, on
// connections that exist as well. Bytes that already wait keep their due times,
// and none overtakes another. A reload sets what its configuration says.
func (l *Link) SetDelay(s inject.Settings) {
	r := l.route.Load()
	r.base.settings.Store(&s)
	for _, one := range r.sources.all {
		one.settings.Store(&s)
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
	n, err := net.LookupPort("tcp", port) // a service's name is one too
	if err != nil || port == "" {
		return address{}, fmt.Errorf("%q: the port is a number from 0 to 65535", s)
	}
	return address{network: "tcp", value: s, host: host, port: n}, nil
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
