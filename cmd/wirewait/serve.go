package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/proxy/admin"
	"github.com/wirewait/wirewait/proxy/config"
	"github.com/wirewait/wirewait/proxy/toxiproxy"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/trace/otlp"
)

// traceQueue is how many exchanges may wait for the tracer's worker. The writes
// of a pipeline end all at once, with its Sync: up to 32,768 of one connection.
// They take half a kilobyte each, and only while they are there.
const traceQueue = 65_536

// flushTime bounds the export of the last spans, and the end of the last
// requests to the admin server, when run stops.
const flushTime = 5 * time.Second

// service is what runs between start and stop.
type service struct {
	options   runOptions
	log       *slog.Logger
	exporter  *otlp.Exporter
	tracer    *trace.Tracer
	proxy     atomic.Pointer[proxy.Proxy] // nil until it has started
	admin     *admin.Server               // nil: off
	summary   *trace.Summary              // nil: admin is off, so nobody asks
	slow      *trace.Slow                 // nil: likewise
	throwAway *proxy.ThrowAway            // nil: not --tls auto
	observers observers
	stopping  atomic.Bool
	toxics    *toxiproxy.API                // nil: admin is off
	base      atomic.Pointer[[]inject.Rule] // those of the file
}

// serve runs the links until ctx ends or a signal asks to stop. It returns nil
// after a stop that was asked for, even if connections had to be cut: that is
// logged.
func serve(ctx context.Context, o runOptions, stderr io.Writer) error {
	// Whoever reads the log or the spans may go; connections stay. By default a
	// write to a broken standard output or error ends the process (os/signal).
	signal.Ignore(syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	hangups := make(chan os.Signal, 1)
	if o.file != nil {
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Stop(hangups)
	}

	s := &service{options: o, log: slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: o.level}))}
	command := "wirewait run"
	if o.toxiproxy != nil {
		s.log, command = o.toxiproxy.log, "wirewait toxiproxy"
	}
	if err := s.start(ctx); err != nil {
		now, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
		defer cancel()
		s.stop(now)
		return fmt.Errorf("%s: %w", command, err)
	}
	if o.toxiproxy == nil {
		s.announce(stderr)
	}

	reason := ""
	for reason == "" {
		select {
		case <-ctx.Done():
			reason = "asked to"
		case sig := <-signals:
			reason = sig.String()
		case <-hangups:
			s.reload()
		}
	}
	s.log.Info("stopping", "reason", reason, "drain", o.drain.String())
	atOnce, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	go func() {
		select {
		case sig := <-signals:
			cancel(fmt.Errorf("a second %v", sig))
		case <-atOnce.Done():
		}
	}()
	s.stop(atOnce)
	return nil
}

// start brings everything up. After an error stop takes down what there is.
func (s *service) start(ctx context.Context) (err error) {
	info, _ := debug.ReadBuildInfo()
	s.exporter, err = otlp.Setup(ctx, otlp.Options{
		Children: s.options.children, Version: moduleVersion(info), Counters: s.counters, Activities: s.activities, Collectors: s.collectors(), Log: s.log,
	})
	if err != nil {
		return err
	}
	consumers := []trace.Consumer{s.exporter}
	if s.options.admin != "" {
		s.summary, s.slow = &trace.Summary{}, &trace.Slow{}
		consumers = append(consumers, s.summary, s.slow)
	}
	s.tracer = trace.New(traceQueue, consumers...)
	s.tracer.WatchCommits(s.observers.committing)
	s.tracer.WatchSyncSources(func(member, was, is string) {
		s.log.Warn("a member follows another than before: what is measured of it isn't comparable", "member", member, "followed", was, "follows", is)
	})
	if s.options.file != nil {
		s.setStandbys(&config.File{}, s.options.file.begun)
	}
	s.base.Store(&s.options.rules)
	if s.options.admin != "" && s.options.toxiproxy == nil {
		s.newToxics()
		if err = s.startAdmin(); err != nil {
			return portHint(err, "is another wirewait running? choose another port (--admin 127.0.0.1:0 takes a free one) or --admin off")
		}
	}
	if s.options.auto {
		if err = s.makeThrowAway(); err != nil {
			return err
		}
	}
	spareProcessor()
	// The proxy's own context is not ctx: its end would be a stop without
	// patience.
	p, err := proxy.Start(context.WithoutCancel(ctx), proxy.Config{
		Links: s.options.links, Rules: s.options.rules, Tracer: s.tracer, Reads: s.wantsReads(),
		Text: s.options.text, Seed: s.options.seed, Driver: s.options.driver, Log: s.log,
	})
	if err != nil {
		hint := "choose another port with --listen (127.0.0.1:0 takes a free one)"
		if s.options.file != nil {
			hint = "choose another port in " + s.options.file.path
		}
		return portHint(err, hint)
	}
	s.proxy.Store(p)
	if s.options.toxiproxy != nil {
		return s.startToxiproxy()
	}
	if s.options.file != nil {
		s.observe(s.options.file.begun)
	}
	return nil
}

