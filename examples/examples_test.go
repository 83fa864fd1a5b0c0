// Package examples_test checks what the examples say about each other and
// about wirewait, as most of them can't be run by a test.
package examples_test

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// stopTime is what a stop of wirewait takes at most: --drain's default and the
// time for the last spans.
const stopTime = 15 * time.Second

func TestEveryYAMLIsRead(t *testing.T) {
	files, _ := filepath.Glob("*/*.y*ml")
	if len(files) < 3 {
		t.Fatalf("only %v found", files)
	}
	for _, file := range files {
		readYAMLFile(t, file)
	}
}

func TestEveryExampleSaysWhatToSee(t *testing.T) {
	list, entries := read(t, "README.md"), 0
	dirs, _ := os.ReadDir(".")
	for _, dir := range dirs {
		if !dir.IsDir() {
			continue
		}
		entries++
		if !strings.Contains(read(t, dir.Name()+"/README.md"), "What you should see:") {
			t.Errorf("%s/README.md doesn't say what you should see", dir.Name())
		}
		if !strings.Contains(list, "]("+dir.Name()+")") {
			t.Errorf("README.md has no link to %s", dir.Name())
		}
	}
	if entries < 6 {
		t.Errorf("only %d examples", entries)
	}
}

func TestCompose(t *testing.T) {
	compose := readYAMLFile(t, "compose/compose.yaml")
	services := at(t, compose, "services").(map[string]any)
	build := at(t, compose, "services", "wirewait", "build")
	context := filepath.Join("compose", text(t, build, "context"))
	for _, path := range []string{text(t, build, "dockerfile"), "go.mod"} {
		read(t, filepath.Join(context, path))
	}

	args := texts(t, compose, "services", "wirewait", "command")
	host, _ := split(t, flag(args, "--upstream"))
	knows(t, services, host)
	_, listen := split(t, flag(args, "--listen"))
	_, admin := split(t, flag(args, "--admin"))
	published := texts(t, compose, "services", "wirewait", "ports")
	for _, port := range []string{listen, admin} {
		if !slices.Contains(published, "127.0.0.1:"+port+":"+port) {
			t.Errorf("%s isn't published: %v", port, published)
		}
	}
	knows(t, services, text(t, compose, "services", "writer", "environment", "PGHOST"))
	if port := text(t, compose, "services", "writer", "environment", "PGPORT"); port != listen {
		t.Errorf("the writer dials %s, and wirewait listens on %s", port, listen)
	}
	for name, service := range services {
		if ports, ok := service.(map[string]any)["ports"]; ok {
			for _, p := range ports.([]any) {
				if !strings.HasPrefix(p.(string), "127.0.0.1:") {
					t.Errorf("%s publishes %s to other machines", name, p)
				}
			}
		}
	}
	takesTime(t, text(t, compose, "services", "wirewait", "stop_grace_period"))
}

// TestComposeSpans follows spans from wirewait to Jaeger.
func TestComposeSpans(t *testing.T) {
	compose, collector := readYAMLFile(t, "compose/compose.yaml"), readYAMLFile(t, "compose/collector.yaml")
	services := at(t, compose, "services").(map[string]any)
	endpoint, err := url.Parse(text(t, compose, "services", "wirewait", "environment", "OTEL_EXPORTER_OTLP_ENDPOINT"))
	if err != nil || endpoint.Hostname() != "collector" {
		t.Fatalf("spans go to %v, %v", endpoint, err)
	}
	if _, port := split(t, text(t, collector, "receivers", "otlp", "protocols", "http", "endpoint")); port != endpoint.Port() {
		t.Errorf("wirewait sends to port %s, and the collector receives on %s", endpoint.Port(), port)
	}
	volume := strings.Split(texts(t, compose, "services", "collector", "volumes")[0], ":")
	read(t, filepath.Join("compose", volume[0]))
	if command := texts(t, compose, "services", "collector", "command"); !slices.Contains(command, "--config="+volume[1]) {
		t.Errorf("the collector reads %v, and its file is at %s", command, volume[1])
	}
	pipeline := at(t, collector, "service", "pipelines", "traces")
	for _, part := range []string{"receivers", "processors", "exporters"} {
		for _, name := range texts(t, pipeline, part) {
			knows(t, at(t, collector, part).(map[string]any), name)
		}
	}
	host, _ := split(t, text(t, collector, "exporters", "otlp/jaeger", "endpoint"))
	knows(t, services, host)
}

