//go:build unix

package proxy_test

import (
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/internal/lab/mongod"
)

// Links between members that are cut, again and again: writes take longer, as they
// would without us, and none is said to have been released by a member that didn't.
func TestRealSet_LinksThatDie(t *testing.T) {
	r := newSetRig(t, setOptions{})
	clients := r.orders(t, 4)
	const each = 15
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.write(t, clients, each, writeconcern.Majority(), &writeconcern.WriteConcern{W: 2})
	}()
	cuts := 0
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-time.After(300 * time.Millisecond):
			for _, c := range r.proxy.Connections() {
				if strings.HasPrefix(c.Link, "members-") && c.From == "rs0.c" && r.proxy.Cut(c.ID) {
					cuts++
				}
			}
		}
	}
	truth := map[mongod.OpTime]string{}
	for _, rel := range r.set.Member("a").Truth().Releases {
		truth[rel.OpTime] = "rs0." + rel.By
	}
	by, wrong := map[string]int{}, 0
	for _, w := range r.take(t, len(clients)*each) {
		by[w.by+" "+w.basis]++
		if w.by != "" && w.by != truth[w.at] {
			wrong++
			t.Logf("%s: by %s, %s, %v before the reply; in truth by %s", w.concern, w.by, w.basis, w.late, truth[w.at])
		}
	}
	t.Logf("%d connections cut: %v", cuts, by)
	// On a machine so busy that the primary stands still between two of them, one
	// may be the other's.
	if cuts == 0 || wrong > 1 {
		t.Errorf("%d connections cut, %d writes attributed to the wrong member", cuts, wrong)
	}
}
