package inject

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// CheckRules reports everything in a set of rules that can't be, each with what
// to write instead; nil: nothing.
func CheckRules(rules []Rule) error {
	var errs []error
	seen := map[string]bool{}
	for i := range rules {
		r := &rules[i]
		if err := r.Check(); err != nil {
			errs = append(errs, fmt.Errorf("rule %s: %w", r.called(i), err))
		}
		if seen[r.Name] {
			errs = append(errs, fmt.Errorf("rule %s: the name is taken: give each rule its own", r.Name))
		}
		seen[r.Name] = true
	}
	return errors.Join(errs...)
}

func (r *Rule) called(i int) string {
	if r.Name == "" {
		return strconv.Itoa(i + 1)
	}
	return r.Name
}

// Check reports everything in a rule that can't be; nil: nothing.
func (r *Rule) Check() error {
	var c complaints
	c.add(r.Name == "", "it has no name: give it one, which spans and counters will carry")
	c.add(r.Effect >= NumEffects, "there is no effect %d", uint8(r.Effect))
	if len(c) == 0 {
		r.When.check(r.Effect, &c)
		r.With.check(r.Effect, r.Stacks, &c)
		r.Limit.check(&c)
	}
	return errors.Join(c...)
}

type complaints []error

func (c *complaints) add(bad bool, format string, args ...any) {
	if bad {
		*c = append(*c, fmt.Errorf(format, args...))
	}
}

// maxValues bounds what one rule's lists of values multiply to.
const maxValues = 4096

func (w *When) check(e Effect, c *complaints) {
	n := max(len(w.From), 1) * max(len(w.WriteConcern), 1)
	for _, f := range w.content() {
		n = min(n*max(len(f), 1), 2*maxValues)
	}
	c.add(n > maxValues, "its match has more than %d combinations of values: make several rules of it", maxValues)
	c.add(w.Direction > OnlyToClient, "there is no direction %d", uint8(w.Direction))
	c.add(w.Direction != BothWays && !e.OnBytes(), "%s has a direction of its own: leave direction out", e)
	mongo := len(w.Command) > 0 || len(w.Collection) > 0 || len(w.WriteConcern) > 0
	postgres := len(w.Statement) > 0 || len(w.SynchronousCommit) > 0
	c.add(mongo && postgres, "nothing can match: command, collection and write_concern are MongoDB's, statement and synchronous_commit PostgreSQL's")
	if e == EffectLag {
		w.checkLag(c)
	}
	for _, k := range w.WriteConcern {
		c.add(k == Concern{}, "an empty write concern matches everything: leave it out")
	}
}

// checkLag reports what a stream between members can't be matched by.
func (w *When) checkLag(c *complaints) {
	rest := *w
	rest.Application, rest.User = nil, nil
	c.add(rest.Content(), "lag is of a member's whole stream, which has no commands or statements: match it by link, from, to, application or user")
	c.add(w.Direction != BothWays, "lag has a direction of its own, to the member: leave direction out, and write acknowledgements: true for the other one")
	c.add(w.Monitors, "lag is of streams between members, which no monitoring connection carries: leave monitors out")
}

func (w *With) check(e Effect, stacks bool, c *complaints) {
	rest := *w
	switch e {
	case EffectRefuse:
		c.add(w.Code == "", "refuse needs a code: MongoDB's number or a SQLSTATE")
		rest.Code, rest.Fatal, rest.Message, rest.Labels = "", false, "", nil
	case EffectFailReply:
		c.add(w.Code == "", "fail_reply needs a code: MongoDB's number or a SQLSTATE")
		rest.Code, rest.WriteConcernError, rest.Message, rest.Labels = "", false, "", nil
	case EffectLatency:
		c.add(w.Delay <= 0 && !stacks, "latency needs a delay of more than 0")
		c.add(w.Jitter > w.Delay && !stacks, "the jitter is more than the delay, and none can be less than 0: make it smaller")
		rest.Delay, rest.Jitter = 0, 0
	case EffectLag:
		c.add(stacks, "lag doesn't stack: the first rule that matches is the one")
		c.add(w.Delay <= 0, "lag needs a delay of more than 0, which the member is to be behind")
		c.add(w.Ramp != 0 && !(w.Ramp >= LeastRamp && w.Ramp <= 1), "the ramp is %v: write how many seconds the lag may change by in a second, %v to 1", w.Ramp, LeastRamp)
		rest.Delay, rest.Ramp, rest.Acknowledgements = 0, 0, false
	case EffectResetPeer, EffectTimeout:
		rest.After = 0
	case EffectLimitData:
		rest.Bytes = 0
	case EffectLoss:
		d := Delay{Loss: w.Loss}
		c.add(w.Loss.none(), "loss needs a rate of more than 0")
		if err := d.Check(); err != nil {
			*c = append(*c, err)
		}
		rest.Loss = Loss{}
	case EffectBandwidth:
		rest.Bandwidth = 0
	case EffectSlicer:
		c.add(w.Size < 1, "slicer needs a size of at least 1 byte")
		c.add(w.Variation >= max(w.Size, 1), "the variation must be less than the size")
		rest.Size, rest.Variation, rest.Delay = 0, 0, 0
	case EffectSlowClose:
		rest.Delay = 0
	}
	c.add(!rest.none(), "%s is given parameters that it doesn't have: leave them out", e)
	for _, d := range []time.Duration{w.Delay, w.Jitter, w.After} {
		c.add(d < 0 || d > maxDelay, "%v is no duration to wait: write one from 0 to %v", d, time.Duration(maxDelay))
	}
	c.add(w.Bandwidth < 0 || w.Bytes < 0 || w.Variation < 0, "a bandwidth or a number of bytes can't be less than 0")
	if w.Code != "" && !codeShape(w.Code) {
		c.add(true, "code %q is neither a number nor a SQLSTATE of five capital letters and digits", w.Code)
	}
}

// none reports whether no parameter is given.
func (w *With) none() bool {
	return w.Delay == 0 && w.Jitter == 0 && w.Ramp == 0 && !w.Acknowledgements && w.After == 0 && w.Bandwidth == 0 && w.Loss == Loss{} && w.Size == 0 &&
		w.Variation == 0 && w.Bytes == 0 && w.Code == "" && !w.WriteConcernError && !w.Fatal && w.Message == "" &&
		w.Labels == nil
}

func codeShape(code string) bool {
	if n, err := strconv.ParseInt(code, 10, 32); err == nil {
		return n > 0
	}
	if len(code) != 5 {
		return false
	}
	for _, c := range []byte(code) {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

func (l *Limit) check(c *complaints) {
	c.add(!(l.Probability >= 0 && l.Probability <= 1), "the probability is %v: write one above 0%% and up to 100%%", l.Probability)
	c.add(l.Nth > 0 && l.First > 0 && l.Nth > l.First, "it never fires: match %d is not among the first %d", l.Nth, l.First)
	c.add(l.Until < 0, "until is %v: write how long the rule is to be in force", l.Until)
}
