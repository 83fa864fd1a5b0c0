package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/proxy/admin"
	"github.com/wirewait/wirewait/proxy/config"
)

func scenarioCommand() *cli.Command {
	return &cli.Command{
		Name:      "scenario",
		Usage:     "play timed changes of delays and rules on a running wirewait",
		UsageText: "wirewait scenario [--json] [--admin HOST:PORT]\nwirewait scenario start [--wait] FILE\nwirewait scenario stop",
		Flags:     clientFlags(jsonFlag()),
		Action: func(c *cli.Context) error {
			return withServer(c, 0, func(server *client) error {
				return printScenario(c, server.get)
			})
		},
		Subcommands: []*cli.Command{
			{
				Name:      "start",
				Usage:     "begin to play the scenario of a file",
				UsageText: "wirewait scenario start [--wait] [--admin HOST:PORT] FILE",
				Flags:     clientFlags(&cli.BoolFlag{Name: "wait", Usage: "until it is over; the exit code is 1 if it was stopped, or not all could be carried out"}, jsonFlag()),
				Action:    startScenario,
			},
			{
				Name:      "stop",
				Usage:     "end the scenario that is played, and return to how everything was",
				UsageText: "wirewait scenario stop [--admin HOST:PORT]",
				Flags:     clientFlags(jsonFlag()),
				Action: func(c *cli.Context) error {
					return withServer(c, 0, func(server *client) error {
						return printScenario(c, func(ctx context.Context, path string, to any) error {
							return server.do(ctx, "DELETE", path, nil, to)
						})
					})
				},
			},
		},
	}
}

const scenarioPath = "/v1/scenario"

func startScenario(c *cli.Context) error {
	if c.NArg() == 0 {
		return &usageError{commandName(c), []string{"say which file has the scenario"}}
	}
	text, err := config.LoadScenario(c.Args().First())
	if err != nil {
		return err
	}
	return withServer(c, 1, func(server *client) error {
		begin := func(ctx context.Context, path string, to any) error {
			return server.do(ctx, "PUT", path, bytes.NewReader(text), to)
		}
		if !c.Bool("wait") {
			return printScenario(c, begin)
		}
		return playScenario(c, server, begin)
	})
}

// lookEvery is how often a command looks whether a scenario is over.
const lookEvery = 200 * time.Millisecond

// playScenario begins a scenario and returns when it's over.
func playScenario(c *cli.Context, server *client, begin func(context.Context, string, any) error) error {
	var s admin.Scenario
	if err := begin(c.Context, scenarioPath, &s); err != nil {
		return err
	}
	name, started := s.Name, s.Started
	for s.Outcome == proxy.ScenarioRunning {
		select {
		case <-time.After(lookEvery):
		case <-c.Context.Done():
			return c.Context.Err()
		}
		s = admin.Scenario{}
		if err := server.get(c.Context, scenarioPath, &s); err != nil {
			return err
		}
		if s.Started == nil || started == nil || !s.Started.Equal(*started) {
			return fmt.Errorf("another scenario (%s) has begun meanwhile, so %s is over", s.Name, name)
		}
	}
	if err := showScenario(c, &s); err != nil {
		return err
	}
	if s.Outcome != proxy.ScenarioEnded || len(s.Problems) > 0 {
		return errors.New("the scenario was not played whole: see above")
	}
	return nil
}

func printScenario(c *cli.Context, fetch func(context.Context, string, any) error) error {
	var s admin.Scenario
	if err := fetch(c.Context, scenarioPath, &s); err != nil {
		return err
	}
	return showScenario(c, &s)
}

func showScenario(c *cli.Context, s *admin.Scenario) error {
	if c.Bool("json") {
		return printJSON(c.App.Writer, s)
	}
	_, err := fmt.Fprint(c.App.Writer, describeScenario(s))
	return err
}

// describeScenario is a line, and one for each problem.
func describeScenario(s *admin.Scenario) string {
	if s.Outcome == "" {
		return "no scenario was started\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %d of %s", s.Name, s.Outcome, s.Done, count(s.Steps, "step"))
	if s.Step != "" {
		fmt.Fprintf(&b, ", now %s", s.Step)
	}
	fmt.Fprintf(&b, ", %v of %v\n", inTenths(s.ElapsedMS), inTenths(s.EndMS))
	for _, p := range s.Problems {
		fmt.Fprintln(&b, p)
	}
	return b.String()
}

func inTenths(ms float64) string {
	return short(time.Duration(ms * float64(time.Millisecond)).Round(100 * time.Millisecond))
}
