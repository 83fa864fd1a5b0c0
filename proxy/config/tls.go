package config

import (
	"slices"
	"strings"

	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/wire"
)

// tls reads where encryption begins and ends on a link. What proxy.TLSConfig
// refuses is refused here with its place; what only the certificates' files can
// tell comes when the proxy starts.
func (r *reader) tls(n *node, d *draft) {
	o, ok := r.object(n, tlsKeys)
	if !ok {
		return
	}
	c := &d.TLS
	if v := o.get("client"); v != nil {
		c.Client = r.clientTLS(v)
	}
	if v := o.get("server"); v != nil {
		c.Server = r.choice(v, "server", serverTLSWords)
	}
	if v := o.get("server_name"); v != nil {
		c.ServerName, _ = r.text(v, "server_name")
	}
	if v := o.get("direct"); v != nil {
		c.Direct = r.boolean(v, "direct")
	}
	for key, to := range map[string]*string{
		"cert": &c.Cert, "key": &c.Key, "client_ca": &c.ClientCA, "ca": &c.CA,
		"upstream_cert": &c.UpstreamCert, "upstream_key": &c.UpstreamKey,
	} {
		if v := o.get(key); v != nil {
			*to = r.fileName(v, key)
		}
	}
	t := &tlsCheck{reader: r, object: &o, config: c, protocol: d.Protocol}
	t.client()
	t.server(strings.HasPrefix(d.Upstream, "unix:"))
}

func (r *reader) clientTLS(n *node) string {
	if v, ok := r.text(n, "client"); ok && v == "auto" {
		r.problem(n, "client is \"auto\": a throw-away certificate is for wirewait run --tls auto; write client: terminate with cert and key")
		return ""
	}
	return r.choice(n, "client", clientTLSWords)
}

// tlsCheck finds what contradicts itself.
type tlsCheck struct {
	*reader
	object   *object
	config   *proxy.TLSConfig
	protocol wire.Protocol
}

// first is the first of keys that is given, or the whole object.
func (t *tlsCheck) at(keys ...string) *node {
	for _, k := range keys {
		if n := t.object.get(k); n != nil {
			return n
		}
	}
	return t.object.node
}

func (t *tlsCheck) has(keys ...string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { return t.object.get(k) != nil })
}

// another protocol than PostgreSQL's, which alone can be asked about TLS.
func (t *tlsCheck) another() bool { return t.protocol != "" && t.protocol != wire.Postgres }

func (t *tlsCheck) encrypted() bool {
	return t.config.Server != "" && t.config.Server != "off"
}

func (t *tlsCheck) client() {
	if t.object.get("client") != nil && t.config.Client == "" {
		return // that is the problem
	}
	terminate := t.config.Client == "terminate"
	switch {
	case terminate && !(t.has("cert") && t.has("key")):
		t.problem(t.at("client"), "client: terminate needs a certificate and its key: write both cert and key")
	case !terminate && t.has("cert", "key"):
		t.problem(t.at("cert", "key"), "cert and key are for client: terminate: add that, or leave them out")
	case t.config.Client == "decline" && !t.encrypted() && t.another():
		t.problem(t.at("client"), "client: decline answers PostgreSQL's requests for TLS: without server it has no meaning for %s", t.protocol)
	case t.encrypted() && (t.config.Client == "" || t.config.Client == "pass"):
		t.problem(t.at("server"), "server: %s with client: pass would encrypt twice: write client: decline, or client: terminate with cert and key", t.config.Server)
	}
	if !terminate && t.has("client_ca") {
		t.problem(t.at("client_ca"), "client_ca is for client: terminate: add that with cert and key, or leave it out")
	}
}

func (t *tlsCheck) server(unix bool) {
	mode := t.config.Server
	if t.has("server") && mode == "" {
		return // that is the problem
	}
	switch {
	case mode == "prefer" && t.another():
		t.problem(t.at("server"), "server: prefer asks whether the server has TLS, as only PostgreSQL can answer: use off, require, verify-ca or verify-full")
	case mode == "verify-full" && unix && !t.has("server_name"):
		t.problem(t.at("server"), "server: verify-full needs a name to look for, and a unix socket has none: add server_name")
	}
	if t.has("ca") && !strings.HasPrefix(mode, "verify-") {
		t.problem(t.at("ca"), "ca is for server: verify-ca and verify-full: write one of them, or leave it out")
	}
	if t.has("server_name") && !t.encrypted() {
		t.problem(t.at("server_name"), "server_name is for TLS to the server: add server: verify-full, or leave it out")
	}
	switch one := t.has("upstream_cert", "upstream_key"); {
	case one && !(t.has("upstream_cert") && t.has("upstream_key")):
		t.problem(t.at("upstream_cert", "upstream_key"), "a client certificate needs its key: write both upstream_cert and upstream_key")
	case one && !t.encrypted():
		t.problem(t.at("upstream_cert"), "upstream_cert and upstream_key are for TLS to the server: add server: require or verify-full, or leave them out")
	}
	switch {
	case !t.config.Direct:
	case t.another():
		t.problem(t.at("direct"), "direct is for PostgreSQL: %s begins with TLS anyway", t.protocol)
	case !t.encrypted() || mode == "prefer":
		t.problem(t.at("direct"), "direct needs server: require, verify-ca or verify-full")
	}
}
