package trace

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Table prints the summary in milliseconds: how long the operations took, and
// the mean of each part. It prints one line if nothing was counted, and ends at
// w's first error.
func (s *Summary) Table(w io.Writer) {
	rows := s.Rows()
	if len(rows) == 0 {
		fmt.Fprintln(w, "no exchanges")
		return
	}
	cells := [][]string{{
		"operation", "waits for", "count", "errors", "p50 ms", "p99 ms",
		"mean ms", PartReceive, PartRequest, PartServer, PartReplication, PartReply,
	}}
	for i := range rows {
		cells = append(cells, rows[i].cells())
	}
	io.WriteString(w, Align(cells, 2))
}

func (r *Row) cells() []string {
	concern := r.Concern
	if concern == "" {
		concern = "-"
	}
	operation := r.Operation
	if operation == "" {
		operation = "?"
	}
	return []string{
		operation, concern,
		strconv.FormatUint(r.Count, 10), strconv.FormatUint(r.Errors, 10),
		ms(r.Total.P50), ms(r.Total.P99), ms(r.Total.Mean),
		ms(r.Receive.Mean), ms(r.Request.Mean), ms(r.Server.Mean), ms(r.Replication.Mean), ms(r.Reply.Mean),
	}
}

// Align makes a table of rows that have the same number of cells: columns are
// padded to their widest cell, the first ones to the left, numbers to the right.
func Align(cells [][]string, left int) string {
	widths := make([]int, len(cells[0]))
	for _, row := range cells {
		for i, c := range row {
			widths[i] = max(widths[i], len(c))
		}
	}
	var b strings.Builder
	for _, row := range cells {
		for i, c := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			pad := strings.Repeat(" ", widths[i]-len(c))
			if i < left {
				b.WriteString(c + pad)
			} else {
				b.WriteString(pad + c)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// ms prints a duration in milliseconds, to the microsecond below 10 ms.
func ms(d time.Duration) string {
	prec := 3
	switch {
	case d == 0:
		prec = 0
	case d >= 100*time.Millisecond:
		prec = 1
	case d >= 10*time.Millisecond:
		prec = 2
	}
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', prec, 64)
}
