package main

import (
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/wirewait/wirewait/proxy/config"
)

// runFile is the configuration that wirewait runs with.
type runFile struct {
	path string
	// begun is what the file said when wirewait started, and now what it said
	// when it was last read without a problem.
	begun, now *config.File
}

// besideFile are the flags that may stand beside a file. All others describe a
// link, and a file has all links.
var besideFile = []string{"seed", "statement-text", "children", "admin", "admin-token-file", "drain", "driver", "log-level", "help"}

// parseRunFile is parseRun with a file. A flag that the file contradicts is
// refused: whichever won, somebody would expect the other.
func parseRunFile(c *cli.Context) (runOptions, error) {
	r := &reader{Context: c}
	path := r.onlyFile()
	for _, f := range c.Command.Flags {
		if name := f.Names()[0]; c.IsSet(name) && !slices.Contains(besideFile, name) {
			r.problem("--%s is for a run without a file: say it for the links in %s", name, path)
		}
	}
	o := r.processOptions()
	if err := r.err(); err != nil {
		return o, err
	}
	f, err := config.Load(path, os.LookupEnv)
	if err != nil {
		return o, err
	}
	if f.Seed != nil {
		r.notBoth("seed", path)
		o.seed = *f.Seed
	}
	if f.Admin != "" {
		r.notBoth("admin", path)
		if o.admin = f.Admin; f.Admin == "off" {
			o.admin = ""
		}
	}
	o.links, o.rules, o.file = f.ProxyLinks(), f.Rules, &runFile{path: path, begun: f, now: f}
	return o, r.err()
}

func (r *reader) notBoth(flag, path string) {
	if r.IsSet(flag) {
		r.problem("--%s is said in %s as well: leave one out", flag, path)
	}
}

// onlyFile is the one argument.
func (r *reader) onlyFile() string {
	switch r.NArg() {
	case 0:
		r.problem("say which file: %s wirewait.yaml", commandName(r.Context))
	case 1:
	default:
		r.problem("unknown argument %q: one file at a time", r.Args().Get(1))
	}
	return r.Args().First()
}

// loadFile is for commands that look at a file only.
func loadFile(c *cli.Context) (string, *config.File, error) {
	r := &reader{Context: c}
	path := r.onlyFile()
	if err := r.err(); err != nil {
		return path, nil, err
	}
	f, err := config.Load(path, os.LookupEnv)
	return path, f, err
}
