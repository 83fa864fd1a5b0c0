package main

import (
	"fmt"

	"github.com/urfave/cli/v2"
)

// labCommand starts servers to try things on, and leaves them running.
func labCommand() *cli.Command {
	return &cli.Command{
		Name:      "lab",
		Usage:     "start a cluster in several places, with links between its members, and leave it running",
		UsageText: "wirewait lab postgres|mongodb [FLAGS]",
		Subcommands: []*cli.Command{
			labPostgresCommand(), labMongoCommand(),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return &usageError{"wirewait lab", []string{"say which: wirewait lab postgres, or wirewait lab mongodb"}}
			}
			return &usageError{"wirewait lab", []string{fmt.Sprintf("unknown lab %q: wirewait lab postgres, or wirewait lab mongodb", c.Args().First())}}
		},
	}
}
