// Package config reads the file that describes a WAN: places, the network
// between them, the members of clusters, and the links to open.
//
//	network:   [app, sgp] 2 ms    [app, fra] 162 ms        a delay for each pair of sites
//	               |                   |
//	clusters:  rs0.a in sgp        rs0.b in fra            a site and an upstream for each member
//	               |                   |
//	links:     app -> rs0.a        app -> rs0.b            a listener each
//	               v                   v
//	           proxy.LinkConfig    proxy.LinkConfig        what a proxy is started with
//
// The reader is strict. A key that is unknown, or that nothing carries out yet,
// is a problem, never ignored: a delay that is silently not added is the worst
// that a simulated network can do. For the same reason a pair of sites that a
// link uses must have a delay, even if it is 0. All problems of a file are
// reported at once, each with its place and what to write instead.
//
// What the keys are stands in keys.go; docs/configuration.md explains them.
// The package does no I/O but reading the file. Certificates that a link names
// are loaded by proxy.Start.
package config

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/trace"
)

// File is a file without problems.
type File struct {
	// Links are what to start a proxy with, in the order of the file; those of a
	// mesh stand where it stands.
	Links []Link
	// Seed of the jitter's draws; nil: the file doesn't say.
	Seed *uint64
	// Rules in the order of the file.
	Rules []inject.Rule
	// Admin is where the admin server listens, or "off"; empty: the file doesn't
	// say.
	Admin string
	// Standbys are PostgreSQL's synchronous_standby_names by the member, as links
	// call it ("pg.p"), whose writes wait for them while it is the primary.
	Standbys map[string]*trace.StandbyNames
	// Sets are the configurations of MongoDB's replica sets by the member, as links
	// call it ("rs0.a").
	Sets map[string]*trace.ReplicaSet
	// Clusters are what the links lead to, in the order of the file.
	Clusters []Cluster
}

// Link is one link with what tables say of it.
type Link struct {
	proxy.LinkConfig
	// Dialer is what kind of thing connects to it.
	Dialer Dialer
	// Line of the file, from 1.
	Line int
}

// Dialer is what stands at the client's end of a link.
type Dialer int

// An application is in a site, or anything of which the file says nothing. A
// member of a cluster has a listener of its own, or members share one, with
// others possibly.
const (
	FromApplication Dialer = iota
	FromMember
	FromMembers
)

// Dialled is what clients dial, or empty if the file can't know: the listener
// takes every address of its machine, or a free port.
func (l *Link) Dialled() string {
	host, port, err := net.SplitHostPort(l.Listen)
	switch {
	case l.Advertise != "":
		return l.Advertise
	case err == nil && (wildcard(host) || port == "0"):
		return ""
	}
	return l.Listen
}

// ProxyLinks are the links as proxy.Config wants them.
func (f *File) ProxyLinks() []proxy.LinkConfig {
	links := make([]proxy.LinkConfig, len(f.Links))
	for i, l := range f.Links {
		links[i] = l.LinkConfig
	}
	return links
}

// maxFile bounds what is read: the file of a thousand links is a tenth of it.
const maxFile = 1 << 20

// Load reads a file. lookup gives the values of ${VARIABLES}: os.LookupEnv.
// File names in it are relative to the file's directory. The error is Problems
// unless the file can't be read.
func Load(path string, lookup func(string) (string, bool)) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("configuration %s is larger than 1 MiB: is it the right file?", path)
	}
	return parse(path, text, filepath.Dir(path), lookup)
}

// Parse is Load of a text that is there already; name stands before every
// problem, and file names are left as they are written.
func Parse(name string, text []byte, lookup func(string) (string, bool)) (*File, error) {
	return parse(name, text, "", lookup)
}

func parse(name string, text []byte, dir string, lookup func(string) (string, bool)) (*File, error) {
	r := &reader{name: name, dir: dir, lookup: lookup}
	f := &File{}
	if root := r.document(text); root != nil {
		r.file(root, f)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return f, nil
}

// file reads the parts in the order in which they need each other, which isn't
// the order in which they stand.
func (r *reader) file(root *node, f *File) {
	o, ok := r.object(root, fileKeys)
	if !ok {
		return
	}
	if n := o.get("seed"); n != nil {
		f.Seed = r.number(n)
	}
	admin := o.get("admin")
	if admin != nil {
		f.Admin = r.admin(admin)
	}
	t := &topology{
		pairs: map[[2]string]path{}, pipes: map[[2]string]*proxy.Pipes{},
	}
	if n := o.get("network"); n != nil {
		r.network(n, t)
	}
	if n := o.get("clusters"); n != nil {
		r.clusters(n, t)
		f.Standbys, f.Sets = t.standbyRules(), t.replicaSets()
	}
	for _, c := range t.clusters {
		f.Clusters = append(f.Clusters, c.export())
	}
	if n := o.get("sources"); n != nil {
		r.sources(n, t)
	}
	links := o.get("links")
	if links == nil && o.lacks("links") {
		r.problem(root, "there are no links, so nothing would listen: add links:")
	}
	if links == nil {
		return
	}
	drafts := r.links(links, t)
	r.checkDrafts(drafts, f.Admin, admin)
	nameMembers(drafts)
	joinSets(drafts)
	if n := o.get("rules"); n != nil {
		var at []*node
		f.Rules, at = r.rules(n)
		r.checkRules(f.Rules, at, drafts)
	}
	for _, d := range drafts {
		d.WALTimeouts = t.timeoutsOf(d.To)
		f.Links = append(f.Links, d.Link)
	}
}
