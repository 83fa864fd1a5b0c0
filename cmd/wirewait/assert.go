package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/wirewait/wirewait/proxy/admin"
	"github.com/wirewait/wirewait/trace"
)

func assertCommand() *cli.Command {
	return &cli.Command{
		Name:      "assert",
		Usage:     "check what the writes of a running wirewait waited for, in CI",
		UsageText: "wirewait assert --max-p99 majority=250ms --min-count 100 --no-decode-errors",
		Description: "A limit is WAITS_FOR=TIME for the whole write, or WAITS_FOR/PART=TIME for its receive,\n" +
			"request, server, replication or reply. WAITS_FOR is a write concern or a\n" +
			"synchronous_commit as wirewait report shows it: majority, w:1, \"w:1 j\", on, remote_apply.\n" +
			"Without it (TIME, or /PART=TIME) it's a limit for each of them. A limit that no write came\n" +
			"under is not met. Writes of which it is not known exactly what they waited for (their\n" +
			"basis in wirewait report --by basis) don't count, unless --any-basis.\n\n" +
			"Exit code: 0 if all holds; 1 if something doesn't, or if no wirewait answers; 2 for a\n" +
			"command line that can't be meant.",
		Flags: clientFlags(
			&cli.StringSliceFlag{Name: "max-p50", Usage: "half of the writes may take so long at most (`LIMIT`); may be repeated"},
			&cli.StringSliceFlag{Name: "max-p95", Usage: "95 % may take so long at most (`LIMIT`)"},
			&cli.StringSliceFlag{Name: "max-p99", Usage: "99 % may take so long at most (`LIMIT`)"},
			&cli.StringSliceFlag{Name: "max-mean", Usage: "the mean may be so long at most (`LIMIT`)"},
			&cli.Uint64Flag{Name: "min-count", Value: 1, Usage: "how many writes there must be under each limit, or in all if there is none"},
			&cli.Uint64Flag{Name: "max-errors", Usage: "how many writes may fail, or not be replicated as asked", DefaultText: "any number"},
			&cli.BoolFlag{Name: "no-decode-errors", Usage: "everything was read: no message that wasn't understood, no encrypted connection, nothing dropped"},
			&cli.StringFlag{Name: "link", Usage: "the writes of one link (`NAME`)"},
			&cli.BoolFlag{Name: "any-basis", Usage: "count writes too whose write concern is assumed or unknown"},
		),
		Action: func(c *cli.Context) error {
			a, err := parseAssert(c)
			if err != nil {
				return err
			}
			return withServer(c, 0, func(server *client) error { return a.run(c, server) })
		},
	}
}

// assertion is everything that is asked of a run.
type assertion struct {
	limits         []limit
	link           string
	minCount       uint64
	maxErrors      *uint64
	noDecodeErrors bool
	anyBasis       bool
}

func parseAssert(c *cli.Context) (*assertion, error) {
	r := &reader{Context: c}
	a := &assertion{link: c.String("link"), minCount: c.Uint64("min-count"), noDecodeErrors: c.Bool("no-decode-errors"), anyBasis: c.Bool("any-basis")}
	for _, q := range limitFlags {
		for _, text := range c.StringSlice(q.flag) {
			l, err := parseLimit(text)
			if err != nil {
				r.problem("--%s %q: %v", q.flag, text, err)
			}
			l.flag, l.of = q.flag, q.of
			a.limits = append(a.limits, l)
		}
	}
	if c.IsSet("max-errors") {
		n := c.Uint64("max-errors")
		a.maxErrors = &n
	}
	if len(a.limits) == 0 && a.maxErrors == nil && !a.noDecodeErrors && !c.IsSet("min-count") {
		r.problem("nothing is asserted: give --max-p99, --min-count, --max-errors or --no-decode-errors")
	}
	return a, r.err()
}

