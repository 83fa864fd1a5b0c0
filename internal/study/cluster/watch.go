package cluster

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/wirewait/wirewait/proxy/observe"
	"github.com/wirewait/wirewait/trace"
)

// Watch is what a server said of itself over a stretch of time.
type Watch struct {
	begin  time.Time
	cancel context.CancelFunc
	done   chan error

	mu  sync.Mutex
	all []*trace.Activity
}

// Watch begins to ask the primary what it does, so often. Without the right to
// ask (the role clusterMonitor) nothing is known, which is logged.
func (m *Mongo) Watch(ctx context.Context, log io.Writer, every time.Duration) (*Watch, error) {
	s := &observe.Sampler{Server: "primary", URI: m.uri, Every: every}
	if m.Lab != nil {
		s.URI = m.Lab.Primary().URI()
	} else {
		h, err := m.hello(ctx)
		if err != nil {
			return nil, err
		}
		s.Addr = h.Me
	}
	w := &Watch{begin: time.Now(), done: make(chan error, 1)}
	ctx, w.cancel = context.WithCancel(ctx)
	s.Log = slog.New(slog.NewTextHandler(until{ctx, log}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	go func() {
		w.done <- s.Watch(ctx, func(a *trace.Activity) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.all = append(w.all, a)
		})
	}()
	return w, nil
}

// until writes as long as the context lasts: that a question was broken off at the
// end is no news.
type until struct {
	ctx context.Context
	w   io.Writer
}

func (u until) Write(b []byte) (int, error) {
	if u.ctx.Err() != nil {
		return len(b), nil
	}
	return u.w.Write(b)
}

// Stop ends it. It must be called once.
func (w *Watch) Stop() error {
	w.cancel()
	return <-w.done
}

// Most is the largest value of a measure so far. Not ok: the server doesn't say.
func (w *Watch) Most(m trace.Measure) (most float64, ok bool) {
	for _, p := range w.Series(m) {
		if !ok || p.Value > most {
			most, ok = p.Value, true
		}
	}
	return most, ok
}

// Moment is a value between two looks, from From to To since the beginning.
type Moment struct {
	From, To time.Duration
	Value    float64
}

// Series are the values of a measure so far, as far as the server says.
func (w *Watch) Series(m trace.Measure) (all []Moment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.all {
		if v, ok := a.Get(m); ok {
			all = append(all, Moment{a.From.Sub(w.begin), a.To.Sub(w.begin), v})
		}
	}
	return all
}

// Sum adds up a rate over the time so far: how many of it there were.
func (w *Watch) Sum(m trace.Measure) (sum float64, ok bool) {
	for _, p := range w.Series(m) {
		sum, ok = sum+p.Value*(p.To-p.From).Seconds(), true
	}
	return sum, ok
}

// Marks are the stretches of time in which a mark was set.
func (w *Watch) Marks(m trace.Measure) (all []Moment) {
	for _, p := range w.Series(m) {
		switch last := len(all) - 1; {
		case p.Value == 0:
		case last >= 0 && all[last].To == p.From:
			all[last].To = p.To
		default:
			all = append(all, p)
		}
	}
	return all
}
