package lab

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

// binaries are one installation of PostgreSQL's server programs.
type binaries struct {
	dir     string
	version string // "15.20"
}

func (b binaries) path(program string) string { return filepath.Join(b.dir, program) }

// findPostgres picks the installation that was asked for, else the newest.
func findPostgres(ctx context.Context, dir string) (binaries, error) {
	source := "the option"
	if dir == "" {
		dir, source = os.Getenv(PostgresBinEnv), PostgresBinEnv
	}
	if dir != "" {
		b, err := inspectPostgres(ctx, dir)
		if ctx.Err() != nil {
			return binaries{}, ctx.Err()
		}
		if err != nil {
			return binaries{}, fmt.Errorf("%w in %s (given by %s): %w", ErrNoPostgres, dir, source, err)
		}
		return b, nil
	}
	var best binaries
	var broken error
	for _, d := range postgresDirs() {
		b, err := inspectPostgres(ctx, d)
		if err != nil {
			broken = err
		} else if newer(b.version, best.version) {
			best = b
		}
	}
	if err := ctx.Err(); err != nil {
		return binaries{}, err
	}
	if best.dir != "" {
		return best, nil
	}
	err := fmt.Errorf("%w on PATH or under /usr/lib/postgresql/*/bin: %s, "+
		"or set %s to the directory of initdb and postgres", ErrNoPostgres, installHint(), PostgresBinEnv)
	if broken != nil {
		err = fmt.Errorf("%w (what was found doesn't run: %w)", err, broken)
	}
	return binaries{}, err
}

func installHint() string {
	if runtime.GOOS == "darwin" {
		return "brew install postgresql@17"
	}
	return "apt-get install postgresql (Debian, Ubuntu) or dnf install postgresql-server (Fedora)"
}

// postgresDirs are the places to look, each an absolute directory that has
// both programs. Debian keeps them off PATH, one directory per major version.
func postgresDirs() []string {
	candidates := filepath.SplitList(os.Getenv("PATH"))
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",         // Debian, Ubuntu
		"/usr/pgsql-*/bin",                  // the PostgreSQL project's RPMs
		"/opt/homebrew/opt/postgresql*/bin", // Homebrew
		"/usr/local/opt/postgresql*/bin",
	} {
		found, _ := filepath.Glob(pattern)
		candidates = append(candidates, found...)
	}
	var dirs []string
	for _, d := range candidates {
		if filepath.IsAbs(d) && isFile(filepath.Join(d, "initdb")) && isFile(filepath.Join(d, "postgres")) {
			dirs = append(dirs, d)
		}
	}
	return dirs
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) ([0-9]+(?:\.[0-9]+)?)`)

// inspectPostgres asks the server program for its version, which also tells
// whether it runs on this machine at all.
func inspectPostgres(ctx context.Context, dir string) (binaries, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return binaries{}, err
	}
	b := binaries{dir: dir}
	// PATH may lead to links, beside which the other programs aren't.
	if real, err := filepath.EvalSymlinks(b.path("postgres")); err == nil && isFile(filepath.Join(filepath.Dir(real), "initdb")) {
		b.dir = filepath.Dir(real)
	}
	if !isFile(b.path("initdb")) {
		return binaries{}, fmt.Errorf("%s is missing", b.path("initdb"))
	}
	out, err := exec.CommandContext(ctx, b.path("postgres"), "--version").Output()
	if err != nil {
		return binaries{}, fmt.Errorf("%s --version: %w", b.path("postgres"), err)
	}
	found := versionPattern.FindStringSubmatch(string(out))
	if found == nil {
		return binaries{}, fmt.Errorf("%s --version says %q", b.path("postgres"), strings.TrimSpace(string(out)))
	}
	b.version = found[1]
	return b, nil
}

// newer compares versions by number: 9.6 < 15.4 < 15.20. Empty is oldest.
func newer(a, b string) bool {
	aMajor, aMinor := splitVersion(a)
	bMajor, bMinor := splitVersion(b)
	return cmp.Or(cmp.Compare(aMajor, bMajor), cmp.Compare(aMinor, bMinor)) > 0
}

func splitVersion(v string) (major, minor int) {
	left, right, _ := strings.Cut(v, ".")
	major, _ = strconv.Atoi(left)
	minor, _ = strconv.Atoi(right)
	return major, minor
}
