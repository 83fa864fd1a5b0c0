package imports

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// own says which of our packages each of them may import. It covers what is
// built, not tests.
var own = map[string][]string{
	"wire":            {},
	"wire/mongo":      {"wire"},
	"wire/postgres":   {"wire"},
	"inject":          {"wire"},
	"proxy/pump":      {"wire", "inject"},
	"proxy/toxiproxy": {"inject", "proxy", "proxy/config"},
	"proxy/admin":     {"wire", "inject", "proxy", "proxy/config", "proxy/toxiproxy", "trace"},
	"proxy/observe":   {"trace", "wire"},
	"proxy/config":    {"wire", "inject", "proxy", "trace"},
	"proxy":           {"wire", "wire/mongo", "wire/postgres", "inject", "proxy/pump", "trace"},
	"trace":           {"wire"},
	"trace/otlp":      {"wire", "trace"},
	"cmd/wirewait":    {"wire", "inject", "proxy", "proxy/admin", "proxy/config", "proxy/observe", "proxy/toxiproxy", "trace", "trace/otlp", "internal/lab", "internal/lab/mongod"},
	"internal/lab":    {"wire", "internal/lab/mongod"},
	"internal/bench":  {"wire", "inject", "proxy", "trace", "trace/otlp", "internal/lab", "internal/otlprecv", "internal/chart", "internal/study"},
	"internal/chart":  {},
	"internal/study":  {"trace", "internal/chart"},

	"internal/lab/mongod": {"wire"},

	"internal/study/cluster": {"wire", "inject", "proxy", "proxy/observe", "trace", "internal/lab", "internal/lab/mongod", "internal/study"},

	"examples/journal-group-commit": {"internal/chart", "internal/lab/mongod", "internal/study", "internal/study/cluster"},
	"examples/majority-lag":         {"internal/chart", "internal/lab/mongod", "internal/study", "internal/study/cluster"},
	"examples/delayed-member":       {"internal/chart", "internal/lab/mongod", "internal/study", "internal/study/cluster"},
	"examples/postgres-quorum":      {"internal/chart", "internal/study", "internal/study/cluster", "trace"},
	"examples/tickets":              {"internal/chart", "internal/lab/mongod", "internal/study", "internal/study/cluster", "trace"},
	"examples/flow-control":         {"internal/chart", "internal/lab/mongod", "internal/study", "internal/study/cluster", "trace"},
	"examples/mongodb-checkpoint":   {"internal/chart", "internal/lab/mongod", "internal/study", "internal/study/cluster", "trace"},
	"examples/checkpoint-spikes":    {"internal/chart", "internal/study", "internal/study/cluster"},
}

// check returns a sentence for every import that no rule allows.
func check(packages []goPackage) (complaints []string) {
	for _, p := range packages {
		for _, f := range p.files {
			for _, complain := range []func(goPackage, goFile) []string{outsideWorld, protocols, telemetry, direction} {
				for _, c := range complain(p, f) {
					complaints = append(complaints, fmt.Sprintf("%s/%s %s", p.path, f.name, c))
				}
			}
		}
	}
	return complaints
}

// outsideWorld: wire, wire/*, inject and proxy/pump are told the bytes and the
// time.
func outsideWorld(p goPackage, f goFile) (complaints []string) {
	if f.test || !(below(p.path, "wire") || p.path == "inject" || p.path == "proxy/pump") {
		return nil
	}
	for _, i := range f.imports {
		for _, forbidden := range []string{"net", "os", "syscall", "sync", "golang.org/x/sys", "golang.org/x/net"} {
			if below(i, forbidden) {
				complaints = append(complaints, "imports "+i+": this package does no I/O and needs no lock")
			}
		}
	}
	for _, c := range f.clock {
		complaints = append(complaints, "uses "+c+": this package is told the time and starts nothing")
	}
	return complaints
}

// protocols: one file of package proxy knows that there are two.
func protocols(p goPackage, f goFile) (complaints []string) {
	if below(p.path, "wire") || p.path == "proxy" && f.name == "protocol.go" {
		return nil
	}
	for _, i := range f.imports {
		if i == "wire/mongo" || i == "wire/postgres" {
			complaints = append(complaints, "imports "+i+": go through proxy.NewSession (proxy/protocol.go)")
		}
	}
	return complaints
}

// telemetry: trace/otlp and cmd know OpenTelemetry. Receivers, for tests and
// benchmarks, know its protocol.
func telemetry(p goPackage, f goFile) (complaints []string) {
	if below(p.path, "trace/otlp") || below(p.path, "cmd") {
		return nil
	}
	for _, i := range f.imports {
		if below(i, "go.opentelemetry.io/proto") && below(p.path, "internal") {
			continue
		}
		if below(i, "go.opentelemetry.io") || below(i, "github.com/prometheus") {
			complaints = append(complaints, "imports "+i+": only trace/otlp and cmd know OpenTelemetry")
		}
	}
	return complaints
}

