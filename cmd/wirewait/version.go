package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"
)

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version, the revision it was built from, and the Go release",
		Action: func(c *cli.Context) error {
			if err := refuseArguments(c, "version takes none"); err != nil {
				return err
			}
			info, _ := debug.ReadBuildInfo()
			_, err := fmt.Fprintln(c.App.Writer, describeBuild(info))
			return err
		},
	}
}

// describeBuild is one line; a nil info (a binary without any) is fine.
func describeBuild(info *debug.BuildInfo) string {
	words := []string{"wirewait " + moduleVersion(info)}
	if info != nil {
		settings := map[string]string{}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		if revision := settings["vcs.revision"]; revision != "" {
			if settings["vcs.modified"] == "true" {
				revision += " (modified)"
			}
			words = append(words, "revision "+revision)
		}
	}
	return strings.Join(append(words, runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH), ", ")
}

// moduleVersion is the module's version, or (devel) if it has none.
func moduleVersion(info *debug.BuildInfo) string {
	if info == nil || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
