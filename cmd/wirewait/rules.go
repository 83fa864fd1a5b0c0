package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/wirewait/wirewait/proxy/admin"
	"github.com/wirewait/wirewait/trace"
)

const rulesPath = "/v1/rules"

func rulesCommand() *cli.Command {
	return &cli.Command{
		Name:  "rules",
		Usage: "print or change the rules of a running wirewait",
		UsageText: "wirewait rules [--plain] [--json] [--admin HOST:PORT]\nwirewait rules set FILE\nwirewait rules add [--first] FILE\n" +
			"wirewait rules change NAME '{\"limit\": {\"probability\": \"1%\"}}'\nwirewait rules remove NAME",
		Description: "A file has a list of rules or one, in YAML or JSON; - is standard input. A set is put\n" +
			"in force as a whole or not at all. docs/rules.md says what rules can do.",
		Flags: clientFlags(
			&cli.BoolFlag{Name: "plain", Usage: "the rules alone, as rules set reads them"},
			jsonFlag(),
		),
		Action: func(c *cli.Context) error {
			return withServer(c, 0, func(server *client) error {
				var all admin.Rules
				if err := server.get(c.Context, rulesPath, &all); err != nil {
					return err
				}
				if c.Bool("plain") {
					return printPlain(c.App.Writer, all.Rules)
				}
				return showRules(c, &all)
			})
		},
		Subcommands: []*cli.Command{
			rulesFromFile("set", "put the rules of a file in the place of those there are", "PUT"),
			rulesFromFile("add", "add the rules of a file", "POST", &cli.BoolFlag{Name: "first", Usage: "before those there are, so that they win"}),
			{
				Name:      "change",
				Usage:     "change a part of a rule",
				UsageText: "wirewait rules change [--admin HOST:PORT] NAME '{\"limit\": {\"probability\": \"1%\"}}'",
				Flags:     clientFlags(jsonFlag()),
				Action:    changeRule,
			},
			{
				Name:      "remove",
				Usage:     "take a rule away",
				UsageText: "wirewait rules remove [--admin HOST:PORT] NAME",
				Flags:     clientFlags(jsonFlag()),
				Action: func(c *cli.Context) error {
					return sendRules(c, 1, "DELETE", rulesPath+"/"+url.PathEscape(c.Args().First()), nil)
				},
			},
		},
	}
}

func rulesFromFile(name, usage, method string, flags ...cli.Flag) *cli.Command {
	return &cli.Command{
		Name:      name,
		Usage:     usage,
		UsageText: "wirewait rules " + name + " [--admin HOST:PORT] FILE",
		Flags:     clientFlags(append(flags, jsonFlag())...),
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return &usageError{commandName(c), []string{"say which file has the rules; - is standard input"}}
			}
			text, err := readFile(c, c.Args().First())
			if err != nil {
				return err
			}
			path := rulesPath
			if c.Bool("first") {
				path += "?at=start"
			}
			return sendRules(c, 1, method, path, text)
		},
	}
}

// maxSent is what /v1 takes.
const maxSent = 1 << 20

// readFile reads what is to be sent: a file, or with - standard input.
func readFile(c *cli.Context, path string) ([]byte, error) {
	in := c.App.Reader
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", commandName(c), err)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxSent+1))
	if err == nil && len(text) > maxSent {
		err = errors.New("it's larger than 1 MiB: is it the right file?")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", commandName(c), path, err)
	}
	return text, nil
}

// sendRules sends a change and prints the set that there is then.
func sendRules(c *cli.Context, arguments int, method, path string, text []byte) error {
	if c.NArg() < arguments {
		return &usageError{commandName(c), []string{"say which: a name that wirewait rules shows"}}
	}
	return withServer(c, arguments, func(server *client) error {
		var all admin.Rules
		if err := server.do(c.Context, method, path, bytes.NewReader(text), &all); err != nil {
			return err
		}
		return showRules(c, &all)
	})
}

func changeRule(c *cli.Context) error {
	if c.NArg() < 2 {
		return &usageError{commandName(c), []string{`say which rule and what changes: lost-acks '{"limit": {"probability": "1%"}}'`}}
	}
	return withServer(c, 2, func(server *client) error {
		path := rulesPath + "/" + url.PathEscape(c.Args().First())
		var one admin.Rule
		if err := server.do(c.Context, "PATCH", path, strings.NewReader(c.Args().Get(1)), &one); err != nil {
			return err
		}
		return showRules(c, &admin.Rules{Rules: []admin.Rule{one}})
	})
}

func showRules(c *cli.Context, all *admin.Rules) error {
	if c.Bool("json") {
		return printJSON(c.App.Writer, all)
	}
	_, err := io.WriteString(c.App.Writer, ruleTable(all.Rules))
	return err
}

// printPlain is a list that can be edited and set.
func printPlain(w io.Writer, rules []admin.Rule) error {
	list := make([]json.RawMessage, len(rules))
	for i, r := range rules {
		list[i] = r.Rule
	}
	return printJSON(w, list)
}

func ruleTable(rules []admin.Rule) string {
	if len(rules) == 0 {
		return "no rules\n"
	}
	cells := [][]string{{"name", "effect", "when", "with", "limit", "matches", "hits", "not applicable", "connections"}}
	for _, r := range rules {
		var text struct {
			Effect            string
			When, With, Limit json.RawMessage
		}
		_ = json.Unmarshal(r.Rule, &text) // what isn't there is shown as that
		name := printable(r.Name)
		if r.Over {
			name += " (over)"
		}
		cells = append(cells, []string{
			name, text.Effect, brief(text.When), brief(text.With), brief(text.Limit),
			strconv.FormatUint(r.Matches, 10), strconv.FormatUint(r.Hits, 10), reasons(r.Links), strconv.Itoa(r.Connections),
		})
	}
	return trace.Align(cells, 5)
}

// brief is an object on few columns: {link: [a], statement: [COMMIT]}.
func brief(object json.RawMessage) string {
	if len(object) == 0 {
		return "-"
	}
	var compact bytes.Buffer
	if json.Compact(&compact, object) != nil {
		return "?"
	}
	return printable(strings.NewReplacer(`":`, ": ", `"`, "", ",", ", ").Replace(compact.String()))
}

// reasons are why a rule could not apply, on all links together.
func reasons(links []admin.RuleLink) string {
	sums := map[string]uint64{}
	for _, l := range links {
		for reason, n := range l.NotApplicable {
			sums[reason] += n
		}
	}
	var list []string
	for _, reason := range slices.Sorted(maps.Keys(sums)) {
		list = append(list, fmt.Sprintf("%d %s", sums[reason], reason))
	}
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, ", ")
}
