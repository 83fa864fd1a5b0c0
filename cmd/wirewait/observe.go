package main

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/wirewait/wirewait/proxy/config"
	"github.com/wirewait/wirewait/proxy/observe"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// observers ask the clusters of a file for what the file needn't say then.
type observers struct {
	cancel    context.CancelFunc
	running   sync.WaitGroup
	primaries atomic.Pointer[map[string]*observe.Primary] // by the member
}

// stop returns once nobody is asked any more.
func (o *observers) stop() {
	if o.cancel != nil {
		o.cancel()
	}
	o.running.Wait()
}

// observe asks the file's clusters, and no longer those of the file before. What
// they say goes before what the file says, until it's read again.
func (s *service) observe(f *config.File) {
	s.observers.stop()
	ctx, cancel := context.WithCancel(context.Background())
	s.observers.cancel = cancel
	s.forgetPrimaries(f)
	s.observeActivity(ctx, f)
	primaries := map[string]*observe.Primary{}
	for i := range f.Clusters {
		switch c := &f.Clusters[i]; {
		case c.Observe == "":
		case c.Protocol == wire.MongoDB:
			s.observeSet(ctx, f, c)
		case c.Protocol == wire.Postgres:
			maps.Copy(primaries, s.observePostgres(ctx, c))
		}
	}
	s.observers.primaries.Store(&primaries)
}

// observeSet asks a replica set for its configuration.
func (s *service) observeSet(ctx context.Context, f *config.File, c *config.Cluster) {
	set := &observe.Set{Name: c.Name, URI: c.Observe, Members: namedMembers(f, c), Log: s.log}
	s.observers.running.Go(func() {
		err := set.Watch(ctx, func(found *trace.ReplicaSet) {
			s.log.Info("asked a replica set", "cluster", c.Name, "version", found.Version, "members", len(found.Members), "default_w", found.DefaultW)
			for _, m := range found.Members {
				s.tracer.SetRule(m.Name, found.From(m.Name))
			}
		})
		if err != nil {
			s.log.Error("observe", "error", err)
		}
	})
}

// hostsOf are the names by which a set may know a member: its own, and those of
// the links to it.
func hostsOf(f *config.File, m *config.Member) []string {
	hosts := []string{m.Host, m.Upstream}
	for i := range f.Links {
		if l := &f.Links[i]; l.To == m.Name {
			hosts = append(hosts, l.Dialled())
		}
	}
	return hosts
}
