package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// linksConns is how many connections there are, over however many links.
const linksConns = 1000

// links measures what an exchange costs in a wirewait of one link and in one of
// a thousand.
func (b *bench) links(ctx context.Context) error {
	if len(b.drivers) == 0 {
		return nil
	}
	sizes := []int{1, 10, 100, 1000}
	var lanes []*lane
	defer func() { release(lanes) }()
	for _, driver := range b.drivers {
		for _, n := range sizes {
			l, err := b.open(ctx, label(wirewaitTCP, driver), n, linksConns, func(upstream string) (*process, []string, error) {
				return b.manyLinks(driver, upstream, n)
			})
			if err != nil {
				return fmt.Errorf("%s, %d links: %w", label(wirewaitTCP, driver), n, err)
			}
			lanes = append(lanes, l)
		}
	}
	got, err := b.walk(ctx, lanes)
	if err != nil {
		return err
	}
	t := b.reportSizes("links", fmt.Sprintf("CPU µs per exchange, by the number of links (%d connections over all)", linksConns),
		"One round trip of 128 bytes at a time, on each connection in turn.", sizes, lanes, got)
	for _, driver := range b.drivers {
		row := label(wirewaitTCP, driver)
		b.report.goal("growth of the cost per exchange to 1000 links, "+row, t.cell(row, growth), "x", flatGoal, false)
	}
	return nil
}

// manyLinks starts a wirewait with a file of n links to one upstream.
func (b *bench) manyLinks(driver, upstream string, n int) (*process, []string, error) {
	var file strings.Builder
	fmt.Fprintln(&file, "admin: off\nlinks:")
	for i := range n {
		fmt.Fprintf(&file, "  - {name: link%d, listen: \"127.0.0.1:0\", upstream: %q, protocol: tcp, rtt: 0s, connect: false}\n", i, upstream)
	}
	f, err := os.CreateTemp(b.temp, "links-*.yaml")
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if _, err := f.WriteString(file.String()); err != nil {
		return nil, nil, fmt.Errorf("write %s: %w", filepath.Base(f.Name()), err)
	}
	p, err := b.runWirewait(driver, nil, f.Name())
	if err != nil {
		return nil, nil, err
	}
	addrs, err := p.announced(n)
	if err != nil {
		return nil, nil, err
	}
	p.Addr = addrs[0]
	return p, addrs, p.reachable()
}

var linkLine = regexp.MustCompile(`^link.*: (127\.0\.0\.1:\d+) -> `)

// announced waits until a wirewait has said where its n links listen.
func (p *process) announced(n int) ([]string, error) {
	for range 1000 {
		f, err := os.Open(p.log)
		if err != nil {
			return nil, err
		}
		var addrs []string
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if m := linkLine.FindStringSubmatch(lines.Text()); m != nil {
				addrs = append(addrs, m[1])
			}
		}
		f.Close()
		if len(addrs) >= n {
			return addrs, nil
		}
		select {
		case <-p.done:
			return nil, fmt.Errorf("%s ended before it listened%s", p.command.Path, p.said())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil, fmt.Errorf("%s did not announce %d links within 10 s", p.command.Path, n)
}
