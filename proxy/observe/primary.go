package observe

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/wirewait/wirewait/wire"
)

// Primary asks a PostgreSQL server for whom its commits wait, on one connection of
// its own, with SELECT only.
//
//	every 5 s            its settings, and its standbys             -> Found
//	commits pass
//	  every 5 ms         its settings still, and who waits in which
//	                     transaction                                -> Waiting
//	  every 25 ms        the same, once nobody waits
//	nobody has waited, and no commit has passed, for 0.1 s: as before
//
// A question that takes long is asked less often: at most a fifth of the time is
// spent on it. What holds the answers up holds up nothing else.
type Primary struct {
	// Server is its name, as trace.Tracer.SetRule has it.
	Server string
	// URI says how to log in (postgres://). It may hold a password.
	URI string
	// Addr is the server's host:port, in the place of the URI's; empty: the URI's.
	Addr string
	// Found gets the settings, first and whenever they differ. Until since the
	// former ones were in force; zero: there were none.
	Found func(s *PrimarySettings, since time.Time)
	// Waiting gets the sessions that wait for standbys, if any do, with the time
	// when it was asked. Nil: it isn't asked who waits.
	Waiting func(sessions []wire.Backend, asked time.Time)
	// Every is the time between questions for settings; 0: 5 s.
	Every time.Duration
	Log   *slog.Logger

	settings atomic.Pointer[PrimarySettings]
	commits  atomic.Bool // passed since the last look
	making   sync.Once
	wake     chan struct{} // room for one
}

// How often it's asked, and when no more.
const (
	settingsEvery = 5 * time.Second
	waitingEvery  = 5 * time.Millisecond
	nobodyEvery   = 25 * time.Millisecond
	nobodyFor     = 100 * time.Millisecond
	share         = 5 // of the time between looks to that of one
)

// Committing says that commits pass. It's cheap, never blocks, and may be called
// by anybody.
func (p *Primary) Committing() {
	if p.commits.Load() {
		return
	}
	p.commits.Store(true)
	select {
	case p.waker() <- struct{}{}:
	default:
	}
}

func (p *Primary) waker() chan struct{} {
	p.making.Do(func() { p.wake = make(chan struct{}, 1) })
	return p.wake
}

// Settings are the latest that were found; nil: none yet.
func (p *Primary) Settings() *PrimarySettings { return p.settings.Load() }

// Watch asks until ctx ends. Failures are logged once until the server answers
// again. The error is for a URI that is none.
func (p *Primary) Watch(ctx context.Context) error {
	config, err := postgresConfig(p.Server, p.URI, p.Addr)
	if err != nil {
		return err
	}
	w := &primaryWatch{Primary: p, config: config}
	defer w.hangUp()
	for ctx.Err() == nil {
		w.report(ctx, w.step(ctx))
		w.pause(ctx)
	}
	return nil
}

// primaryWatch is Watch's state.
type primaryWatch struct {
	*Primary
	config *pgconn.Config
	conn   *pgconn.PgConn // nil: none

	agreed            time.Time // when the latest question began whose answer has the settings at hand
	nextAsk, nextLook time.Time // nextLook zero: nothing to look at
	busy              time.Time // when a commit passed or somebody waited
	failing, said     bool
}

// step asks what is due.
func (w *primaryWatch) step(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	now := time.Now()
	if w.commits.Swap(false) {
		if w.busy = now; w.nextLook.IsZero() {
			w.nextLook = now
		}
	}
	if !now.Before(w.nextAsk) {
		w.nextAsk = now.Add(cmp.Or(w.Every, settingsEvery))
		if err := w.ask(ctx, now); err != nil {
			w.nextLook = time.Time{}
			return err
		}
	}
	if w.conn == nil || w.nextLook.IsZero() || now.Before(w.nextLook) {
		return nil
	}
	return w.look(ctx)
}

// ask asks for the settings.
func (w *primaryWatch) ask(ctx context.Context, now time.Time) error {
	if w.conn == nil {
		conn, err := pgconn.ConnectConfig(ctx, w.config)
		if err != nil {
			return withoutPassword(err, w.URI)
		}
		w.conn = conn
	}
	answers, err := w.query(ctx, settingsSQL)
	if err != nil {
		return err
	}
	s, err := readSettings(answers)
	if err != nil {
		return err
	}
	if was := w.settings.Load(); was == nil || !reflect.DeepEqual(was, s) {
		since := w.agreed
		if was != nil && was.sameRule(s) {
			since = now
		}
		w.settings.Store(s)
		w.Found(s, since)
	}
	w.agreed = now
	if !s.SeesAll && !w.said && w.Waiting != nil {
		w.said = true
		w.Log.Warn("a server's sessions can't be seen: commits are told apart by their time only; GRANT pg_read_all_stats or pg_monitor to the role that observe has", "server", w.Server)
	}
	return nil
}

// look asks who waits.
func (w *primaryWatch) look(ctx context.Context) error {
	began := time.Now()
	answers, err := w.query(ctx, waitingSQL)
	if err != nil {
		return err
	}
	names, recovering, waiting := readWaiting(answers)
	if s := w.settings.Load(); names != s.StandbyNames || recovering != s.Recovering {
		w.nextAsk = began // and it's said from when to when nobody knows
	} else {
		w.agreed = began
	}
	ended := time.Now()
	every := nobodyEvery
	if len(waiting) > 0 {
		every, w.busy = waitingEvery, ended
		if w.Waiting != nil {
			w.Waiting(waiting, began)
		}
	}
	w.nextLook = began.Add(max(every, share*ended.Sub(began)))
	if ended.Sub(w.busy) > nobodyFor {
		w.nextLook = time.Time{}
	}
	return nil
}

// query asks, and hangs up if that fails.
func (w *primaryWatch) query(ctx context.Context, sql string) ([]*pgconn.Result, error) {
	answers, err := w.conn.Exec(ctx, sql).ReadAll()
	if err == nil && len(answers) == 0 {
		err = errors.New("the server answers nothing")
	}
	if err != nil {
		w.hangUp()
	}
	return answers, err
}

func (w *primaryWatch) hangUp() {
	if w.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = w.conn.Close(ctx)
	w.conn = nil
}

// report logs what became of a step, if that's new.
func (w *primaryWatch) report(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case err == nil && w.conn != nil && w.failing:
		w.failing = false
		w.Log.Info("a server answers again", "server", w.Server)
	case err != nil && !w.failing:
		w.failing = true
		w.Log.Warn("can't ask a server for whom its commits wait: what was last known of it stays", "server", w.Server, "error", err)
	}
}

// pause waits until something is due.
func (w *primaryWatch) pause(ctx context.Context) {
	next := w.nextAsk
	var wake <-chan struct{}
	switch {
	case w.conn == nil: // commits don't bring it back
	case w.nextLook.IsZero():
		wake = w.waker()
	case w.nextLook.Before(next):
		next = w.nextLook
	}
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-wake:
	}
}
