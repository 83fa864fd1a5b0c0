package main

import (
	"context"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wirewait/wirewait/internal/lab/mongod"
	"github.com/wirewait/wirewait/proxy/observe"
)

// engineFlags say what operations wait for in the lab's members.
func engineFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "tickets", Value: 128, Usage: "`NUMBER` of writes, and of reads, that may be in a member's storage engine at a time; a find with $where: \"sleep(500) || true\" holds one for so many milliseconds"},
		&cli.StringFlag{Name: "write-work", Value: "0s", Usage: "`TIME` that a write is there, on its ticket"},
		&cli.StringFlag{Name: "flow-control", Value: "10s", Usage: "`TIME` of flowControlTargetLagSeconds: writes slow down when a majority is more than half of it behind"},
		&cli.StringFlag{Name: "checkpoint-every", Value: "1m", Usage: "`TIME` between checkpoints"},
		&cli.StringFlag{Name: "checkpoint-lasts", Value: "0s", Usage: "`TIME` that one takes at least"},
		&cli.StringFlag{Name: "checkpoint-sync", Value: "0s", Usage: "`TIME` that a sync of the journal takes longer meanwhile"},
		&cli.StringFlag{Name: "status-of", Value: "8.0", Usage: "version whose serverStatus is answered: 6.0, 7.0 or 8.0"},
	}
}

func (r *reader) engine() mongod.Engine {
	e := mongod.Engine{
		Tickets: r.Int("tickets"), WriteWork: r.duration("write-work"), FlowControlTarget: r.duration("flow-control"),
		CheckpointEvery: r.duration("checkpoint-every"), CheckpointLasts: r.duration("checkpoint-lasts"), CheckpointSync: r.duration("checkpoint-sync"),
		StatusOf: r.choice("status-of", "6.0", "7.0", "8.0"),
	}
	if e.Tickets < 1 {
		r.problem("--tickets %d: write 1 or more", e.Tickets)
	}
	for flag, d := range map[string]time.Duration{"flow-control": e.FlowControlTarget, "checkpoint-every": e.CheckpointEvery} {
		if d == 0 {
			r.problem("--%s %s: write a time above 0", flag, r.String(flag))
		}
	}
	return e
}

// observeSet asks the lab's members what they do, as a file's observe would.
func (l *labMongo) observeSet(set *mongod.Set) {
	ctx, cancel := context.WithCancel(context.Background())
	l.service.observers.cancel = cancel
	var members []observe.Member
	for i, m := range set.Members() {
		members = append(members, observe.Member{Name: l.wan.full(m.Name()), ID: i})
	}
	for i, m := range set.Members() {
		l.service.sample(ctx, &observe.Sampler{Server: members[i].Name, URI: m.URI(), Members: members, Log: l.service.log})
	}
}
