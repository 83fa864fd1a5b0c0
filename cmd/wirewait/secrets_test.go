package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/wirewait/wirewait/internal/lab"
)

// Planted is in everything that must not be shown.
const planted = "planted4711"

// TestSecrets_AreShownNowhere plants a token, passwords, literals, parameters
// and documents, and looks for them in all that wirewait shows of itself: /v1,
// /metrics, the log, spans, what its commands print, and their errors.
func TestSecrets_AreShownNowhere(t *testing.T) {
	pg, peer := startPostgres(t, lab.PostgresOptions{}), startMongo(t)
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte(planted+"token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "wirewait.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, `
links:
  - {name: pg, listen: "127.0.0.1:0", upstream: %q, protocol: postgres, rtt: 2ms, tls: {client: decline}}
  - {name: mongo, listen: "127.0.0.1:0", upstream: %q, rtt: 2ms}
`, pg.Addr(), peer.Addr()), 0o600); err != nil {
		t.Fatal(err)
	}
	w := start(t, []string{"OTEL_TRACES_EXPORTER=console", "OTEL_EXPORTER_OTLP_HEADERS=authorization=" + planted},
		"--admin-token-file", token, "--log-level", "debug", "--statement-text", "--children", "always", file)
	address := w.adminAddr()
	host, port, _ := net.SplitHostPort(w.line(`^link pg: (\S+) -> `)[1])
	psql(t, pg, fmt.Sprintf("host=%s port=%s dbname=postgres user=postgres password=%s", host, port, planted),
		"create table t (v text)",
		"insert into t values ('"+planted+"')",
		"create role planted_role password '"+planted+"'",
		"prepare p as insert into t values ($1)", "execute p('"+planted+"')",
	)
	withMongo(t, peer.URI(w.line(`^link mongo: (\S+) -> `)[1]), func(c *mongo.Client) {
		orders := c.Database("shop").Collection("orders")
		if _, err := orders.InsertOne(t.Context(), bson.D{{Key: planted, Value: planted}}); err != nil {
			t.Fatal(err)
		}
		if _, err := orders.UpdateMany(t.Context(), bson.D{{Key: "a", Value: planted}}, bson.D{{Key: "$set", Value: bson.D{{Key: "b", Value: planted}}}}); err != nil {
			t.Fatal(err)
		}
		until(t, "the writes are counted", func() bool {
			return reportOf(t, address, "--admin-token-file", token).Waits.Writes >= 6
		})
	})

	shown := map[string]string{}
	ask := &client{address: address, token: planted + "token"}
	for _, path := range []string{
		"/v1/health", "/v1/config", "/v1/links", "/v1/links/pg", "/v1/links/nowhere", "/v1/connections", "/v1/rules", "/v1/scenario",
		"/v1/waits?by=link,operation,basis,replication&reads=true", "/metrics",
	} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+ask.token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := answer.Write(&b); err != nil {
			t.Fatal(err)
		}
		shown[path] = b.String()
	}
	for _, args := range [][]string{{"report"}, {"connections"}, {"rules"}, {"scenario"}, {"assert", "--min-count", "1000000"}} {
		_, out, errs := command(t, append(args, "--admin", address, "--admin-token-file", token)...)
		shown[strings.Join(args, " ")] = out + errs
	}
	wrong := filepath.Join(dir, "wrong")
	if err := os.WriteFile(wrong, []byte(planted+" with spaces\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, out, errs := command(t, "report", "--admin", address, "--admin-token-file", wrong)
	shown["a token that is none"] = out + errs
	w.signal(os.Interrupt)
	w.stopped()
	shown["log"], shown["spans"] = w.log(), w.stdout.String()

	for where, text := range shown {
		if text == "" {
			t.Errorf("%s is empty, so nothing was looked at", where)
		}
		if i := strings.Index(text, planted); i >= 0 {
			t.Errorf("%s shows %q", where, text[max(0, i-80):min(len(text), i+40)])
		}
	}
	for _, want := range []string{"INSERT", "insert orders", "update orders"} {
		if !strings.Contains(shown["spans"], want) {
			t.Errorf("there is no span of %s, so nothing was looked at", want)
		}
	}
	var set struct {
		Token bool `json:"admin_token"`
	}
	_, body, _ := strings.Cut(shown["/v1/config"], "\r\n\r\n")
	if err := json.Unmarshal([]byte(body), &set); err != nil || !set.Token {
		t.Errorf("/v1/config doesn't say that there is a token: %v, %s", err, body)
	}
}
