package main

import (
	"github.com/urfave/cli/v2"
)

const (
	defaultListen = "127.0.0.1:27117"
	defaultAdmin  = "127.0.0.1:8474"
)

func runCommand() *cli.Command {
	return &cli.Command{
		Name:  "run",
		Usage: "put a link in front of a server, or the links that a file describes",
		UsageText: "wirewait run --upstream HOST:PORT [FLAGS]\n" +
			"wirewait run [FLAGS] FILE\n\n" +
			"wirewait run --upstream 127.0.0.1:5432 --rtt 80ms --tls decline\n" +
			"wirewait run --upstream 127.0.0.1:27017 --rtt 80ms --jitter 5ms\n" +
			"wirewait run --upstream 'mongodb://a:27017,b:27017,c:27017/?replicaSet=rs0' --rtt 80ms\n" +
			"wirewait run wirewait.yaml",
		Description: "Listens, connects every client to the upstream, and delays the bytes between them.\n" +
			"A file has the links' settings, so their flags are refused beside it; SIGHUP reads it\n" +
			"again: connections that exist go on, and feel their link's new delay.\n" +
			"Spans go where OpenTelemetry's variables say: OTEL_EXPORTER_OTLP_ENDPOINT for a\n" +
			"collector, OTEL_TRACES_EXPORTER=console for standard output. SIGINT or SIGTERM\n" +
			"stops it once what is under way has ended; a second one stops it at once.",
		Flags: runFlags(),
		Action: func(c *cli.Context) error {
			parse := parseRun
			if c.NArg() > 0 {
				parse = parseRunFile
			}
			o, err := parse(c)
			if err != nil {
				return err
			}
			return serve(c.Context, o, c.App.ErrWriter)
		},
	}
}

// runFlags are strings where a bad value shall be reported together with all
// other problems, in our words.
func runFlags() []cli.Flag {
	flags := []cli.Flag{
		&cli.StringFlag{Name: "listen", Value: defaultListen, Usage: "where clients connect: `HOST:PORT` or unix:/path"},
		&cli.StringFlag{Name: "upstream", Usage: "the server: `HOST:PORT`, unix:/path, or a replica set's mongodb:// URI, for a link to each member on consecutive ports"},
		&cli.StringFlag{Name: "protocol", Usage: "mongodb, postgres or tcp (default: detected for each connection)"},

		&cli.StringFlag{Name: "rtt", Usage: "round trip to add, half of it each way, such as 80ms", DefaultText: "0s"},
		&cli.StringFlag{Name: "delay-to-server", Usage: "one-way delay to the server, instead of --rtt", DefaultText: "0s"},
		&cli.StringFlag{Name: "delay-to-client", Usage: "one-way delay to the client, instead of --rtt", DefaultText: "0s"},
		&cli.StringFlag{Name: "jitter", Usage: "how much each one-way delay varies, uniformly and both ways", DefaultText: "0s"},
		&cli.BoolFlag{Name: "connect", Value: true, Usage: "connecting costs what it would: a round trip before the first byte"},
		&cli.StringFlag{Name: "seed", Usage: "`NUMBER` that repeats the jitter of an earlier run (default: another each time)"},
	}
	flags = append(flags, tlsFlags()...)
	return append(flags,
		&cli.BoolFlag{Name: "statement-text", Usage: "put PostgreSQL statements on spans, with $? for every literal"},
		&cli.StringFlag{Name: "children", Value: "auto", Usage: "child spans for request, server and reply: auto, always or never"},
		&cli.StringFlag{Name: "admin", Value: defaultAdmin, Usage: "`HOST:PORT` of the page, /v1, /metrics and /healthz, or off"},
		tokenFlag(),
		&cli.StringFlag{Name: "drain", Value: "10s", Usage: "how long a stop waits for what is under way"},
		&cli.StringFlag{Name: "driver", Value: "auto", Usage: "what moves the bytes: epoll (event loops, Linux), net (goroutines), or auto"},
		&cli.StringFlag{Name: "log-level", Value: "info", Usage: "debug, info, warn or error"},
	)
}
