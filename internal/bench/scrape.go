package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// scrape adds up metrics of the wirewait whose admin address is given, over all
// their labels.
func scrape(admin string, names ...string) (float64, error) {
	r, err := http.Get("http://" + admin + "/metrics")
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	return addUp(r.Body, names)
}

// addUp reads the text format of Prometheus:
// https://prometheus.io/docs/instrumenting/exposition_formats/
func addUp(text io.Reader, names []string) (float64, error) {
	sum, found := 0.0, map[string]bool{}
	for lines := bufio.NewScanner(text); lines.Scan(); {
		line := lines.Text()
		for _, n := range names {
			rest, ok := strings.CutPrefix(line, n)
			if !ok || rest == "" || rest[0] != ' ' && rest[0] != '{' {
				continue
			}
			v, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			if err != nil {
				return 0, fmt.Errorf("/metrics says %q: %w", line, err)
			}
			sum += v
			found[n] = true
		}
	}
	if len(found) != len(names) {
		return 0, fmt.Errorf("/metrics lacks some of %s", strings.Join(names, ", "))
	}
	return sum, nil
}