// run says what holds, and returns all that doesn't.
func (a *assertion) run(c *cli.Context, server *client) error {
	seen, err := a.fetch(c.Context, server)
	if err != nil {
		return err
	}
	checked, wrong := a.check(&seen)
	if a.noDecodeErrors {
		undecoded, err := a.undecoded(c.Context, server)
		if err != nil {
			return err
		}
		if len(undecoded) == 0 {
			checked = append(checked, "everything was decoded")
		}
		wrong = append(wrong, undecoded...)
	}
	for _, line := range checked {
		fmt.Fprintln(c.App.Writer, "ok: "+line)
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\n"+commandName(c)+": "))
	}
	return nil
}

// evidence is what is known exactly, or all with --any-basis.
type evidence struct {
	whole []admin.Wait // by what writes waited for
	parts []admin.Wait // those whose server and replication parts are told apart exactly
	hint  string       // how much is left out
}

func (a *assertion) fetch(ctx context.Context, server *client) (e evidence, err error) {
	whole, err := a.waits(ctx, server, "concern")
	if err != nil {
		return e, err
	}
	parts, err := a.waits(ctx, server, "replication")
	if whole.LeftOut > 0 {
		e.hint = fmt.Sprintf(" (%d writes are left out: what they waited for is not known exactly; --any-basis counts them)", whole.LeftOut)
	}
	e.whole, e.parts = whole.Rows, parts.Rows
	return e, err
}

func (a *assertion) waits(ctx context.Context, server *client, exact string) (w admin.Waits, err error) {
	path := "/v1/waits?by=concern"
	if !a.anyBasis {
		path += "&exact=" + exact
	}
	if a.link != "" {
		path += "&link=" + url.QueryEscape(a.link)
	}
	err = server.get(ctx, path, &w)
	return w, err
}

// check divides what is asserted into what holds and what doesn't.
func (a *assertion) check(e *evidence) (holds, wrong []string) {
	say := func(ok bool, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); ok {
			holds = append(holds, text)
		} else {
			wrong = append(wrong, text)
		}
	}
	for _, l := range a.limits {
		rows := e.whole
		if l.part == trace.PartServer || l.part == trace.PartReplication {
			rows = e.parts
		}
		l.check(rows, a.minCount, e.hint, say)
	}
	count, failed := uint64(0), uint64(0)
	for _, w := range e.whole {
		count, failed = count+w.Count, failed+w.Errors
	}
	if len(a.limits) == 0 {
		say(count >= a.minCount, "%d writes, and at least %d are wanted%s", count, a.minCount, e.hint)
	}
	if a.maxErrors != nil {
		say(failed <= *a.maxErrors, "%d of %d writes failed, and at most %d may%s", failed, count, *a.maxErrors, e.hint)
	}
	return holds, wrong
}

// undecoded says everything that kept a figure from being whole.
func (a *assertion) undecoded(ctx context.Context, server *client) (wrong []string, err error) {
	var links admin.Links
	if err := server.get(ctx, "/v1/links", &links); err != nil {
		return nil, err
	}
	var waits admin.Waits
	if err := server.get(ctx, "/v1/waits", &waits); err != nil {
		return nil, err
	}
	for _, l := range links.Links {
		if a.link != "" && l.Name != a.link {
			continue
		}
		reasons := make([]string, 0, len(l.DecodeFailures))
		for reason, n := range l.DecodeFailures {
			reasons = append(reasons, fmt.Sprintf("%d %s", n, reason))
		}
		slices.Sort(reasons)
		if len(reasons) > 0 {
			wrong = append(wrong, fmt.Sprintf("link %s: messages were not understood: %s", l.Name, strings.Join(reasons, ", ")))
		}
		if n := l.Connections.Encrypted; n > 0 {
			wrong = append(wrong, fmt.Sprintf("link %s: %s encrypted and not read: use --tls decline or --tls auto", l.Name, count(int(n), "connection")))
		}
		if n := l.Connections.Opaque; n > 0 {
			wrong = append(wrong, fmt.Sprintf("link %s: %s could not be read to the end", l.Name, count(int(n), "connection")))
		}
	}
	if waits.Dropped > 0 {
		wrong = append(wrong, fmt.Sprintf("%d exchanges found no room to be counted", waits.Dropped))
	}
	return wrong, nil
}
