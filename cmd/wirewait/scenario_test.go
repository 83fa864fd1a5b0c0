package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/proxy/admin"
)

// TestScenario_IsPlayed is a person who plays one, looks at it, and stops it.
func TestScenario_IsPlayed(t *testing.T) {
	peer := startMongo(t)
	w := start(t, []string{"OTEL_TRACES_EXPORTER=console"}, "--listen", "127.0.0.1:0", "--upstream", peer.Addr(), "--rtt", "10ms")
	address := w.adminAddr()
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "scenario.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	rtt := func() string {
		r := reportOf(t, address)
		return r.Links[0].Delay.RTT
	}
	if code, out, _ := command(t, "scenario", "--admin", address); code != 0 || out != "no scenario was started\n" {
		t.Errorf("exit %d, %q", code, out)
	}
	long := file("{name: evening, steps: [{name: slow, at: 0, links: {\"127.0.0.1:0\": {rtt: 300ms}}}], end: 1h}")
	code, out, errs := command(t, "scenario", "start", "--admin", address, long)
	if code != 0 || !strings.HasPrefix(out, "evening: running, ") {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	until(t, "the step is in force", func() bool {
		_, out, _ := command(t, "scenario", "--admin", address)
		return strings.HasPrefix(out, "evening: running, 1 of 1 step, now slow, ")
	})
	if got := rtt(); got != "300ms" {
		t.Errorf("the round trip is %s", got)
	}
	withMongo(t, peer.URI(w.addr()), func(c *mongo.Client) { insert(t, c, 1, writeconcern.Majority()) })
	answer, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	metrics, _ := io.ReadAll(answer.Body)
	answer.Body.Close()
	if want := `wirewait_scenario_step{wirewait_scenario="evening",wirewait_scenario_step="slow"} 1`; !strings.Contains(string(metrics), want) {
		t.Errorf("/metrics has no %s", want)
	}
	if code, _, errs := command(t, "scenario", "start", "--admin", address, long); code != 1 || !strings.Contains(errs, "a scenario is running (evening)") {
		t.Errorf("a second one: exit %d, %s", code, errs)
	}
	if code, out, _ := command(t, "scenario", "stop", "--admin", address); code != 0 || !strings.HasPrefix(out, "evening: stopped, 1 of 1 step, ") {
		t.Errorf("exit %d, %q", code, out)
	}
	if got := rtt(); got != "10ms" {
		t.Errorf("after the stop the round trip is %s", got)
	}
	if code, _, errs := command(t, "scenario", "stop", "--admin", address); code != 1 || !strings.Contains(errs, "no scenario is running") {
		t.Errorf("exit %d, %q", code, errs)
	}

	brief := file("{name: blink, steps: [{name: slow, at: 0, links: {\"127.0.0.1:0\": {rtt: 300ms}}}], end: 1ms}")
	code, out, errs = command(t, "scenario", "start", "--wait", "--json", "--admin", address, brief)
	var s admin.Scenario
	if err := json.Unmarshal([]byte(out), &s); err != nil || code != 0 || s.Outcome != "ended" || s.Done != 1 {
		t.Errorf("exit %d, %v, %+v %s", code, err, s, errs)
	}
	if got := rtt(); got != "10ms" {
		t.Errorf("after the end the round trip is %s", got)
	}

	for text, want := range map[string]string{
		"{name: x, steps: [{name: a, at: 0, links: {nowhere: {rtt: 1s}}}], end: 1s}": "there is no link nowhere",
		"{name: x, steps: [], end: 1s}":                                              "scenario.yaml:1:18: steps is an empty list",
	} {
		if code, _, errs := command(t, "scenario", "start", "--admin", address, file(text)); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d, %q", text, code, errs)
		}
	}
	w.signal(syscall.SIGTERM)
	w.stopped()
	if span := consoleSpans(t, &w.stdout)["insert orders"]; span.attribute("wirewait.scenario") != "evening" || span.attribute("wirewait.scenario.step") != "slow" {
		t.Errorf("the span doesn't carry the step: %+v", span)
	}
	if code, _, errs := command(t, "scenario", "start"); code != 2 || !strings.Contains(errs, "say which file") {
		t.Errorf("exit %d, %q", code, errs)
	}
}
