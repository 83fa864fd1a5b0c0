package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"time"
)

// toxiproxy starts a Toxiproxy with its defaults and a latency toxic on what
// goes to the client.
func (b *bench) toxiproxy(program string, delay time.Duration) (*process, error) {
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
		"name": "bulk", "listen": p.Addr, "upstream": b.server.Addr, "enabled": true})
	if err != nil {
		return nil, err
	}
	return p, post("http://"+api+"/proxies/bulk/toxics", map[string]any{
		"type": "latency", "stream": "downstream", "attributes": map[string]any{"latency": delay.Milliseconds()}})
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
