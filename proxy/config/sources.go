package config

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// known is an entry of sources: who dials from an address, or by a name.
type known struct {
	prefix netip.Prefix // not valid: a name
	name   string
	of     end
}

// sources reads who dials from where: addresses, networks, and names as client
// certificates and MongoDB's members have them, each with the site or the member
// that it's of.
func (r *reader) sources(n *node, t *topology) {
	o, _ := r.mapping(n, "sources")
	for _, k := range o.keys {
		of, ok := r.end(o.get(k.Value), "the source", t)
		if ok && of.members {
			r.problem(o.get(k.Value), "a source is one site or one member: write it as CLUSTER.MEMBER")
			ok = false
		}
		e, good := r.source(k)
		if e.of = of; good && ok {
			t.known = append(t.known, e)
		}
		if good && e.prefix.IsValid() && slices.Contains(t.prefixes, e.prefix) {
			r.problem(k, "%s is given twice: leave one out", e.prefix)
		}
		t.prefixes = append(t.prefixes, e.prefix)
	}
}

var hostShape = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?$`)

// source reads who is dialling: an address, a network, or a name, which may have
// a port.
func (r *reader) source(k *node) (e known, ok bool) {
	v := k.Value
	if a, err := netip.ParseAddr(v); err == nil {
		a = a.Unmap().WithZone("")
		e.prefix = netip.PrefixFrom(a, a.BitLen())
		return e, true
	}
	if p, err := netip.ParsePrefix(v); err == nil {
		if e.prefix = p.Masked(); p != e.prefix {
			r.problem(k, "%s has bits beyond its first %d: write %s", quote(k), p.Bits(), e.prefix)
			return e, false
		}
		return e, true
	}
	if a, err := netip.ParseAddrPort(v); err == nil {
		r.problem(k, "%s has a port, and a client's changes: write %s", quote(k), a.Addr())
		return e, false
	}
	host, _, port := strings.Cut(v, ":")
	digits := strings.Trim(host, "0123456789.") == "" // 10.0.1 and 10.0.1.300 are no names
	if !hostShape.MatchString(host) || digits || port && addressComplaint(v) != "" {
		r.problem(k, "%s is no source: write an address (10.0.1.12), a network (10.0.1.0/24), or a name (mongo-b.internal, mongo-b:27017)", quote(k))
		return e, false
	}
	e.name = v
	return e, true
}

// tells is what the file says that a source dials from, and by which names.
func (t *topology) tells(source string) (addresses []netip.Prefix, names []string) {
	for _, k := range t.known {
		switch {
		case k.of.name != source:
		case k.prefix.IsValid():
			addresses = append(addresses, k.prefix)
		default:
			names = append(names, k.name)
		}
	}
	return addresses, names
}
