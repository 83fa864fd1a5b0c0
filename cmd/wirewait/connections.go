package main

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wirewait/wirewait/proxy/admin"
	"github.com/wirewait/wirewait/trace"
)

func connectionsCommand() *cli.Command {
	return &cli.Command{
		Name:      "connections",
		Usage:     "print the connections of a running wirewait, or cut one",
		UsageText: "wirewait connections [--link NAME] [--json] [--admin HOST:PORT]\nwirewait connections cut [--admin HOST:PORT] ID",
		Flags: clientFlags(
			&cli.StringFlag{Name: "link", Usage: "those of one link (`NAME`)"},
			jsonFlag(),
		),
		Action: func(c *cli.Context) error {
			return withServer(c, 0, func(server *client) error {
				var all admin.Connections
				path := "/v1/connections"
				if link := c.String("link"); link != "" {
					path += "?link=" + url.QueryEscape(link)
				}
				if err := server.get(c.Context, path, &all); err != nil {
					return err
				}
				if c.Bool("json") {
					return printJSON(c.App.Writer, all)
				}
				_, err := fmt.Fprint(c.App.Writer, connectionTable(all.Connections, time.Now()))
				return err
			})
		},
		Subcommands: []*cli.Command{{
			Name:      "cut",
			Usage:     "end a connection at once, on both sides",
			UsageText: "wirewait connections cut [--admin HOST:PORT] ID",
			Flags:     clientFlags(),
			Action: func(c *cli.Context) error {
				id, err := strconv.ParseUint(c.Args().First(), 10, 64)
				if err != nil {
					return &usageError{commandName(c), []string{"say which: the id that wirewait connections shows"}}
				}
				return withServer(c, 1, func(server *client) error {
					var cut admin.Connection
					if err := server.do(c.Context, "DELETE", "/v1/connections/"+strconv.FormatUint(id, 10), nil, &cut); err != nil {
						return err
					}
					_, err := fmt.Fprintf(c.App.Writer, "cut: connection %d of %s on link %s\n", cut.ID, cut.Client, cut.Link)
					return err
				})
			},
		}},
	}
}

func connectionTable(all []admin.Connection, now time.Time) string {
	if len(all) == 0 {
		return "no connections\n"
	}
	cells := [][]string{{"id", "link", "client", "application", "user", "driver", "state", "age", "exchanges", "waiting", "queued", "bytes"}}
	for i := range all {
		c := &all[i]
		state := c.State
		if c.ToServer.Paused || c.ToClient.Paused {
			state += ", paused"
		}
		if c.NotDecoded != "" {
			state += ", not decoded"
		}
		cells = append(cells, []string{
			strconv.FormatUint(c.ID, 10), printable(c.Link), c.Client, printable(c.Application), printable(c.User), printable(c.Driver), state,
			short(now.Sub(c.Since).Round(time.Second)), strconv.FormatUint(c.Exchanges, 10), strconv.Itoa(c.WaitingRequests),
			size(c.ToServer.QueuedBytes + c.ToClient.QueuedBytes), size(int64(c.ToServer.Bytes + c.ToClient.Bytes)),
		})
	}
	return trace.Align(cells, 7)
}

// printable is what a client called itself, or a link, without what could move the
// cursor.
func printable(s string) string {
	return cmp.Or(strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, s), "-")
}