func TestKubernetes(t *testing.T) {
	pod, wait := at(t, readYAMLFile(t, "kubernetes/sidecar.yaml"), "spec", "template"), sidecar(t)
	if got := text(t, wait, "restartPolicy"); got != "Always" {
		t.Errorf("restartPolicy %s makes it no sidecar", got)
	}
	args := texts(t, wait, "args")
	_, admin := split(t, flag(args, "--admin"))
	port := at(t, wait, "ports").([]any)[0]
	if text(t, port, "containerPort") != admin || text(t, pod, "metadata", "annotations", "prometheus.io/port") != admin {
		t.Errorf("the admin port is %s here and another elsewhere", admin)
	}
	for _, probe := range []string{"startupProbe", "readinessProbe"} {
		if got := text(t, wait, probe, "httpGet", "port"); got != text(t, port, "name") {
			t.Errorf("the %s asks port %s", probe, got)
		}
	}
	environment := map[string]string{}
	for _, e := range at(t, at(t, pod, "spec", "containers").([]any)[0], "env").([]any) {
		if value, ok := e.(map[string]any)["value"]; ok {
			environment[text(t, e, "name")] = value.(string)
		}
	}
	if dialled := net.JoinHostPort(environment["PGHOST"], environment["PGPORT"]); dialled != flag(args, "--listen") {
		t.Errorf("the application dials %s, and wirewait listens on %s", dialled, flag(args, "--listen"))
	}
	if image := text(t, readYAMLFile(t, "compose/compose.yaml"), "services", "wirewait", "image"); text(t, wait, "image") != image {
		t.Errorf("the image is %s here and %s in compose", text(t, wait, "image"), image)
	}
	takesTime(t, text(t, pod, "spec", "terminationGracePeriodSeconds")+"s")
}

func TestUnit(t *testing.T) {
	unit, readme, install := readUnit(t), read(t, "systemd/README.md"), read(t, "../docs/install.md")
	binary := strings.Fields(unit["ExecStart"])[0]
	file := strings.TrimPrefix(unit["EnvironmentFile"], "-")
	for _, path := range []string{" " + binary + "\n", " " + file + "\n"} {
		if !strings.Contains(readme, path) {
			t.Errorf("systemd/README.md doesn't put anything at%s", path)
		}
	}
	if !strings.Contains(install, " "+binary+"\n") || !strings.Contains(read(t, "docker/Dockerfile"), " "+binary+"\n") {
		t.Errorf("docs/install.md and the Dockerfile put it elsewhere than at %s", binary)
	}
	running := read(t, "../docs/running.md")
	for line := range strings.Lines(read(t, "systemd/"+filepath.Base(file))) {
		if name, _, ok := strings.Cut(line, "="); ok && !strings.Contains(running, "`"+name+"`") {
			t.Errorf("docs/running.md has no %s", name)
		}
	}
	takesTime(t, unit["TimeoutStopSec"]+"s")
	configuration := strings.Fields(unit["ExecStart"])[2]
	if !strings.Contains(readme, " "+configuration+"\n") {
		t.Errorf("systemd/README.md doesn't put anything at %s", configuration)
	}
	if got := ask(t, "check", "systemd/"+filepath.Base(configuration)); !strings.Contains(got, "no problems") {
		t.Error(got)
	}
	if unit["ExecReload"] != "kill -HUP $MAINPID" {
		t.Errorf("systemctl reload does %q", unit["ExecReload"])
	}
	if unit["DynamicUser"] != "yes" || unit["CapabilityBoundingSet"] != "" || unit["AmbientCapabilities"] != "" {
		t.Error("it runs with more rights than it needs")
	}
}

