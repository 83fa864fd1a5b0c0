package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/proxy/config"
)

func checkCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "say everything that is wrong with a file, or what it opens",
		UsageText: "wirewait check FILE",
		Description: "Opens nothing and connects to nothing. Certificates are looked at when wirewait runs.\n" +
			"The exit code is 1 if something is wrong.",
		Action: checkFile,
	}
}

func checkFile(c *cli.Context) error {
	path, f, err := loadFile(c)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.App.Writer, "%s: no problems; it opens %s:\n", path, count(len(f.Links), "link"))
	w := tabwriter.NewWriter(c.App.Writer, 0, 0, 2, ' ', 0)
	for _, l := range f.Links {
		fmt.Fprintf(w, "  %s\t%s -> %s\t%s\t%s\n", l.Name, l.Listen, l.Upstream, describeProtocol(l.Protocol), describeRoute(l.LinkConfig))
		for _, s := range l.Sources {
			fmt.Fprintf(w, "    from %s\t%s\t\t%s\n", s.Name, toldBy(s), describeDelay(s.Delay))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	sayWarnings(c.App.Writer, f)
	return nil
}

// sayWarnings says what servers will do about the file's rules.
func sayWarnings(w io.Writer, f *config.File) {
	links := make([]proxy.LinkConfig, len(f.Links))
	for i := range f.Links {
		links[i] = f.Links[i].LinkConfig
	}
	for _, warning := range proxy.RuleWarnings(f.Rules, links) {
		fmt.Fprintf(w, "warning: rule %s: %s\n", warning.Rule, warning.Text)
	}
}

// toldBy says by what a connection is known to be a source's: nothing, perhaps.
func toldBy(s proxy.Source) string {
	var by []string
	for _, p := range s.Addresses {
		if p.IsSingleIP() {
			by = append(by, p.Addr().String())
		} else {
			by = append(by, p.String())
		}
	}
	by = append(by, s.Names...)
	if len(by) == 0 {
		return "told by nothing"
	}
	return "told by " + strings.Join(by, ", ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
