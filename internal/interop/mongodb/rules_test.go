package mongodb

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/internal/interop/ferret"
	"github.com/wirewait/wirewait/internal/interop/rig"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/wire"
)

// What a person at mongosh sees of a rule, and what the server has afterwards.
func TestRules_Mongosh(t *testing.T) {
	shell := rig.Installed(t, "mongosh", "node_modules/mongosh/bin/mongosh.js")
	addr := ferret.Start(t)
	const script = `
		let said = "fine";
		try { db.orders.insertOne({_id: ID}) } catch (e) { said = [e.name, e.code, e.message].join(" ") }
		print("said: " + said);
		print("stored: " + db.orders.countDocuments({_id: ID}));
	`
	for id, tt := range []struct {
		name         string
		effect       inject.Effect
		with         inject.With
		said, stored string
	}{
		{"refuse", inject.EffectRefuse, inject.With{Code: "13"}, "MongoServerError 13", "stored: 0"},
		{"lose_reply", inject.EffectLoseReply, inject.With{}, "MongoNetworkError", "stored: 1"},
		{"fail_reply", inject.EffectFailReply, inject.With{Code: "50"}, "MongoServerError 50", "stored: 1"},
		{"writeConcernError", inject.EffectFailReply, inject.With{Code: "64", WriteConcernError: true}, "MongoWriteConcernError 64", "stored: 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := proxy.Start(context.Background(), proxy.Config{
				Links: []proxy.LinkConfig{{Name: "link", Listen: "127.0.0.1:0", Upstream: addr, Protocol: wire.MongoDB}},
				Rules: []inject.Rule{{
					Name: "rule", When: inject.When{Command: []string{"insert"}, Collection: []string{"orders"}},
					Effect: tt.effect, With: tt.with, Limit: inject.Limit{First: 1},
				}},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				now, cancel := context.WithCancel(context.Background())
				cancel()
				_ = p.Shutdown(now)
			}()
			uri := "mongodb://" + p.Links()[0].Addr().String() + "/shop?retryWrites=false&directConnection=true"
			cmd := exec.Command("node", shell, "--quiet", "--norc", uri, "--eval",
				strings.ReplaceAll(script, "ID", string(rune('1'+id))))
			cmd.Env = append(cmd.Environ(), "HOME="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "said: "+tt.said) || !strings.Contains(string(out), tt.stored) {
				t.Errorf("%v\n%s\nwant %q and %q", err, out, tt.said, tt.stored)
			}
		})
	}
}