// wantsReads: reads make no spans; they are worth handing over only if
// somebody can look at metrics.
func (s *service) wantsReads() bool {
	e := os.Getenv("OTEL_METRICS_EXPORTER")
	return s.options.admin != "" || e != "" && e != "none"
}

func (s *service) counters() trace.Counters {
	p := s.proxy.Load()
	if p == nil {
		return trace.Counters{}
	}
	c := p.Counters()
	c.SyncSourceChanges = s.tracer.SyncSourceChanges()
	return c
}

func (s *service) activities() *trace.Activities {
	if s.proxy.Load() == nil { // nothing is asked before
		return nil
	}
	return s.tracer.Activities()
}

func (s *service) startAdmin() (err error) {
	info, _ := debug.ReadBuildInfo()
	version := moduleVersion(info)
	c := admin.Config{
		Listen: s.options.admin, Metrics: s.exporter.MetricsHandler(), Log: s.log, Healthy: s.healthy,
		Control: s.control(version), Token: s.options.token, Toxiproxy: s.toxics,
	}
	if t := s.options.toxiproxy; t != nil {
		c.OpenToxiproxy = true
		if !t.metrics() {
			c.Metrics = nil
		}
	}
	s.admin, err = admin.Start(c)
	return err
}

func (s *service) healthy() error {
	if s.stopping.Load() {
		return errors.New("stopping")
	}
	return nil
}

// portHint adds what to do about a port that is taken.
func portHint(err error, hint string) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: %s", err, hint)
	}
	return err
}

// stop lets connections end for as long as --drain says, then exports what is
// left. The end of atOnce cuts either short.
func (s *service) stop(atOnce context.Context) {
	s.stopping.Store(true)
	s.observers.stop()
	if p := s.proxy.Load(); p != nil {
		ctx, cancel := context.WithTimeoutCause(atOnce, s.options.drain, fmt.Errorf("--drain %v is over", s.options.drain))
		if err := p.Shutdown(ctx); err != nil {
			s.log.Warn("stopped before everything had ended", "error", err)
		}
		cancel()
	}
	if s.throwAway != nil {
		if err := s.throwAway.Remove(); err != nil {
			s.log.Warn("a file stays behind", "error", err)
		}
	}
	if s.tracer != nil {
		s.tracer.Close()
	}
	ctx, cancel := context.WithTimeout(atOnce, flushTime)
	defer cancel()
	if s.exporter != nil {
		if err := s.exporter.Shutdown(ctx); err != nil {
			s.log.Warn("spans or metrics were lost", "error", err, "spans_dropped", s.exporter.Dropped())
		}
	}
	if s.admin != nil {
		if err := s.admin.Shutdown(ctx); err != nil {
			s.log.Warn("admin", "error", err)
		}
	}
}

// spareProcessor lets a second goroutine run where there is one processor, unless
// somebody said how many: an event loop with work holds on to its own for up to
// 10 ms, and new connections would wait for that (the Go scheduler's
// forcePreemptNS in runtime/proc.go).
func spareProcessor() {
	if runtime.GOMAXPROCS(0) == 1 && os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2)
	}
}
