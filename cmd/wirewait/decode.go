package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/wire"
)

func decodeCommand() *cli.Command {
	return &cli.Command{
		Name:  "decode",
		Usage: "read the captured bytes of one connection and print its exchanges as JSON",
		UsageText: "wirewait decode --protocol mongodb|postgres [--to-server FILE] [--to-client FILE] [--text]\n\n" +
			"wirewait decode --protocol postgres --to-server c2s.bin --to-client s2c.bin",
		Description: "Each file is one direction's bytes as TCP carried them; - reads standard input.\n" +
			"One JSON object a line per exchange, then a summary. docs/decode.md has the fields.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "protocol", Usage: "mongodb or postgres"},
			&cli.StringFlag{Name: "to-server", Usage: "`FILE` with what the client sent"},
			&cli.StringFlag{Name: "to-client", Usage: "`FILE` with what the server sent"},
			&cli.BoolFlag{Name: "text", Usage: "print PostgreSQL statements as they were sent"},
		},
		Action: func(c *cli.Context) error {
			if err := refuseArguments(c, "name the files with --to-server and --to-client"); err != nil {
				return err
			}
			return decode(c)
		},
	}
}

func decode(c *cli.Context) error {
	r := &reader{Context: c}
	protocol := wire.Protocol(c.String("protocol"))
	if protocol != wire.MongoDB && protocol != wire.Postgres {
		r.problem("--protocol %q: use mongodb or postgres", string(protocol))
	}
	names := [2]string{c.String("to-server"), c.String("to-client")}
	switch {
	case names[0] == "" && names[1] == "":
		r.problem("nothing to read: give --to-server, --to-client or both")
	case names[0] == "-" && names[1] == "-":
		r.problem("only one direction can come from standard input")
	}
	if len(r.problems) > 0 {
		return &usageError{commandName(c), r.problems}
	}
	out := bufio.NewWriter(c.App.Writer)
	err := decodeFiles(protocol, names, c.Bool("text"), c.App.Reader, out)
	// What could be read is printed in any case.
	return errors.Join(err, out.Flush())
}

// decodeFiles reads the request stream whole and then the replies, so that no
// reply is seen before its request, whatever the times of the capture were.
func decodeFiles(protocol wire.Protocol, names [2]string, text bool, stdin io.Reader, out io.Writer) error {
	var files [2]io.Reader
	for dir, name := range names {
		switch name {
		case "":
		case "-":
			files[dir] = stdin
		default:
			f, err := os.Open(name)
			if err != nil {
				return fmt.Errorf("wirewait decode: %w", err)
			}
			defer f.Close()
			files[dir] = f
		}
	}
	d, err := newDecoder(protocol, text, out)
	if err != nil {
		return err
	}
	for dir, f := range files {
		if f == nil {
			continue
		}
		if err := d.feed(wire.Direction(dir), f); err != nil {
			return errors.Join(fmt.Errorf("wirewait decode: %w", err), d.end())
		}
	}
	return d.end()
}

// maxExchanges may be open at a time: all that a capture has, as its replies are
// read last.
const maxExchanges = 1 << 28

// decoder feeds a session and counts what it says.
type decoder struct {
	session wire.Session
	list    *list
	stamp   wire.Stamp
	offset  [2]int64
	pieces  []wire.Piece

	messages  [2]int
	partial   [2]int64 // bytes so far of a message that isn't whole
	opaque    int64
	undecoded int
}

func newDecoder(protocol wire.Protocol, text bool, out io.Writer) (*decoder, error) {
	d := &decoder{list: newList(protocol, out)}
	o := wire.Options{Trouble: func(string) { d.undecoded++ }, MaxOpen: maxExchanges}
	if text {
		o.Text = wire.TextRaw
	}
	var err error
	if d.session, err = proxy.NewSession(protocol, o); err != nil {
		return nil, err
	}
	d.session.Open().Emit = d.list.add
	return d, nil
}

// feed hands a direction's bytes to the session as a proxy would, 64 KiB at a
// time, and has them leave at once.
func (d *decoder) feed(dir wire.Direction, r io.Reader) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := io.ReadFull(r, buf)
		if n > 0 {
			d.take(dir, buf[:n])
		}
		switch {
		case err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}

func (d *decoder) take(dir wire.Direction, b []byte) {
	d.stamp++
	d.pieces = d.session.Frame(dir, b, d.stamp, d.pieces[:0])
	for i := range d.pieces {
		d.count(dir, &d.pieces[i])
	}
	d.session.Decode(dir, b, d.pieces)
	d.offset[dir] += int64(len(b))
	d.session.Open().Departed(dir, d.offset[dir], d.stamp)
}

// count keeps messages and stray bytes apart. A message that turned out to be
// none leaves its first bytes in partial.
func (d *decoder) count(dir wire.Direction, p *wire.Piece) {
	switch {
	case p.Opaque:
		d.opaque += int64(p.Len)
	case p.Last:
		d.messages[dir]++
		d.partial[dir] = 0
	default:
		d.partial[dir] += int64(p.Len)
	}
}

// end finishes what waits and prints the summary.
func (d *decoder) end() error {
	d.session.End()
	return d.list.end(summary{
		MessagesToServer: d.messages[wire.ToServer],
		MessagesToClient: d.messages[wire.ToClient],
		Undecoded:        d.undecoded,
		TrailingBytes:    d.opaque + d.partial[wire.ToServer] + d.partial[wire.ToClient],
	})
}
