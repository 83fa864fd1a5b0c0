package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wirewait/wirewait/internal/lab/mongod"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/trace"
)

func labMongoCommand() *cli.Command {
	return &cli.Command{
		Name:      "mongodb",
		Usage:     "a MongoDB replica set in this process",
		UsageText: "wirewait lab mongodb [--members NAME,...] [--write-delay NAME=TIME]... [--dir DIRECTORY]",
		Description: "The members are a model of mongod 8.0, with journals on disk: they replicate, vote and\n" +
			"wait as it does, and take what drivers and mongosh send for ordinary reads and writes.\n" +
			"A link leads to each from the application, and another from the other members; they are\n" +
			"as far away as you say. Spans and wirewait report tell which member released each write.\n" +
			"Connection strings are printed on standard output; SIGINT or SIGTERM ends it all, and\n" +
			"nothing stays, unless --dir says where.",
		Flags: labFlags("error", append(engineFlags(),
			&cli.StringFlag{Name: "members", Value: "a,b,c", Usage: "`NAME,...` of the members; the first is primary at the start"},
			&cli.StringFlag{Name: "set", Value: "rs0", Usage: "`NAME` of the set"},
			&cli.StringSliceFlag{Name: "write-delay", Usage: "a member's `NAME=TIME` from getting a write until its journal has it"},
			&cli.StringSliceFlag{Name: "apply-delay", Usage: "a member's `NAME=TIME` from its journal until reads show it"},
			&cli.StringSliceFlag{Name: "delayed", Usage: "a member's `NAME=TIME` of secondaryDelaySecs, in whole seconds"},
			&cli.BoolFlag{Name: "no-chaining", Usage: "all follow the primary, and none another that is nearer"},
			&cli.StringSliceFlag{Name: "rtt", Usage: "round trip `FROM-TO=TIME` of a pair of members, or of app and one (default for a,b,c: app-b=160ms, app-c=92ms, and the same from a; b-c=240ms)"},
			&cli.StringFlag{Name: "dir", Usage: "`DIRECTORY` of the members' files, which stay and are gone on from (default: a temporary one)"},
		)...),
		Action: labAction(parseLabMongo),
	}
}

// labMongo is one run of the lab.
type labMongo struct {
	options               mongod.SetOptions
	writeDelay, applyTime map[string]time.Duration // by member
	wan                   mongoWAN
	service               *service
	out                   io.Writer
}

func parseLabMongo(r *reader) *labMongo {
	l := &labMongo{out: r.App.Writer, service: labService(r)}
	l.options = mongod.SetOptions{Name: r.String("set"), Dir: r.String("dir"), NoChaining: r.Bool("no-chaining"), Engine: r.engine()}
	names := strings.Split(r.String("members"), ",")
	l.writeDelay = memberTimes(r, "write-delay", names)
	l.applyTime = memberTimes(r, "apply-delay", names)
	delayed := memberTimes(r, "delayed", names)
	for name, d := range delayed {
		if d%time.Second != 0 {
			r.problem("--delayed %s=%v: the time must be whole seconds", name, d)
		}
	}
	for i, name := range names {
		if name == "" || strings.ContainsAny(name, "/\\= ") || slices.Contains(names[:i], name) {
			r.problem("--members %q: write NAME,..., each once, such as a,b,c", r.String("members"))
			break
		}
		l.options.Members = append(l.options.Members, mongod.MemberOptions{Name: name, Delay: delayed[name]})
	}
	l.wan = farMembers(r, l.options.Name, names)
	return l
}

// farMembers reads the distances.
func farMembers(r *reader, set string, names []string) mongoWAN {
	w := defaultMongoWAN()
	if w.set = set; len(r.StringSlice("rtt")) == 0 && slices.Equal(names, w.members) {
		return w
	}
	w.members, w.site, w.rtts = names, nil, map[[2]string]time.Duration{}
	for _, v := range r.StringSlice("rtt") {
		pair, text, _ := strings.Cut(v, "=")
		from, to, ok := strings.Cut(pair, "-")
		d, err := time.ParseDuration(text)
		known := func(name string) bool { return name == "app" || slices.Contains(names, name) }
		switch {
		case !ok || err != nil || d < 0:
			r.problem("--rtt %q: write FROM-TO=TIME, such as a-b=160ms", v)
		case !known(from) || !known(to) || from == to:
			r.problem("--rtt %q: FROM and TO are app and members, two of them", v)
		}
		delete(w.rtts, [2]string{to, from})
		w.rtts[[2]string{from, to}] = d
	}
	return w
}

// memberTimes reads a flag of NAME=TIME.
func memberTimes(r *reader, flag string, names []string) map[string]time.Duration {
	times := map[string]time.Duration{}
	for _, v := range r.StringSlice(flag) {
		name, text, ok := strings.Cut(v, "=")
		d, err := time.ParseDuration(text)
		switch {
		case !ok || err != nil || d < 0:
			r.problem("--%s %q: write NAME=TIME, such as b=40ms", flag, v)
		case !slices.Contains(names, name):
			r.problem("--%s %q: no member is called %s", flag, v, name)
		}
		times[name] = d
	}
	return times
}

// run returns when it's asked to stop, and all members have ended.
func (l *labMongo) run(ctx context.Context) (err error) {
	ctx, cancel := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	defer func() { l.service.stop(context.WithoutCancel(ctx)) }()
	set, err := l.wan.start(ctx, l.options, func() *trace.Tracer { return l.service.tracer }, func(links []proxy.LinkConfig) (*proxy.Proxy, error) {
		l.service.options.links = links
		err := l.service.start(ctx)
		return l.service.proxy.Load(), err
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopSet(set)) }()
	for _, m := range set.Members() {
		m.SetWriteDelay(l.writeDelay[m.Name()])
		m.SetApplyDelay(l.applyTime[m.Name()])
	}
	l.observeSet(set)
	l.print(set)
	<-ctx.Done()
	l.service.observers.stop() // before the members go
	return nil
}

// print says where everything is.
func (l *labMongo) print(set *mongod.Set) {
	fmt.Fprintf(l.out, "replica set %s: a model of MongoDB 8.0, in this process: %s\n\n", l.options.Name, &l.wan)
	fmt.Fprintf(l.out, "through wirewait   %s\n", l.wan.uri(l.service.proxy.Load()))
	primary := set.Primary()
	for _, m := range set.Members() {
		what := "secondary"
		if m == primary {
			what = "primary"
		}
		fmt.Fprintf(l.out, "%-18s %s\n", m.Name()+", "+what, m.URI())
	}
	fmt.Fprintln(l.out)
	l.service.announce(l.out)
	fmt.Fprintln(l.out, "SIGINT (Ctrl-C) ends it")
}