// direction: our own packages, from the command down to wire.
func direction(p goPackage, f goFile) (complaints []string) {
	if f.test {
		return nil
	}
	allowed, listed := own[p.path]
	for _, i := range f.imports {
		first, _, _ := strings.Cut(i, "/")
		if !slices.Contains([]string{"wire", "inject", "proxy", "trace", "cmd", "internal", "examples"}, first) {
			continue // not ours: the standard library's internal can't be imported
		}
		switch {
		case !listed:
			complaints = append(complaints, "imports "+i+", and the package stands in no rule: add it to own in internal/imports")
		case !slices.Contains(allowed, i):
			complaints = append(complaints, "imports "+i+": that is against the direction of imports")
		}
	}
	return complaints
}

// below reports whether path is root or lies below it.
func below(path, root string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}

func TestCheck_FindsViolations(t *testing.T) {
	tests := []struct {
		path, file, source string
		want               string // empty: allowed
	}{
		{"wire", "wire.go", `import "time"; const a = time.Second`, ""},
		{"wire", "wire.go", `import "net"`, "imports net:"},
		{"wire/mongo", "frame.go", `import "net/netip"`, "imports net/netip:"},
		{"wire/postgres", "frame.go", `import "os"`, "imports os:"},
		{"inject", "line.go", `import "syscall"`, "imports syscall:"},
		{"inject", "line.go", `import "sync/atomic"`, "imports sync/atomic:"},
		{"proxy/pump", "pump.go", `import "sync"`, "imports sync:"},
		{"proxy/pump", "pump_test.go", `import "sync"`, ""},
		{"proxy", "conn.go", `import "sync"`, ""},
		{"proxy/pump", "pump.go", `import "time"; var a = time.Now()`, "uses time.Now:"},
		{"proxy/pump", "pump.go", `import clock "time"; var a = clock.Now`, "uses time.Now:"},
		{"inject", "line.go", `func f() { go f() }`, "uses go:"},
		{"proxy", "protocol.go", `import "` + module + `wire/mongo"`, ""},
		{"proxy", "conn.go", `import "` + module + `wire/mongo"`, "imports wire/mongo: go through"},
		{"proxy", "conn_test.go", `import "` + module + `wire/postgres"`, "imports wire/postgres: go through"},
		{"internal/lab", "lab.go", `import "` + module + `wire/postgres"`, "imports wire/postgres: go through"},
		{"cmd/wirewait", "decode.go", `import "` + module + `wire/mongo"`, "imports wire/mongo: go through"},
		{"wire/postgres", "x_test.go", `import "` + module + `wire/mongo"`, ""},
		{"trace", "trace.go", `import "go.opentelemetry.io/otel"`, "imports go.opentelemetry.io/otel:"},
		{"proxy/admin", "a.go", `import "github.com/prometheus/client_golang/prometheus"`, "only trace/otlp and cmd"},
		{"trace/otlp", "otlp.go", `import "go.opentelemetry.io/otel/sdk/trace"`, ""},
		{"internal/otlprecv", "r.go", `import v1 "go.opentelemetry.io/proto/otlp/trace/v1"`, ""},
		{"internal/otlprecv", "r.go", `import "go.opentelemetry.io/otel"`, "only trace/otlp and cmd"},
		{"wire", "wire.go", `import "` + module + `inject"`, "against the direction"},
		{"trace", "trace.go", `import "` + module + `trace/otlp"`, "against the direction"},
		{"trace/otlp", "otlp.go", `import "` + module + `proxy"`, "against the direction"},
		{"proxy", "proxy.go", `import "` + module + `proxy/admin"`, "against the direction"},
		{"proxy/elsewhere", "elsewhere.go", `import "` + module + `wire"`, "stands in no rule"},
		{"cmd/wirewait", "serve.go", `import ("` + module + `proxy"; "` + module + `trace/otlp")`, ""},
	}
	for _, tt := range tests {
		f := parse(t, tt.file, "package p\n"+tt.source)
		got := check([]goPackage{{path: tt.path, files: []goFile{f}}})
		switch {
		case tt.want == "" && len(got) > 0:
			t.Errorf("%s/%s, %s: %q, want none", tt.path, tt.file, tt.source, got)
		case tt.want != "" && !slices.ContainsFunc(got, func(c string) bool { return strings.Contains(c, tt.want) }):
			t.Errorf("%s/%s, %s: %q, want one with %q", tt.path, tt.file, tt.source, got, tt.want)
		}
	}
}
