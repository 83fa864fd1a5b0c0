package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"time"
)

// toxiproxyServer is where Toxiproxy's server is: on PATH, or built from its Go
// module, which internal/bench/toxiproxy/go.mod names so that ours doesn't
// depend on it.
func (b *bench) toxiproxyServer() (string, error) {
	if b.toxiproxyPath == "" {
		b.toxiproxyPath = find("toxiproxy-server")
	}
	if b.toxiproxyPath != "" {
		return b.toxiproxyPath, nil
	}
	path := filepath.Join(b.temp, "toxiproxy-server")
	c := exec.Command("go", "build", "-o", path, "github.com/Shopify/toxiproxy/v2/cmd/server")
	c.Dir = filepath.Join(b.root, "internal", "bench", "toxiproxy")
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("toxiproxy-server is not on PATH and can't be built: %w: %s", err, bytes.TrimSpace(out))
	}
	b.toxiproxyPath = path
	return path, nil
}

// toxiproxy starts one with its defaults and, if there is to be a delay, a
// latency toxic on a stream: "upstream" is what goes to the server,
// "downstream" what goes to the client.
func (b *bench) toxiproxy(program, upstream, stream string, delay time.Duration) (*process, error) {
	api, err := freeAddress()
	if err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(api)
	p := &process{Addr: api, command: exec.Command(program, "-host", host, "-port", port)}
	if err := b.fleet.start(p); err != nil {
		return nil, fmt.Errorf("start Toxiproxy: %w", err)
	}
	if err := p.reachable(); err != nil {
		return nil, err
	}
	if p.Addr, err = freeAddress(); err != nil {
		return nil, err
	}
	err = post("http://"+api+"/proxies", map[string]any{
		"name": "bench", "listen": p.Addr, "upstream": upstream, "enabled": true})
	if err != nil || delay == 0 {
		return p, err
	}
	return p, post("http://"+api+"/proxies/bench/toxics", map[string]any{
		"type": "latency", "stream": stream, "attributes": map[string]any{"latency": delay.Milliseconds()}})
}

func post(url string, body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.Post(url, "application/json", bytes.NewReader(b))
	if err != nil {
		return fmt.Errorf("tell Toxiproxy: %w", err)
	}
	defer r.Body.Close()
	if r.StatusCode >= 300 {
		return fmt.Errorf("tell Toxiproxy: %s %s", url, r.Status)
	}
	return nil
}
