package main

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy/toxiproxy"
	"github.com/wirewait/wirewait/trace/otlp"
)

func toxiproxyCommand() *cli.Command {
	return &cli.Command{
		Name:  "toxiproxy",
		Usage: "take the place of a Toxiproxy server: its flags, its HTTP API, its port",
		UsageText: "wirewait toxiproxy [-host HOST] [-port PORT] [-config FILE] [-seed NUMBER]\n\n" +
			"wirewait toxiproxy\n" +
			"wirewait toxiproxy -host=0.0.0.0 -config proxies.json",
		Description: "Toxiproxy's clients make proxies and toxics here, and every write that passes makes a\n" +
			"span, as OpenTelemetry's variables say. The routes are open to whoever reaches the host.\n" +
			"/v1 and the page are for this machine, or for who has the token (" + tokenVariable + ").\n" +
			"LOG_LEVEL is debug, info (the default), warn or error; the log is JSON on standard output.\n" +
			"What is other than there, and the toxics that know MongoDB and PostgreSQL: docs/toxiproxy.md.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "host", Value: "localhost", Usage: "where the API listens; 0.0.0.0 for every interface"},
			&cli.StringFlag{Name: "port", Value: "8474", Usage: "its port"},
			&cli.StringFlag{Name: "config", Usage: "JSON `FILE` with a list of proxies to begin with, and their toxics"},
			&cli.Int64Flag{Name: "seed", Usage: "`NUMBER` that repeats the draws of an earlier run", DefaultText: "another each time"},
			&cli.BoolFlag{Name: "proxy-metrics", Usage: "/metrics, with the bytes of each proxy"},
			&cli.BoolFlag{Name: "runtime-metrics", Usage: "/metrics, with those of the process"},
			&cli.BoolFlag{Name: "version", Usage: "print the version"},
		},
		Action: func(c *cli.Context) error {
			if err := refuseArguments(c, "toxiproxy takes flags only"); err != nil {
				return err
			}
			if c.Bool("version") {
				info, _ := debug.ReadBuildInfo()
				_, err := fmt.Fprintln(c.App.Writer, "toxiproxy-server version "+toxiproxy.Version(moduleVersion(info)))
				return err
			}
			o, err := parseToxiproxy(c)
			if err != nil {
				return err
			}
			return serve(c.Context, o, c.App.ErrWriter)
		},
	}
}

// toxiproxyOptions are what the command has beyond run's.
type toxiproxyOptions struct {
	config                       string
	proxyMetrics, runtimeMetrics bool
	log                          *slog.Logger
}

func (o *toxiproxyOptions) metrics() bool { return o.proxyMetrics || o.runtimeMetrics }

// asToxiproxy makes the command of a program that goes by Toxiproxy's name, as the
// entrypoint of a container does.
func asToxiproxy(args []string) []string {
	if len(args) == 0 || !slices.Contains([]string{"toxiproxy", "toxiproxy-server"}, filepath.Base(args[0])) {
		return args
	}
	return append([]string{args[0], "toxiproxy"}, args[1:]...)
}

func parseToxiproxy(c *cli.Context) (runOptions, error) {
	r := &reader{Context: c}
	o := runOptions{
		admin: net.JoinHostPort(c.String("host"), c.String("port")), seed: uint64(rand.Uint32()), children: otlp.ChildrenAuto,
		token: r.checkToken(os.Getenv(tokenVariable), tokenVariable),
	}
	r.port("port", c.String("port"), c.String("port"))
	if c.IsSet("seed") {
		o.seed = uint64(c.Int64("seed"))
	}
	var unknown string
	o.level, unknown = logLevel(os.Getenv("LOG_LEVEL"))
	o.toxiproxy = &toxiproxyOptions{
		config: c.String("config"), proxyMetrics: c.Bool("proxy-metrics"), runtimeMetrics: c.Bool("runtime-metrics"),
		log: toxiproxyLog(c.App.Writer, o.level),
	}
	if unknown != "" {
		o.toxiproxy.log.Error("unknown LOG_LEVEL value: \"" + unknown + "\"")
	}
	return o, r.err()
}

// logLevel reads LOG_LEVEL, and returns what it doesn't know.
func logLevel(v string) (level slog.Level, unknown string) {
	switch strings.ToLower(v) {
	case "trace", "debug":
		return slog.LevelDebug, ""
	case "warn":
		return slog.LevelWarn, ""
	case "error", "fatal", "panic":
		return slog.LevelError, ""
	case "", "info":
		return slog.LevelInfo, ""
	}
	return slog.LevelInfo, v
}

// toxiproxyLog has the keys of Toxiproxy's log, which what waits for a line of it
// looks for.
func toxiproxyLog(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) > 0 {
			return a
		}
		switch a.Key {
		case slog.MessageKey:
			a.Key = "message"
		case slog.LevelKey:
			a.Value = slog.StringValue(strings.ToLower(a.Value.String()))
		}
		return a
	}}))
}

// newToxics makes the API of the links, whoever made them.
func (s *service) newToxics() {
	info, _ := debug.ReadBuildInfo()
	s.toxics = toxiproxy.New(toxiproxy.Config{
		Proxy: s.proxy.Load, Version: moduleVersion(info), Rules: func() []inject.Rule { return *s.base.Load() }, Log: s.log,
	})
}

// startToxiproxy makes the proxies of the file, and opens the API when they are
// there.
func (s *service) startToxiproxy() error {
	t := s.options.toxiproxy
	info, _ := debug.ReadBuildInfo()
	s.log.Info("Starting Toxiproxy", "version", toxiproxy.Version(moduleVersion(info)), "seed", s.options.seed)
	s.newToxics()
	if t.config != "" {
		text, err := os.ReadFile(t.config)
		if err != nil {
			return fmt.Errorf("-config: %w", err)
		}
		made, err := s.toxics.Populate(s.proxy.Load(), text)
		if err != nil {
			return fmt.Errorf("-config %s: %w", t.config, err)
		}
		s.log.Info("Populated proxies from file", "config", t.config, "proxies", len(made))
	}
	if err := s.startAdmin(); err != nil {
		return portHint(err, "is another Toxiproxy or wirewait running? choose another port with -port")
	}
	s.log.Info("Starting Toxiproxy HTTP server", "address", s.admin.Addr().String())
	s.log.Info(s.exporter.Describe())
	return nil
}
