package main

import (
	"fmt"
	"net"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy/config"
	"github.com/wirewait/wirewait/wire"
)

func linksCommand() *cli.Command {
	return &cli.Command{
		Name:      "links",
		Usage:     "print a file's links, and what to paste where so that they are used",
		UsageText: "wirewait links FILE",
		Description: "Where several dial a link, its round trip is that of a connection that nothing tells,\n" +
			"and below it stands each one's own.",
		Action: printLinks,
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
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", from, to, l.Listen, roundTrip(l.Delay), what, where)
		for _, s := range l.Sources {
			fmt.Fprintf(w, "  %s\t\t\t%s\t\t%s\n", s.Name, roundTrip(s.Delay), toldBy(s))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, c := range f.Clusters {
		fmt.Fprint(w, initiation(c, f.Links))
	}
	return w.Flush()
}

// initiation is the configuration of a replica set whose members reach each
// other over links; empty if not each has one.
func initiation(c config.Cluster, links []config.Link) string {
	hosts := map[string]string{}
	for _, l := range links {
		if l.Dialer == config.FromMembers && l.Protocol == wire.MongoDB {
			hosts[l.To] = dialled(l)
		}
	}
	var members []string
	for i, m := range c.Members {
		if hosts[m.Name] == "" {
			return ""
		}
		members = append(members, fmt.Sprintf("  {_id: %d, host: %q}", i, hosts[m.Name]))
	}
	return fmt.Sprintf("\nrs.initiate({_id: %q, members: [\n%s\n]})\n", c.Name, strings.Join(members, ",\n"))
}

// roundTrip is "80ms", with its ways if they differ and with jitter if it has any.
func roundTrip(s inject.Settings) string {
	there, back := s.Delay[wire.ToServer], s.Delay[wire.ToClient]
	same := there.Base == back.Base && there.Jitter == back.Jitter
	switch {
	case same && there.Jitter == 0:
		return short(s.RTT())
	case same:
		return fmt.Sprintf("%s (2 x %s)", short(s.RTT()), describeOneWay(there))
	}
	return fmt.Sprintf("%s (%s + %s)", short(s.RTT()), describeOneWay(there), describeOneWay(back))
}

// dialled is what clients dial: with a placeholder for what only the reader
// knows, and for a port that run prints.
func dialled(l config.Link) string {
	if a := l.Dialled(); a != "" {
		return a
	}
	host, port, _ := net.SplitHostPort(l.Listen)
	switch host {
	case "0.0.0.0", "::": // no client can dial these
		host = "THIS_HOST"
	}
	if port == "0" {
		port = "PORT"
	}
	return net.JoinHostPort(host, port)
}

// paste is what makes a link be used, and where it belongs.
func paste(l config.Link) (what, where string) {
	address := dialled(l)
	if strings.HasPrefix(address, "unix:") {
		return address, "in place of " + l.Upstream
	}
	host, port, _ := net.SplitHostPort(address)
	libpq := fmt.Sprintf("host=%s port=%s", host, port)
	switch {
	case l.Protocol == wire.MongoDB && l.Dialer == config.FromMembers:
		return fmt.Sprintf("host: %q", address), "rs.initiate or rs.reconfig, for " + l.To
	case l.Protocol == wire.MongoDB && l.Dialer == config.FromMember:
		return address, fmt.Sprintf("name resolution on %s alone, as %s", l.From, l.To)
	case l.Protocol == wire.MongoDB:
		return fmt.Sprintf("mongodb://%s/?directConnection=true", address), application(l)
	case l.Protocol == wire.Postgres && l.Dialer == config.FromMember:
		return libpq, "primary_conninfo of " + l.From
	case l.Protocol == wire.Postgres && l.Dialer == config.FromMembers:
		return libpq, "primary_conninfo of each standby"
	case l.Protocol == wire.Postgres:
		return libpq, application(l)
	}
	return address, application(l)
}

func application(l config.Link) string {
	if l.From == "" {
		return "the application"
	}
	return "the application in " + strings.ReplaceAll(l.From, "+", ", ")
}
