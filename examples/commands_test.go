package examples_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// commandLine is a wirewait command line that some file tells people to use.
type commandLine struct {
	where string
	words []string // from the command's name on
}

// wirewait builds the command once for all tests.
var wirewait = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "wirewait-examples")
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "wirewait")
	out, err := exec.Command("go", "build", "-o", binary, "../cmd/wirewait").CombinedOutput()
	if err != nil {
		os.Stderr.Write(out)
	}
	return binary, err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if binary, err := wirewait(); err == nil {
		os.RemoveAll(filepath.Dir(binary))
	}
	if studiesDir != "" {
		os.RemoveAll(studiesDir)
	}
	os.Exit(code)
}

// ask runs wirewait with words that make it say something and end.
func ask(t *testing.T, words ...string) string {
	t.Helper()
	binary, err := wirewait()
	if err != nil {
		t.Fatalf("build wirewait: %v", err)
	}
	out, _ := exec.Command(binary, words...).CombinedOutput() // usage errors exit 2
	return string(out)
}

// TestCommandLines: every command line that documents and examples show is
// one that wirewait takes.
func TestCommandLines(t *testing.T) {
	documents, _ := filepath.Glob("../*.md")
	for _, pattern := range []string{"../docs/*.md", "*.md", "*/*.md"} {
		more, _ := filepath.Glob(pattern)
		documents = append(documents, more...)
	}
	found, runs := map[string]int{}, 0
	for _, document := range documents {
		for _, line := range inMarkdown(t, document) {
			found[document]++
			check(t, line, &runs)
		}
	}
	for _, line := range inManifests(t) {
		check(t, line, &runs)
	}
	for _, document := range []string{"../README.md", "../docs/running.md", "../docs/install.md", "docker/README.md", "postgres-traceparent/README.md"} {
		if found[document] == 0 {
			t.Errorf("no command line found in %s: this test looks at the wrong place", document)
		}
	}
	if runs < 8 {
		t.Errorf("only %d lines were tried in full", runs)
	}
}

// check looks up every flag, and lets `run` read a line that has no
// placeholders: it checks all of it before it complains of anything, so with
// one bad flag added nothing else may be complained of.
func check(t *testing.T, line commandLine, runs *int) {
	t.Helper()
	command := line.words[0]
	help := ask(t, command, "--help")
	for _, word := range line.words[1:] {
		name, _, _ := strings.Cut(strings.Trim(word, "[]"), "=")
		if strings.HasPrefix(name, "-") && len(name) > 1 && !strings.Contains(help, " "+name+" ") && !strings.Contains(help, " "+name+"\n") {
			t.Errorf("%s: %s has no %s: %q", line.where, command, name, line.words)
		}
	}
	synopsis := slices.ContainsFunc(line.words, func(w string) bool {
		return w == "..." || strings.HasPrefix(w, "[") || w == "HOST:PORT" || w == "FILE" || strings.HasSuffix(w, ".yaml")
	})
	if command != "run" || synopsis {
		return
	}
	*runs++
	const want = `wirewait run: --log-level "nonsense": use debug, info, warn or error` + "\n"
	if got := ask(t, append(slices.Clone(line.words), "--log-level", "nonsense")...); got != want {
		t.Errorf("%s: %q: %s", line.where, line.words, got)
	}
}

// begins finds a command line's words behind whatever runs it: a prompt, go
// run, an image's name.
var begins = regexp.MustCompile(`(?:^|[ /])wirewait ((?:run|check|links|demo|decode|version|completion)\b.*)$`)

// inMarkdown finds command lines in fenced blocks; a backslash continues one.
func inMarkdown(t *testing.T, path string) (lines []commandLine) {
	t.Helper()
	text := strings.ReplaceAll(read(t, path), "\\\n", " ")
	for i, block := range strings.Split(text, "\n```") {
		if i%2 == 0 {
			continue // prose
		}
		for line := range strings.Lines(block) {
			if m := begins.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				lines = append(lines, commandLine{path, shellWords(m[1])})
			}
		}
	}
	return lines
}

// shellWords splits a line as a shell would, up to the first comment, pipe,
// redirection or & and up to a wide gap, behind which a person is told what
// the line does.
func shellWords(line string) (words []string) {
	line, _, _ = strings.Cut(line, "   ")
	word, quote, quoted := "", rune(0), false
	for _, c := range line + " " {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word += string(c)
		case c == '"' || c == '\'':
			quote, quoted = c, true
		case strings.ContainsRune("#|<>&;)", c) && (word == "" || word == "2"):
			return words
		case c == ' ' || c == ';' || c == ')':
			if word != "" || quoted {
				words, word, quoted = append(words, word), "", false
			}
			if c != ' ' {
				return words
			}
		default:
			word += string(c)
		}
	}
	return words
}

// inManifests finds the command lines of the unit, of the compose file and of
// the sidecar.
func inManifests(t *testing.T) []commandLine {
	t.Helper()
	unit := strings.Fields(readUnit(t)["ExecStart"])
	return []commandLine{
		{"systemd/wirewait.service", unit[1:]},
		{"compose/compose.yaml", texts(t, readYAMLFile(t, "compose/compose.yaml"), "services", "wirewait", "command")},
		{"kubernetes/sidecar.yaml", texts(t, sidecar(t), "args")},
	}
}

func TestShellWords(t *testing.T) {
	got := shellWords(`run --upstream "a b:1" --rtt 80ms 2>log | tee x # more`)
	if want := []string{"run", "--upstream", "a b:1", "--rtt", "80ms"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")))
}
