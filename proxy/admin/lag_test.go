package admin

import (
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/wire"
)

// A lag applies to members' streams, and says so of no other connection.
func TestReach_LagsAreOfMembersStreams(t *testing.T) {
	for _, tt := range []struct {
		acknowledgements bool
		is               wire.Replication
		want             bool
	}{
		{false, wire.Replication{}, false},
		{false, wire.Replication{Log: true}, true},
		{false, wire.Replication{Progress: true}, false},
		{true, wire.Replication{Progress: true}, true},
		{true, wire.Replication{}, false},
	} {
		r := reachOf([]proxy.RuleStatus{{
			Rule:  inject.Rule{Name: "r", Effect: inject.EffectLag, With: inject.With{Delay: time.Second, Acknowledgements: tt.acknowledgements}},
			Links: []proxy.LinkRule{{Link: "m"}},
		}})[0]
		if got := r.mayApply(&proxy.Connection{Link: "m", Replication: tt.is}); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}
