package main

import (
	"strings"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/proxy/admin"
	"github.com/wirewait/wirewait/wire"
)

// control is what /v1 shows and changes.
func (s *service) control(version string) *admin.Control {
	return &admin.Control{
		Proxy: s.proxy.Load, Waits: s.summary, Slow: s.slow, Observed: s.tracer.Activities(), Version: version, Healthy: s.healthy,
		Settings: func() any { return s.settings() },
	}
}

// settings are how wirewait runs, for GET /v1/config: nothing in them is secret.
// They are written out one by one, so that whatever is added to the options is
// not shown before somebody thought of it.
type settings struct {
	File          string         `json:"file,omitempty"`
	Admin         string         `json:"admin"`
	Token         bool           `json:"admin_token"` // whether there is one
	Seed          uint64         `json:"seed"`
	Drain         string         `json:"drain"`
	LogLevel      string         `json:"log_level"`
	Children      string         `json:"children"`
	StatementText bool           `json:"statement_text"`
	Links         []linkSettings `json:"links"`
	Rules         []inject.Rule  `json:"rules"`
}

type linkSettings struct {
	Name     string           `json:"name"`
	From     string           `json:"from,omitempty"`
	To       string           `json:"to,omitempty"`
	Listen   string           `json:"listen"`
	Upstream string           `json:"upstream"`
	Protocol string           `json:"protocol,omitempty"`
	TLS      tlsSettings      `json:"tls"`
	Delay    admin.Delay      `json:"delay"`
	Sources  []sourceSettings `json:"sources,omitempty"`
}

// sourceSettings are of one of several who dial a link.
type sourceSettings struct {
	Name  string      `json:"name"`
	Delay admin.Delay `json:"delay"`
}

// tlsSettings name files and hold none.
type tlsSettings struct {
	Client       string `json:"client,omitempty"`
	Cert         string `json:"cert,omitempty"`
	Key          string `json:"key,omitempty"`
	ClientCA     string `json:"client_ca,omitempty"`
	Server       string `json:"server,omitempty"`
	CA           string `json:"ca,omitempty"`
	ServerName   string `json:"server_name,omitempty"`
	UpstreamCert string `json:"upstream_cert,omitempty"`
	UpstreamKey  string `json:"upstream_key,omitempty"`
	Direct       bool   `json:"direct,omitempty"`
}

func (s *service) settings() settings {
	o := &s.options
	set := settings{
		Admin: o.admin, Token: o.token != "", Seed: o.seed, Drain: o.drain.String(), LogLevel: strings.ToLower(o.level.String()),
		Children: string(o.children), StatementText: o.text != wire.TextNone, Links: []linkSettings{}, Rules: []inject.Rule{},
	}
	if o.file != nil {
		set.File = o.file.path
	}
	if p := s.proxy.Load(); p != nil {
		for _, l := range p.Links() {
			set.Links = append(set.Links, describeLink(l.Config()))
		}
		for _, r := range p.Rules() {
			set.Rules = append(set.Rules, r.Rule)
		}
	}
	return set
}

func describeLink(c proxy.LinkConfig) linkSettings {
	l := linkSettings{
		Name: c.Name, From: c.From, To: c.To, Listen: c.Listen, Upstream: redactURI(c.Upstream), Protocol: string(c.Protocol),
		TLS: tlsSettings{
			Client: c.TLS.Client, Cert: c.TLS.Cert, Key: c.TLS.Key, ClientCA: c.TLS.ClientCA, Server: c.TLS.Server, CA: c.TLS.CA,
			ServerName: c.TLS.ServerName, UpstreamCert: c.TLS.UpstreamCert, UpstreamKey: c.TLS.UpstreamKey, Direct: c.TLS.Direct,
		},
		Delay: admin.DescribeDelay(c.Delay),
	}
	for _, s := range c.Sources {
		l.Sources = append(l.Sources, sourceSettings{s.Name, admin.DescribeDelay(s.Delay)})
	}
	return l
}
