package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestComplete(t *testing.T) {
	tests := []struct {
		words []string
		want  string // "..." stands for more
	}{
		{nil, "run check links report assert connections rules scenario toxiproxy demo lab decode version completion help --help"},
		{[]string{"de"}, "demo decode"},
		{[]string{"-"}, "--help"},
		{[]string{"nonsense", ""}, ""},
		{[]string{"help", "ve"}, "version"},
		{[]string{"completion", ""}, "bash zsh"},
		{[]string{"version", ""}, "--help"},
		{[]string{"check", ""}, ""}, // a file's name
		{[]string{"links", "-"}, "--help"},
		{[]string{"run", ""}, "--listen --upstream ..."},
		{[]string{"run", "--up"}, "--upstream --upstream-tls --upstream-ca --upstream-server-name --upstream-cert --upstream-key --upstream-tls-direct"},
		{[]string{"run", "--upstream", "db:5432", "--up"}, "--upstream-tls --upstream-ca --upstream-server-name --upstream-cert --upstream-key --upstream-tls-direct"},
		{[]string{"run", "--upstream=db:5432", "--upstream-t"}, "--upstream-tls --upstream-tls-direct"},
		{[]string{"run", "--statement-text", "--tl"}, "--tls --tls-cert --tls-key --tls-client-ca"},
		{[]string{"run", "--tls", ""}, "pass decline terminate auto"},
		{[]string{"run", "-tls", "d"}, "decline"},
		{[]string{"run", "--tls=d"}, "--tls=decline"},
		{[]string{"run", "--tls", "="}, "pass decline terminate auto"},
		{[]string{"run", "--tls", "=", "t"}, "terminate"},
		{[]string{"run", "--tls", "--"}, ""}, // a word belongs here
		{[]string{"run", "--tls-cert", ""}, ""},
		{[]string{"run", "--connect=f"}, "--connect=false"},
		{[]string{"run", "--connect", "--see"}, "--seed"}, // none belongs here
		{[]string{"decode", "--protocol", ""}, "mongodb postgres"},
		{[]string{"connections", ""}, "cut --link --json --admin --admin-token-file --help"},
		{[]string{"connections", "c"}, "cut"},
		{[]string{"rules", ""}, "set add change remove --plain --json --admin --admin-token-file --help"},
		{[]string{"rules", "set", ""}, ""}, // a file's name
		{[]string{"rules", "add", "--f"}, "--first"},
		{[]string{"scenario", "st"}, "start stop"},
		{[]string{"scenario", "start", ""}, ""}, // a file's name
		{[]string{"scenario", "start", "--w"}, "--wait"},
		{[]string{"connections", "--link", ""}, ""},
		{[]string{"connections", "cut", "--admin-"}, "--admin-token-file"},
		{[]string{"decode", "--to-server", "a.bin", "--t"}, "--to-client --text"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%q", tt.words), func(t *testing.T) {
			var out, errs bytes.Buffer
			code := run(t.Context(), append([]string{"wirewait", completeCommand}, tt.words...), nil, &out, &errs)
			got := strings.Join(strings.Fields(out.String()), " ")
			if want, more := strings.CutSuffix(tt.want, "..."); code != 0 || errs.Len() > 0 || got != want && !(more && strings.HasPrefix(got, want)) {
				t.Errorf("exit %d, %q %s; want %q", code, got, errs.String(), tt.want)
			}
		})
	}
}

// TestCompletion_OffersWhatFlagsKnow: a flag's complaint about a bad word
// names those that completion offers.
func TestCompletion_OffersWhatFlagsKnow(t *testing.T) {
	needs := map[string][]string{"run": {"--upstream", "db:5432"}, "demo": nil, "decode": {"--to-server", "-"}}
	for command, flags := range flagWords {
		for flag, words := range flags {
			if flag == "admin" || flag == "connect" {
				continue // an address or off; true or false
			}
			args := append([]string{"wirewait", command, "--" + flag, "nonsense"}, needs[command]...)
			var out, errs bytes.Buffer
			code := run(t.Context(), args, strings.NewReader(""), &out, &errs)
			want := strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
			if code != exitUsage || !strings.Contains(errs.String(), want) {
				t.Errorf("%v: exit %d, %q; completion offers %s", args, code, errs.String(), want)
			}
		}
	}
}

