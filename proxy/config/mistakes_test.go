package config

import (
	"errors"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// variables are those that are set in tests.
func variables(name string) (string, bool) {
	v, ok := map[string]string{"MONGO": "mongo-a:27017", "PORT": "27101", "EMPTY": "", "SECRET": "hunter2: {", "YAML": "{rtt: 1ms}"}[name]
	return v, ok
}

// TestMistakes has what people write and what they are told: testdata/mistakes.txt
// holds a title (==), a file, and behind -- all that is said of it.
func TestMistakes(t *testing.T) {
	const golden = "testdata/mistakes.txt"
	b, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	place := regexp.MustCompile(`^wirewait\.yaml(:[1-9]\d*:[1-9]\d*)?: `)
	var rewritten strings.Builder
	cases := strings.Split("\n"+string(b), "\n== ")[1:]
	if len(cases) < 60 {
		t.Errorf("only %d mistakes", len(cases))
	}
	for _, c := range cases {
		title, rest, _ := strings.Cut(c, "\n")
		text, want, _ := strings.Cut(rest, "\n--\n")
		t.Run(title, func(t *testing.T) {
			_, err := Parse("wirewait.yaml", []byte(text+"\n"), variables)
			if err == nil {
				t.Fatal("no problem was found")
			}
			var ps Problems
			if !errors.As(err, &ps) {
				t.Fatalf("the error is %T", err)
			}
			got := err.Error()
			for line := range strings.Lines(got) {
				if !place.MatchString(line) {
					t.Errorf("no place in %q", line)
				}
			}
			if strings.Contains(got, "hunter2") {
				t.Errorf("a variable's value is shown: %s", got)
			}
			if got != strings.TrimRight(want, "\n") && !*update {
				t.Errorf("it says (go test -update rewrites it):\n%s\nwant:\n%s", got, want)
			}
			rewritten.WriteString("== " + title + "\n" + text + "\n--\n" + got + "\n\n")
		})
	}
	if *update {
		if err := os.WriteFile(golden, []byte(rewritten.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
