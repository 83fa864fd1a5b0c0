package main

import (
	"os"
	"strings"

	"github.com/urfave/cli/v2"
)

// tokenVariable is for those who would have to write a file otherwise. A flag
// with the token itself would show it to everybody who lists processes.
const tokenVariable = "WIREWAIT_ADMIN_TOKEN"

func tokenFlag() cli.Flag {
	return &cli.StringFlag{Name: "admin-token-file", Usage: "`FILE` with the token that /v1 wants; or set " + tokenVariable}
}

// maxToken is far above any token, and below what a wrong file may be.
const maxToken = 4096

// token is what the file or the variable holds; empty: there is none.
func (r *reader) token() string {
	path, value := r.String("admin-token-file"), os.Getenv(tokenVariable)
	if path == "" {
		return r.checkToken(value, tokenVariable)
	}
	if value != "" {
		r.problem("--admin-token-file is given, and %s is set: leave one out", tokenVariable)
		return ""
	}
	b, err := os.ReadFile(path)
	if err != nil {
		r.problem("--admin-token-file: %v", err)
		return ""
	}
	token := strings.TrimSpace(string(b))
	if token == "" {
		r.problem("--admin-token-file %s is empty: write a token into it, such as the output of: openssl rand -hex 32", path)
	}
	return r.checkToken(token, "--admin-token-file "+path)
}

// checkToken refuses what no header can carry. The token itself is not shown.
func (r *reader) checkToken(token, what string) string {
	printable := strings.IndexFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) < 0
	if len(token) > maxToken || !printable {
		r.problem("%s holds no token: write one line without spaces, such as the output of: openssl rand -hex 32", what)
		return ""
	}
	return token
}