func TestCompletion_FlagsExist(t *testing.T) {
	commands := newApp(nil, nil, nil).Commands
	for name, flags := range flagWords {
		for flag := range flags {
			found := false
			for _, c := range commands {
				for _, f := range c.Flags {
					found = found || c.Name == name && f.Names()[0] == flag
				}
			}
			if !found {
				t.Errorf("completion knows words of %s --%s, which doesn't exist", name, flag)
			}
		}
	}
}

func TestCompletion_SaysWhichShells(t *testing.T) {
	for _, args := range []string{"completion", "completion fish", "completion bash zsh"} {
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"wirewait"}, strings.Fields(args)...), nil, &out, &errs)
		if code != exitUsage || errs.String() != "wirewait completion: say which shell: bash or zsh\n" || out.Len() > 0 {
			t.Errorf("%s: exit %d, %q, %q", args, code, errs.String(), out.String())
		}
	}
}

// TestCompletion_Bash lets bash itself run the script against this command.
func TestCompletion_Bash(t *testing.T) {
	bash, dir := shell(t, "bash"), t.TempDir()
	evaluated := filepath.Join(dir, "evaluated")
	tests := []struct{ words, want string }{
		{"wirewait run --upstream-t", "--upstream-tls --upstream-tls-direct"},
		{"wirewait run --tls ''", "pass decline terminate auto"},
		{"wirewait run --upstream 127.0.0.1 : 5432 --tls = de", "decline"},
		{"wirewait run '$(touch " + evaluated + ")' --see", "--seed"},
	}
	for _, tt := range tests {
		got := ask(t, bash, "set -u; source <(wirewait completion bash); COMP_WORDS=("+tt.words+`)
			COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _wirewait wirewait; echo "${COMPREPLY[@]}"; complete -p wirewait`)
		if want := tt.want + "\ncomplete -o default -F _wirewait wirewait\n"; got != want {
			t.Errorf("%s: %q, want %q", tt.words, got, want)
		}
	}
	if _, err := os.Stat(evaluated); err == nil {
		t.Error("a word of the command line was evaluated")
	}
}

// TestCompletion_Zsh does so with zsh, whose completion functions can be
// called only while it completes: compadd is a stand-in.
func TestCompletion_Zsh(t *testing.T) {
	zsh := shell(t, "zsh")
	tests := []struct{ words, want string }{
		{"wirewait run --upstream-t", "-- --upstream-tls --upstream-tls-direct"},
		{"wirewait run --tls ''", "-- pass decline terminate auto"},
		{"wirewait run --tls=de", "-- --tls=decline"},
		{"wirewait run --tls-cert ''", "files"},
	}
	for _, tt := range tests {
		got := ask(t, zsh, `compdef() { print -r compdef "$@" }; compadd() { print -r -- "$@" }; _files() { print files }
			source <(wirewait completion zsh); words=(`+tt.words+`); CURRENT=$#words; _wirewait`)
		if want := "compdef _wirewait wirewait\n" + tt.want + "\n"; got != want {
			t.Errorf("%s: %q, want %q", tt.words, got, want)
		}
	}
}

func shell(t *testing.T, name string) string {
	path, err := exec.LookPath(name)
	if err != nil && os.Getenv("WIREWAIT_CI") == "1" {
		t.Fatal(err)
	} else if err != nil {
		t.Skipf("no %s on PATH: install it to test its completion", name)
	}
	return path
}

// ask runs a script with this test binary as wirewait.
func ask(t *testing.T, shell, script string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(self, filepath.Join(bin, "wirewait")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(shell, "-c", script)
	if filepath.Base(shell) == "zsh" {
		cmd.Args = slices.Insert(cmd.Args, 1, "-f") // without the user's files
	}
	cmd.Env = append(os.Environ(), asWirewait+"=1", "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}
