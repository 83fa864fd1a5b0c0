package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wirewait/wirewait/proxy/admin"
)

// client asks a running wirewait's /v1.
type client struct {
	address, token string
	http           http.Client
}

// askTime bounds a request: nothing behind it waits for a connection.
const askTime = 10 * time.Second

func clientFlags(more ...cli.Flag) []cli.Flag {
	return append(more,
		&cli.StringFlag{Name: "admin", Value: defaultAdmin, Usage: "`HOST:PORT` of the wirewait to ask"},
		tokenFlag(),
	)
}

func jsonFlag() cli.Flag {
	return &cli.BoolFlag{Name: "json", Usage: "print what /v1 answers, for programs"}
}

// newClient reads clientFlags.
func (r *reader) client() *client {
	c := &client{address: r.String("admin"), token: r.token(), http: http.Client{Timeout: askTime}}
	if c.address == "off" {
		r.problem("--admin off: say where wirewait's admin server listens, such as --admin %s", defaultAdmin)
		return c
	}
	c.address = r.admin()
	return c
}

// get asks and decodes the answer into to.
func (c *client) get(ctx context.Context, path string, to any) error {
	return c.do(ctx, http.MethodGet, path, nil, to)
}

// do sends body, which may be nil, and decodes a success into to, unless that is
// nil. A refusal is an error with the server's own sentences.
func (c *client) do(ctx context.Context, method, path string, body io.Reader, to any) error {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+c.address+path, body)
	if err != nil {
		return err
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return c.unreachable(ctx, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("the answer of %s broke off: %w", c.address, err)
	}
	if answer.StatusCode != http.StatusOK {
		return c.refused(answer.Status, text)
	}
	if to == nil {
		return nil
	}
	if err := json.Unmarshal(text, to); err != nil {
		return fmt.Errorf("what answers at %s is not wirewait, or another version of it: %w", c.address, err)
	}
	return nil
}

func (c *client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var reason *url.Error
	if errors.As(err, &reason) {
		err = reason.Err
	}
	return fmt.Errorf("no wirewait answers at %s: start one (wirewait run), or say where it is with --admin: %w", c.address, err)
}

func (c *client) refused(status string, text []byte) error {
	var r admin.Refusal
	if json.Unmarshal(text, &r) == nil && len(r.Problems) > 0 {
		return errors.New(strings.Join(r.Problems, "\n"))
	}
	return fmt.Errorf("%s answered %s: %s", c.address, status, strings.TrimSpace(string(text)))
}

// withServer has a command ask something: its arguments are refused unless they are
// few enough.
func withServer(c *cli.Context, most int, f func(*client) error) error {
	r := &reader{Context: c}
	server := r.client()
	if c.NArg() > most {
		r.problem("unknown argument %q", c.Args().Get(most))
	}
	if err := r.err(); err != nil {
		return err
	}
	if err := f(server); err != nil {
		if usage := (*usageError)(nil); errors.As(err, &usage) {
			return err
		}
		return fmt.Errorf("%s: %w", commandName(c), err)
	}
	return nil
}

// printJSON prints v as /v1 does.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
