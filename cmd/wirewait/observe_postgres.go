package main

import (
	"context"
	"time"

	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/proxy/config"
	"github.com/wirewait/wirewait/proxy/observe"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// observePostgres asks each member that links lead to. The URI's user and
// password hold for all of them, and its host for none.
func (s *service) observePostgres(ctx context.Context, c *config.Cluster) map[string]*observe.Primary {
	asked := map[string]*observe.Primary{}
	for _, m := range c.Members {
		if m.Upstream == "" {
			continue
		}
		p := &observe.Primary{
			Server: m.Name, URI: c.Observe, Addr: m.Upstream, Log: s.log,
			Waiting: func(waiting []wire.Backend, asked time.Time) { s.tracer.Observe(m.Name, waiting, asked) },
			Found:   func(found *observe.PrimarySettings, since time.Time) { s.foundPrimary(m.Name, found, since) },
		}
		asked[m.Name] = p
		s.observers.running.Go(func() {
			if err := p.Watch(ctx); err != nil {
				s.log.Error("observe", "error", err)
			}
		})
	}
	return asked
}

// foundPrimary takes in what a server says of its commits.
func (s *service) foundPrimary(member string, found *observe.PrimarySettings, since time.Time) {
	if found.Recovering {
		return // it takes no writes
	}
	rule, err := trace.ParseStandbyNames(found.StandbyNames)
	if err != nil {
		s.log.Warn("a server has standbys that can't be read", "server", member, "error", err)
		return
	}
	s.log.Info("asked a server", "server", member, "version", found.Version, "synchronous_standby_names", found.StandbyNames,
		"synchronous_commit", found.Commit.Server, "wal_sender_timeout", found.SenderTimeout, "standbys", found.Standbys)
	if since.IsZero() {
		s.tracer.SetRule(member, rule)
	} else {
		s.tracer.ChangeRule(member, rule, since)
	}
	s.tracer.SetCommitDefaults(member, &found.Commit)
	s.tracer.SetStandbys(member, found.Synchronous)
	if p := s.proxy.Load(); p != nil {
		p.FoundWALTimeouts(member, proxy.WALTimeouts{Sender: orNever(found.SenderTimeout)})
	}
}

// orNever is a time-out of PostgreSQL's, where 0 is none.
func orNever(d time.Duration) time.Duration {
	if d == 0 {
		return proxy.Never
	}
	return d
}

// forgetPrimaries forgets what those said that were asked so far. What the file
// says, holds.
func (s *service) forgetPrimaries(f *config.File) {
	asked := s.observers.primaries.Load()
	if asked == nil {
		return
	}
	for member := range *asked {
		s.tracer.SetCommitDefaults(member, nil)
		s.tracer.SetStandbys(member, nil)
		if f.Standbys[member] == nil {
			s.tracer.SetRule(member, nil)
		}
	}
}

// committing tells whoever asks a server that commits pass.
func (o *observers) committing(c *trace.Conn) {
	if asked := o.primaries.Load(); asked != nil {
		if p := (*asked)[c.To]; p != nil {
			p.Committing()
		}
	}
}
