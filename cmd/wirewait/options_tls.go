package main

import (
	"net"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/wirewait/wirewait/proxy"
)

func tlsFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "tls", Usage: "the client's TLS: pass it unread, decline PostgreSQL's, terminate it, or auto: with a throw-away certificate", DefaultText: "pass"},
		&cli.StringFlag{Name: "tls-cert", Usage: "certificate `FILE` (PEM) for clients; means --tls terminate"},
		&cli.StringFlag{Name: "tls-key", Usage: "its private key `FILE` (PEM)"},
		&cli.StringFlag{Name: "tls-client-ca", Usage: "ask clients for a certificate of an authority in `FILE` (PEM), and refuse those without"},
		&cli.StringFlag{Name: "upstream-tls", Usage: "TLS to the server: off, prefer, require, verify-ca or verify-full", DefaultText: "off"},
		&cli.StringFlag{Name: "upstream-ca", Usage: "certificate authority `FILE` (PEM) for verify-ca and verify-full (default: the system's)"},
		&cli.StringFlag{Name: "upstream-server-name", Usage: "`NAME` in the server's certificate (default: the upstream's host)"},
		&cli.StringFlag{Name: "upstream-cert", Usage: "certificate `FILE` (PEM) to show to the server"},
		&cli.StringFlag{Name: "upstream-key", Usage: "its private key `FILE` (PEM)"},
		&cli.BoolFlag{Name: "upstream-tls-direct", Usage: "begin TLS to PostgreSQL 17 or later without asking first"},
	}
}

// tlsModes are the words of --upstream-tls.
var tlsModes = []string{"off", "prefer", "require", "verify-ca", "verify-full"}

func (r *reader) tls() proxy.TLSConfig {
	c := proxy.TLSConfig{
		Client: r.String("tls"), Cert: r.String("tls-cert"), Key: r.String("tls-key"), ClientCA: r.String("tls-client-ca"),
		Server: r.choice("upstream-tls", append([]string{""}, tlsModes...)...),
		CA:     r.String("upstream-ca"), ServerName: r.String("upstream-server-name"),
		UpstreamCert: r.String("upstream-cert"), UpstreamKey: r.String("upstream-key"),
		Direct: r.Bool("upstream-tls-direct"),
	}
	files := c.Cert != "" || c.Key != ""
	switch {
	case c.Client == "" && files:
		c.Client = "terminate"
	case c.Client != "terminate" && files:
		r.problem("--tls-cert and --tls-key are for --tls terminate: leave them out, or --tls %s", c.Client)
	}
	switch c.Client {
	case "", "pass", "decline", "terminate":
	case "auto":
		r.throwAway, c.Client = true, "terminate"
	default:
		r.problem("--tls %q: use pass, decline, terminate or auto", c.Client)
	}
	r.checkClientTLS(&c)
	r.checkUpstreamTLS(&c)
	return c
}

func (r *reader) checkClientTLS(c *proxy.TLSConfig) {
	protocol := r.String("protocol")
	switch {
	case c.Client == "terminate" && !r.throwAway && (c.Cert == "" || c.Key == ""):
		r.problem("--tls terminate needs a certificate and its key: give both --tls-cert and --tls-key, or use --tls auto")
	case c.Client == "decline" && !encrypted(c) && protocol != "" && protocol != "postgres":
		r.problem("--tls decline answers PostgreSQL's requests for TLS: without --upstream-tls it has no meaning for %s", protocol)
	case encrypted(c) && (c.Client == "" || c.Client == "pass"):
		r.problem("--upstream-tls %s with --tls pass would encrypt twice: add --tls decline, --tls auto, or --tls-cert and --tls-key", c.Server)
	}
	if c.ClientCA != "" && c.Client != "terminate" {
		r.problem("--tls-client-ca is for clients whose TLS ends here: add --tls-cert and --tls-key, or --tls auto")
	}
}

func (r *reader) checkUpstreamTLS(c *proxy.TLSConfig) {
	protocol := r.String("protocol")
	if c.Server == "prefer" && protocol != "" && protocol != "postgres" {
		r.problem("--upstream-tls prefer asks whether the server has TLS, as only PostgreSQL can answer: use off, require, verify-ca or verify-full")
	}
	if c.CA != "" && !strings.HasPrefix(c.Server, "verify-") {
		r.problem("--upstream-ca is for --upstream-tls verify-ca and verify-full: add one of them, or leave it out")
	}
	if c.ServerName != "" && !encrypted(c) {
		r.problem("--upstream-server-name is for --upstream-tls: add that, or leave it out")
	}
	switch one := c.UpstreamCert != "" || c.UpstreamKey != ""; {
	case one && (c.UpstreamCert == "" || c.UpstreamKey == ""):
		r.problem("a client certificate needs its key: give both --upstream-cert and --upstream-key")
	case one && !encrypted(c):
		r.problem("--upstream-cert and --upstream-key are for --upstream-tls: add that, or leave them out")
	}
	switch {
	case !c.Direct:
	case protocol != "" && protocol != "postgres":
		r.problem("--upstream-tls-direct is for PostgreSQL: %s begins with TLS anyway", protocol)
	case !encrypted(c) || c.Server == "prefer":
		r.problem("--upstream-tls-direct needs --upstream-tls require, verify-ca or verify-full")
	}
}

func encrypted(c *proxy.TLSConfig) bool { return c.Server != "" && c.Server != "off" }

// makeThrowAway gives the link a certificate that exists for this run only.
func (s *service) makeThrowAway() (err error) {
	link := &s.options.links[0]
	host := "localhost"
	if h, _, err := net.SplitHostPort(link.Listen); err == nil {
		host = h
	}
	if s.throwAway, err = proxy.NewThrowAway(host); err != nil {
		return err
	}
	link.TLS.Pair = &s.throwAway.Pair
	return nil
}
