package main

import (
	"fmt"
	"net"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/wirewait/wirewait/proxy/config"
	"github.com/wirewait/wirewait/wire"
)

func linksCommand() *cli.Command {
	return &cli.Command{
		Name:      "links",
		Usage:     "print a file's links, and what to paste where so that they are used",
		UsageText: "wirewait links FILE",
		Action:    printLinks,
	}
}

func printLinks(c *cli.Context) error {
	_, f, err := loadFile(c)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(c.App.Writer, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FROM\tTO\tLISTEN\tROUND TRIP\tPASTE\tWHERE")
	for _, l := range f.Links {
		from, to := l.From, l.To
		if from == "" {
			from, to = "-", l.Upstream
		}
		what, where := paste(l)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", from, to, l.Listen, roundTrip(l), what, where)
	}
	return w.Flush()
}

// roundTrip is "80ms", with its ways if they differ and with jitter if it has any.
func roundTrip(l config.Link) string {
	there, back := l.Delay.Delay[wire.ToServer], l.Delay.Delay[wire.ToClient]
	same := there.Base == back.Base && there.Jitter == back.Jitter
	switch {
	case same && there.Jitter == 0:
		return short(l.Delay.RTT())
	case same:
		return fmt.Sprintf("%s (2 x %s)", short(l.Delay.RTT()), describeOneWay(there))
	}
	return fmt.Sprintf("%s (%s + %s)", short(l.Delay.RTT()), describeOneWay(there), describeOneWay(back))
}

// paste is what makes a link be used, and where it belongs.
func paste(l config.Link) (what, where string) {
	host, port, dialer := "", "", l.From
	if !strings.HasPrefix(l.Listen, "unix:") {
		host, port, _ = net.SplitHostPort(l.Listen)
	}
	switch host {
	case "0.0.0.0", "::": // no client can dial these
		host = "THIS_HOST"
	}
	if port == "0" {
		port = "PORT" // the one that run prints
	}
	address := net.JoinHostPort(host, port)
	switch {
	case host == "":
		return l.Listen, "in place of " + l.Upstream
	case l.Protocol == wire.MongoDB && l.Dialer == config.Members:
		return fmt.Sprintf("host: %q", address), "rs.initiate or rs.reconfig, for " + l.To
	case l.Protocol == wire.MongoDB && l.Dialer == config.Member:
		return address, fmt.Sprintf("name resolution on %s alone, as %s", dialer, l.To)
	case l.Protocol == wire.MongoDB:
		return fmt.Sprintf("mongodb://%s/?directConnection=true", address), application(l)
	case l.Protocol == wire.Postgres && l.Dialer == config.Member:
		return fmt.Sprintf("host=%s port=%s", host, port), "primary_conninfo of " + dialer
	case l.Protocol == wire.Postgres && l.Dialer == config.Members:
		return fmt.Sprintf("host=%s port=%s", host, port), "primary_conninfo of each standby"
	case l.Protocol == wire.Postgres:
		return fmt.Sprintf("host=%s port=%s", host, port), application(l)
	}
	return address, application(l)
}

func application(l config.Link) string {
	if l.From == "" {
		return "the application"
	}
	return "the application in " + l.From
}
