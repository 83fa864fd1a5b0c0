// Command wirewait is a TCP proxy between an application and its MongoDB or
// PostgreSQL server. It delays the wire exactly and emits an OpenTelemetry
// span for every write, divided into what the write waited for.
//
//	wirewait run --upstream 127.0.0.1:5432 --rtt 80ms
//	wirewait run wirewait.yaml
//	wirewait check wirewait.yaml
//	wirewait links wirewait.yaml
//	wirewait demo
//	wirewait demo postgres
//	wirewait lab postgres
//	wirewait lab mongodb
//	wirewait report --watch
//	wirewait assert --max-p99 majority=250ms
//	wirewait connections
//	wirewait toxiproxy -host 0.0.0.0 -config proxies.json
//	wirewait decode --protocol postgres --to-server a.bin --to-client b.bin
//	wirewait version
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"
)

func main() { os.Exit(run(context.Background(), os.Args, os.Stdin, os.Stdout, os.Stderr)) }

const (
	exitFailure = 1
	exitUsage   = 2
)

// run is the whole command: args with the program's name first. The result is
// its exit code: 0 for a clean end, 1 for a failure, 2 for bad usage. The end
// of ctx is a request to stop, as SIGTERM is.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	err := newApp(stdin, stdout, stderr).RunContext(ctx, asToxiproxy(args))
	if err == nil {
		return 0
	}
	// The library's own complaint, of an unknown help topic, is an ExitCoder.
	if coder := cli.ExitCoder(nil); errors.As(err, &coder) {
		err = &usageError{"wirewait", []string{fmt.Sprintf("%v; see wirewait --help", err)}}
	}
	fmt.Fprintln(stderr, err)
	if usage := (*usageError)(nil); errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailure
}

// usageError is a command line that cannot be meant, with all that is wrong
// with it.
type usageError struct {
	command  string // "wirewait run"
	problems []string
}

// Error has one line per problem, each of which can be read alone.
func (e *usageError) Error() string {
	return e.command + ": " + strings.Join(e.problems, "\n"+e.command+": ")
}

func newApp(stdin io.Reader, stdout, stderr io.Writer) *cli.App {
	app := &cli.App{
		Name:        "wirewait",
		Usage:       "delay the wire to a MongoDB or PostgreSQL server, and see what each write waited for",
		UsageText:   "wirewait COMMAND [FLAGS]",
		HideVersion: true,
		Commands: []*cli.Command{
			runCommand(), checkCommand(), linksCommand(), reportCommand(), assertCommand(), connectionsCommand(),
			rulesCommand(), scenarioCommand(), toxiproxyCommand(),
			demoCommand(), labCommand(), decodeCommand(), versionCommand(),
		},
		Reader: stdin, Writer: stdout, ErrWriter: stderr,
		OnUsageError:   usageProblem,
		ExitErrHandler: func(*cli.Context, error) {}, // run prints and decides
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return cli.ShowAppHelp(c)
			}
			return &usageError{"wirewait", []string{fmt.Sprintf("unknown command %q: see wirewait --help", c.Args().First())}}
		},
	}
	addCompletion(app)
	finish(app.Commands)
	return app
}

// finish gives commands, and theirs, what all have in common.
func finish(commands []*cli.Command) {
	for _, c := range commands {
		c.OnUsageError = usageProblem
		c.HideHelpCommand = true
		if c.Before == nil && len(c.Subcommands) == 0 { // a subcommand's flags follow its name
			c.Before = refuseLateFlags
		}
		finish(c.Subcommands)
	}
}

// usageProblem makes one line of the flag package's errors, instead of that
// and a page of help.
func usageProblem(c *cli.Context, err error, _ bool) error {
	name := commandName(c)
	return &usageError{name, []string{fmt.Sprintf("%v; see %s --help", err, name)}}
}

// refuseLateFlags refuses flags behind a positional argument: the library
// stops reading flags there, and a delay that is silently not added is the
// worst that a delaying proxy can do.
func refuseLateFlags(c *cli.Context) error {
	for i, a := range c.Args().Slice() {
		if i > 0 && strings.HasPrefix(a, "-") {
			return &usageError{commandName(c), []string{fmt.Sprintf(
				"%s stands after the argument %q and would be ignored: put flags first", a, c.Args().First())}}
		}
	}
	return nil
}

// refuseArguments refuses positional arguments in commands that take none.
func refuseArguments(c *cli.Context, hint string) error {
	if c.NArg() == 0 {
		return nil
	}
	return &usageError{commandName(c), []string{fmt.Sprintf("unknown argument %q: %s", c.Args().First(), hint)}}
}

func commandName(c *cli.Context) string {
	if c.Command == nil || c.Command.Name == "" || c.Command.Name == c.App.Name {
		return c.App.Name
	}
	if c.Command.HelpName != "" { // with the commands that it's one of
		return c.Command.HelpName
	}
	return c.App.Name + " " + c.Command.Name
}
