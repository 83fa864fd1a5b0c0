package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// completeCommand is what the shells' scripts ask. The library's own
// completion isn't used: its scripts evaluate the words of an unfinished
// command line, and it knows no flag's values.
const completeCommand = "__complete"

// flagWords are the words that a flag knows, by command and flag.
var flagWords = map[string]map[string][]string{
	"run": {
		"protocol":     {"mongodb", "postgres", "tcp"},
		"tls":          {"pass", "decline", "terminate", "auto"},
		"upstream-tls": tlsModes,
		"children":     {"auto", "always", "never"},
		"log-level":    {"debug", "info", "warn", "error"},
		"driver":       {"auto", "epoll", "net"},
		"admin":        {defaultAdmin, "off"},
		"connect":      {"true", "false"}, // only as --connect=false
	},
	"decode": {"protocol": {"mongodb", "postgres"}},
}

// addCompletion gives app the commands that let a shell complete its words.
func addCompletion(app *cli.App) {
	app.Commands = append(app.Commands,
		&cli.Command{
			Name:      "completion",
			Usage:     "print what makes bash or zsh complete commands, flags and their words",
			UsageText: "wirewait completion bash|zsh\n\nsource <(wirewait completion bash)",
			Action:    printCompletionScript,
		},
		&cli.Command{
			Name:            completeCommand,
			Usage:           "print the words that may stand in place of the last argument",
			Hidden:          true,
			SkipFlagParsing: true,
			// The arguments are another command's, whatever they look like.
			Before: func(*cli.Context) error { return nil },
			Action: func(c *cli.Context) error {
				for _, word := range complete(c.App.Commands, c.Args().Slice()) {
					fmt.Fprintln(c.App.Writer, word)
				}
				return nil
			},
		})
}

func printCompletionScript(c *cli.Context) error {
	script := completionScripts[c.Args().First()]
	if c.NArg() != 1 || script == "" {
		return &usageError{commandName(c), []string{"say which shell: bash or zsh"}}
	}
	_, err := fmt.Fprint(c.App.Writer, script)
	return err
}

// complete returns what may stand in place of the last of words, which follow
// the program's name. Nothing means that a shell may offer file names.
func complete(commands []*cli.Command, words []string) []string {
	if len(words) == 0 {
		words = []string{""}
	}
	last := len(words) - 1
	current := words[last]
	if last == 0 {
		return startingWith(current, append(commandNames(commands), "--help"))
	}
	switch i := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(words[0]) }); {
	case i < 0:
		return nil
	case words[0] == "help":
		return startingWith(current, commandNames(commands))
	case (words[0] == "check" || words[0] == "links") && !strings.HasPrefix(current, "-"):
		return nil // a file's name belongs here
	case words[0] == "completion":
		return startingWith(current, []string{"bash", "zsh"})
	case len(commands[i].Subcommands) > 0:
		return completeSubcommand(commands[i], words[1:])
	default:
		return completeFlag(commands[i], words[1:last], current)
	}
}

// completeSubcommand completes what stands behind a command that has commands
// of its own.
func completeSubcommand(command *cli.Command, words []string) []string {
	last := len(words) - 1
	if i := slices.IndexFunc(command.Subcommands, func(c *cli.Command) bool { return c.HasName(words[0]) }); i >= 0 && last > 0 {
		if takesFile(command.Subcommands[i]) && !strings.HasPrefix(words[last], "-") {
			return nil
		}
		return completeFlag(command.Subcommands[i], words[1:last], words[last])
	}
	found := completeFlag(command, words[:last], words[last])
	if last == 0 {
		found = append(startingWith(words[0], commandNames(command.Subcommands)), found...)
	}
	return found
}

// takesFile: a file's name belongs behind the command.
func takesFile(c *cli.Command) bool { return strings.HasSuffix(c.UsageText, "FILE") }

// completeFlag completes a flag's word if current stands where one belongs,
// else a flag that isn't among before.
func completeFlag(command *cli.Command, before []string, current string) []string {
	words := flagWords[command.Name]
	// --flag=word: zsh gives it as one word, bash as three.
	if flag, start, ok := strings.Cut(current, "="); ok && isFlag(flag) {
		found := startingWith(start, words[strings.TrimLeft(flag, "-")])
		for i := range found {
			found[i] = flag + "=" + found[i]
		}
		return found
	}
	if current == "=" {
		before, current = append(slices.Clone(before), current), ""
	}
	if n := len(before); n >= 2 && before[n-1] == "=" && isFlag(before[n-2]) {
		return startingWith(current, words[strings.TrimLeft(before[n-2], "-")])
	}
	if n := len(before); n >= 1 && takesWord(command, before[n-1]) {
		return startingWith(current, words[strings.TrimLeft(before[n-1], "-")])
	}
	return startingWith(current, unusedFlags(command, before))
}

func isFlag(word string) bool { return len(word) > 1 && word[0] == '-' }

func takesWord(command *cli.Command, word string) bool {
	if !isFlag(word) {
		return false
	}
	for _, f := range command.Flags {
		if d, ok := f.(cli.DocGenerationFlag); ok && slices.Contains(f.Names(), strings.TrimLeft(word, "-")) {
			return d.TakesValue()
		}
	}
	return false
}

func unusedFlags(command *cli.Command, before []string) []string {
	var flags []string
	for _, f := range command.Flags {
		name := "--" + f.Names()[0]
		used := func(w string) bool { return w == name || strings.HasPrefix(w, name+"=") }
		if name != "--help" && !slices.ContainsFunc(before, used) {
			flags = append(flags, name)
		}
	}
	return append(flags, "--help")
}

func commandNames(commands []*cli.Command) (names []string) {
	for _, c := range commands {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	return names
}

func startingWith(start string, words []string) (found []string) {
	for _, w := range words {
		if strings.HasPrefix(w, start) {
			found = append(found, w)
		}
	}
	return found
}