func TestDockerfile(t *testing.T) {
	dockerfile := read(t, "docker/Dockerfile")
	minor := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../go.mod"))[1]
	for _, want := range []string{"FROM golang:" + minor + " ", "\nFROM scratch\n", "\nUSER 65532:65532\n", "CGO_ENABLED=0 go build "} {
		if !strings.Contains(dockerfile, want) {
			t.Errorf("no %q", want)
		}
	}
	// In the order of its images: Toxiproxy's place, and wirewait's own.
	entries := regexp.MustCompile(`(?m)^ENTRYPOINT \["(.+)"\]$`).FindAllStringSubmatch(dockerfile, -1)
	copies := regexp.MustCompile(`(?m)^COPY --from=build /out/wirewait (\S+)$`).FindAllStringSubmatch(dockerfile, -1)
	if len(entries) != 2 || len(copies) != 2 || entries[0][1] != copies[0][1] || entries[1][1] != copies[1][1] || entries[0][1] != "/toxiproxy" {
		t.Errorf("it runs %v, and the binary is at %v", entries, copies)
	}
}

// readUnit reads the unit's settings; the last of a name counts.
func readUnit(t *testing.T) map[string]string {
	t.Helper()
	settings := map[string]string{}
	for line := range strings.Lines(read(t, "systemd/wirewait.service")) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && name[0] != '#' {
			settings[name] = value
		}
	}
	return settings
}

func readYAMLFile(t *testing.T, path string) yamlNode {
	t.Helper()
	node, err := readYAML(read(t, path))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return node
}

func sidecar(t *testing.T) yamlNode {
	t.Helper()
	return at(t, readYAMLFile(t, "kubernetes/sidecar.yaml"), "spec", "template", "spec", "initContainers").([]any)[0]
}

// at walks down keys of maps.
func at(t *testing.T, node yamlNode, keys ...string) yamlNode {
	t.Helper()
	for i, key := range keys {
		m, _ := node.(map[string]any)
		next, ok := m[key]
		if !ok {
			t.Fatalf("no %s", strings.Join(keys[:i+1], "."))
		}
		node = next
	}
	return node
}

func text(t *testing.T, node yamlNode, keys ...string) string {
	t.Helper()
	s, ok := at(t, node, keys...).(string)
	if !ok {
		t.Fatalf("%s is no scalar", strings.Join(keys, "."))
	}
	return s
}

func texts(t *testing.T, node yamlNode, keys ...string) (all []string) {
	t.Helper()
	list, ok := at(t, node, keys...).([]any)
	if !ok {
		t.Fatalf("%s is no list", strings.Join(keys, "."))
	}
	for _, item := range list {
		s, ok := item.(string)
		if !ok {
			t.Fatalf("%s holds more than scalars", strings.Join(keys, "."))
		}
		all = append(all, s)
	}
	return all
}

func knows(t *testing.T, m map[string]any, name string) {
	t.Helper()
	if _, ok := m[name]; !ok {
		t.Errorf("nothing is named %s", name)
	}
}

// flag is the word behind a flag, "" without it.
func flag(args []string, name string) string {
	if i := slices.Index(args, name); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

func split(t *testing.T, address string) (host, port string) {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
		t.Fatalf("%q is no host:port: %v", address, err)
	}
	return host, port
}

// takesTime complains of a stop that would be cut short.
func takesTime(t *testing.T, patience string) {
	t.Helper()
	if d, err := time.ParseDuration(patience); err != nil || d <= stopTime {
		t.Errorf("a stop gets %s (%v), and may take %v", patience, err, stopTime)
	}
}
