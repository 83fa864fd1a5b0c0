//go:build unix

package proxy_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/internal/testenv"
	"github.com/wirewait/wirewait/trace"
)

var yes = true

func TestRealSet_NearerAndFartherSecondary(t *testing.T) {
	for _, o := range []setOptions{{}, {noHostInfo: true}, {pairs: true, noHostInfo: true}} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			if o.noHostInfo && runtime.GOOS != "linux" {
				t.Skip("members are told apart by addresses 127.0.0.2 to .4")
			}
			nearerAndFarther(t, o)
		})
	}
}

// The same of three servers that are MongoDB's own.
func TestRealSet_Mongod(t *testing.T) { nearerAndFarther(t, setOptions{mongod: testenv.Mongod(t)}) }

func nearerAndFarther(t *testing.T, o setOptions) {
	r := newSetRig(t, o)
	clients := r.orders(t, 1)
	for _, tt := range []struct {
		wc *writeconcern.WriteConcern
		by string
		at time.Duration
	}{
		{writeconcern.Majority(), "rs0.c", setRTTs["ac"]},
		{&writeconcern.WriteConcern{W: 2}, "rs0.c", setRTTs["ac"]},
		{&writeconcern.WriteConcern{W: 3}, "rs0.b", setRTTs["ab"]},
		{&writeconcern.WriteConcern{W: "bothSides"}, "rs0.b", setRTTs["ab"]},
		{nil, "rs0.c", setRTTs["ac"]},
	} {
		r.write(t, clients, 5, tt.wc)
		unlikely := 0
		for _, w := range r.take(t, 5) {
			if w.by != tt.by {
				unlikely++
				t.Logf("%s: %+v", w.concern, w)
				continue
			}
			if w.replication < tt.at || w.replication > w.total || w.parts != w.total || len(w.acknowledged)+len(w.behind) != 2 {
				t.Errorf("%s: %+v, want at least %v of replication, within the total, and two secondaries", w.concern, w, tt.at)
			}
		}
		if unlikely > 1 {
			t.Errorf("%d of 5 were not released by %s", unlikely, tt.by)
		}
	}
	r.write(t, clients, 3, writeconcern.W1())
	for _, w := range r.take(t, 3) {
		if w.basis != trace.BasisNotWaited || w.replication != 0 {
			t.Errorf("w:1: %+v", w)
		}
	}
	r.write(t, clients, 5, &writeconcern.WriteConcern{W: 1, Journal: &yes})
	for _, w := range r.take(t, 5) {
		if w.basis != trace.BasisUpperBound || w.journal <= 0 || w.journal > w.total || w.replication != 0 {
			t.Errorf("w:1 j: %+v", w)
		}
	}
}
