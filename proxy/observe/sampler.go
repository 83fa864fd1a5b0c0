package observe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/wirewait/wirewait/trace"
)

// Sampler asks one server what it does, again and again, on one connection of its
// own. It reads counters and changes nothing.
//
//	      look            look            look
//	-------|---------------|---------------|------>
//	         \- activity -/  \- activity -/
//
// A counter's activity is what it grew by between two looks, by the second; one
// that fell is a server's that was started again, and says nothing that time.
type Sampler struct {
	// Server is its name, as trace.Tracer.SetRule has it.
	Server string
	// URI says how to log in (mongodb://, postgres://). It may hold a password.
	URI string
	// Addr is the server's host:port, in the place of the URI's; empty: the URI's.
	Addr string
	// Members are those that the server may name, to find their names.
	Members []Member
	// Every is the time between looks; 0: a second.
	Every time.Duration
	Log   *slog.Logger
}

// DefaultEvery is how often a Sampler looks.
const DefaultEvery = time.Second

// look is what a server says at one moment.
type look struct {
	// asked and answered are when the first question went out, and when the last
	// answer came.
	asked, answered time.Time
	// now are measures as they are, counts those that only grow, and means sums
	// of milliseconds with the number of things that they add up.
	now, counts map[trace.Measure]float64
	means       map[trace.Measure]mean
	// checkpoints is how many have ended; nil: it isn't said.
	checkpoints *float64
	lags        []trace.MemberLag
	ticketRule  string
}

type mean struct{ ms, n float64 }

func newLook() *look {
	return &look{asked: time.Now(), now: map[trace.Measure]float64{}, counts: map[trace.Measure]float64{}, means: map[trace.Measure]mean{}}
}

// asker is one server's connection. Its errors are of the connection: what the
// server refuses it leaves out of the look, and says so once.
type asker interface {
	look(ctx context.Context) (*look, error)
	close()
}

// Watch looks until ctx ends, and hands each activity to add. Failures are logged
// once until the server answers again. The error is for a URI that is none.
func (s *Sampler) Watch(ctx context.Context, add func(*trace.Activity)) error {
	a, err := s.asker()
	if err != nil {
		return err
	}
	defer a.close()
	next := time.NewTicker(s.every())
	defer next.Stop()
	var before *look
	failing := false
	for {
		now, err := s.lookOnce(ctx, a)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			if failing {
				s.Log.Info("a server answers again", "server", s.Server)
			}
			if failing = false; before != nil {
				add(activity(before, now))
			}
		case !failing:
			failing = true
			s.Log.Warn("can't ask a server what it does: writes' spans say nothing of it", "server", s.Server, "error", err)
		}
		before = now // nil after a failure: what was between nobody knows
		select {
		case <-next.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *Sampler) lookOnce(ctx context.Context, a asker) (*look, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	l, err := a.look(ctx)
	if err != nil {
		return nil, err
	}
	l.answered = time.Now()
	return l, nil
}

func (s *Sampler) every() time.Duration {
	if s.Every <= 0 {
		return DefaultEvery
	}
	return s.Every
}

func (s *Sampler) asker() (asker, error) {
	scheme, _, _ := strings.Cut(s.URI, "://")
	switch scheme {
	case "mongodb":
		return newMongoAsker(s)
	case "postgres", "postgresql":
		return newPostgresAsker(s)
	}
	return nil, fmt.Errorf("observe of %s is no URI of a server: write mongodb://USER:PASSWORD@HOST:PORT/ or postgres://USER:PASSWORD@HOST:PORT/DATABASE", s.Server)
}

// activity is what happened between two looks.
func activity(before, now *look) *trace.Activity {
	a := &trace.Activity{From: before.answered, To: now.answered, TicketRule: now.ticketRule, Lags: now.lags}
	for m, v := range now.now {
		a.Set(m, v)
	}
	seconds := now.answered.Sub(before.answered).Seconds()
	for m, v := range now.counts {
		if was, ok := before.counts[m]; ok && v >= was && seconds > 0 {
			a.Set(m, (v-was)/seconds)
		}
	}
	for m, v := range now.means {
		if was, ok := before.means[m]; ok && v.n > was.n && v.ms >= was.ms {
			a.Set(m, (v.ms-was.ms)/(v.n-was.n))
		}
	}
	if now.checkpoints != nil && before.checkpoints != nil && *now.checkpoints > *before.checkpoints {
		a.Set(trace.Checkpoint, 1) // it may have begun and ended between two looks
	}
	a.Set(trace.SampleCost, float64(now.answered.Sub(now.asked))/float64(time.Millisecond))
	return a
}

// once says something once, whatever it's asked to say again.
type once struct {
	log  *slog.Logger
	name string
	said map[string]bool
}

func (o *once) say(what string, err error) {
	if o.said[what] {
		return
	}
	if o.said == nil {
		o.said = map[string]bool{}
	}
	o.said[what] = true
	o.log.Warn("a server doesn't say all of what it does: the rest goes on", "server", o.name, "what", what, "error", err)
}

// withoutPassword takes the URI, which may hold one, out of an error's text.
func withoutPassword(err error, uri string) error {
	text := err.Error()
	if u, parseErr := url.Parse(uri); parseErr == nil && u.User != nil {
		if p, ok := u.User.Password(); ok && p != "" {
			text = strings.ReplaceAll(text, p, "xxxxx")
		}
	}
	return errors.New(text)
}
