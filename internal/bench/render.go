package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

const legend = "Medians of rounds; in brackets the 95 % interval of the median (below six rounds the extremes). " +
	"Ratios are of the same round, against the bare relay with 32 KiB unless said otherwise. " +
	"A question mark: the interval holds the goal."

// text prints a report for a terminal.
func (r *Report) text(w io.Writer) {
	for _, t := range r.Tables {
		t.text(w)
	}
	if len(r.Figures) > 0 {
		fmt.Fprintf(w, "\nAgainst the goals\n")
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, f := range r.Figures {
			fmt.Fprintf(tw, "  %s\t%s\t%s\t%s\n", f.Name, f.Got(), f.Want(), f.Verdict)
		}
		tw.Flush()
	}
	for _, m := range r.Missing {
		fmt.Fprintln(w, "\nnot measured:", m)
	}
	fmt.Fprintf(w, "\n%s\n%s\n", legend, r.Machine)
}

func (t *Table) text(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n", t.Title)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "  \t%s\n", strings.Join(t.Columns, "\t"))
	for _, row := range t.Rows {
		fmt.Fprintf(tw, "  %s\n", strings.Join(row.strings(), "\t"))
	}
	tw.Flush()
	if t.Note != "" {
		fmt.Fprintf(w, "  %s\n", t.Note)
	}
}

// markdown prints it for docs/performance.md, each table below its charts.
func (r *Report) markdown(w io.Writer) {
	fmt.Fprintf(w, "%s. Measuring took %.1f minutes.\n\n%s\n", r.Machine, r.Seconds/60, legend)
	if r.Quick {
		fmt.Fprintf(w, "\nThis was a quick run: its intervals are wide.\n")
	}
	fmt.Fprintf(w, "\n### Against the goals\n\n| what | reached | goal | |\n|---|---|---|---|\n")
	for _, f := range r.Figures {
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", f.Name, f.Got(), f.Want(), f.Verdict)
	}
	for _, t := range r.Tables {
		fmt.Fprintf(w, "\n### %s\n", t.Title)
		for _, c := range charts {
			if c.table == t.ID {
				fmt.Fprintf(w, "\n![%s](%s)\n", c.title, c.file())
			}
		}
		fmt.Fprintf(w, "\n|  | %s |\n|---|%s\n", strings.Join(t.Columns, " | "), strings.Repeat("---|", len(t.Columns)))
		for _, row := range t.Rows {
			fmt.Fprintf(w, "| %s |\n", strings.Join(row.strings(), " | "))
		}
		if t.Note != "" {
			fmt.Fprintf(w, "\n%s\n", t.Note)
		}
	}
	for _, m := range r.Missing {
		fmt.Fprintf(w, "\nNot measured: %s.\n", m)
	}
}

func (r Row) strings() []string {
	s := []string{r.Name}
	for _, c := range r.Cells {
		s = append(s, c.String())
	}
	return s
}
