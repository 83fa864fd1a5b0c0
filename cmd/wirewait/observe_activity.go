package main

import (
	"context"

	"github.com/wirewait/wirewait/proxy/config"
	"github.com/wirewait/wirewait/proxy/observe"
	"github.com/wirewait/wirewait/trace"
)

// observeActivity asks each member of the file's clusters what it does, where the
// file says how, and forgets what members did that are no longer asked.
func (s *service) observeActivity(ctx context.Context, f *config.File) {
	all := s.tracer.Activities()
	for _, server := range all.Servers() {
		all.Forget(server)
	}
	for i := range f.Clusters {
		c := &f.Clusters[i]
		if c.Observe == "" {
			continue
		}
		for _, m := range c.Members {
			if m.Upstream == "" {
				continue
			}
			s.sample(ctx, &observe.Sampler{
				Server: m.Name, URI: c.Observe, Addr: m.Upstream, Members: namedMembers(f, c), Every: c.ObserveEvery, Log: s.log,
			})
		}
	}
}

// sample has a server asked until ctx ends.
func (s *service) sample(ctx context.Context, sampler *observe.Sampler) {
	all := s.tracer.Activities()
	if sampler.Every == 0 {
		sampler.Every = observe.DefaultEvery
	}
	all.Watch(sampler.Server, sampler.Every)
	s.observers.running.Go(func() {
		if err := sampler.Watch(ctx, func(a *trace.Activity) { all.Add(sampler.Server, a) }); err != nil {
			s.log.Error("observe", "error", err)
		}
	})
}

// namedMembers are a cluster's members with all names that servers may have for
// them.
func namedMembers(f *config.File, c *config.Cluster) []observe.Member {
	var members []observe.Member
	for i, m := range c.Members {
		of := observe.Member{Name: m.Name, ID: i, Hosts: append(hostsOf(f, &m), m.ApplicationName)}
		if set := f.Sets[m.Name]; set != nil {
			of.ID = set.Members[i].ID
		}
		members = append(members, of)
	}
	return members
}
