package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"

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

// decodeFiles reads the request stream and then the replies, so that no reply
// is seen before its request, whatever the times of the capture were.
//
// Only whole messages are read: what remains of either stream is trailing. Where
// they end is found out first, with sessions whose exchanges nobody looks at, so
// that no byte counts twice and one stream's broken end leaves the other readable.
func decodeFiles(protocol wire.Protocol, names [2]string, text bool, stdin io.Reader, out io.Writer) error {
	var streams [2]stream
	var failed error
	for dir, name := range names {
		var err error
		streams[dir], err = openStream(name, stdin)
		defer streams[dir].close()
		if err != nil && streams[dir].size == 0 {
			return fmt.Errorf("wirewait decode: %w", err)
		}
		failed = errors.Join(failed, err)
	}
	for dir := range streams { // the second after the first, without its end
		probe, err := decodeStreams(protocol, text, streams[:dir+1], nil)
		if err != nil {
			return err
		}
		streams[dir].use = probe.whole[dir]
	}
	d, err := decodeStreams(protocol, text, streams[:], out)
	if err != nil {
		return err
	}
	if err := d.end(streams[0].trailing() + streams[1].trailing()); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("wirewait decode: %w", failed)
	}
	return nil
}

// decodeStreams feeds a session all that is to be read. Without out nothing is
// printed.
func decodeStreams(protocol wire.Protocol, text bool, streams []stream, out io.Writer) (*decoder, error) {
	d, err := newDecoder(protocol, text, out)
	if err != nil {
		return nil, err
	}
	for dir := range streams {
		if err := d.feed(wire.Direction(dir), &streams[dir]); err != nil {
			return nil, fmt.Errorf("wirewait decode: %w", err)
		}
	}
	return d, nil
}

// maxExchanges may be open at a time: all that a capture has, as its replies are
// read last.
const maxExchanges = 1 << 28

// decoder feeds a session and counts what it says.
type decoder struct {
	session wire.Session
	list    *list // nil: nothing is printed
	stamp   wire.Stamp
	offset  [2]int64
	pieces  []wire.Piece

	messages  [2]int
	whole     [2]int64 // where the last whole message ended
	undecoded int
}

func newDecoder(protocol wire.Protocol, text bool, out io.Writer) (*decoder, error) {
	d := &decoder{}
	o := wire.Options{Trouble: func(string) { d.undecoded++ }, MaxOpen: maxExchanges, MaxMemory: math.MaxInt, Ledger: true}
	if text {
		o.Text = wire.TextRaw
	}
	var err error
	if d.session, err = proxy.NewSession(protocol, o); err != nil {
		return nil, err
	}
	if out != nil {
		d.list = newList(protocol, out)
		d.session.Open().Emit = d.list.add
	}
	return d, nil
}

// feed hands a direction's bytes to the session as a proxy would, 64 KiB at a
// time, and has them leave at once.
func (d *decoder) feed(dir wire.Direction, s *stream) error {
	if _, err := s.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r := io.LimitReader(s, s.use)
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			d.take(dir, buf[:n])
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

func (d *decoder) take(dir wire.Direction, b []byte) {
	d.stamp++
	d.pieces = d.session.Frame(dir, b, d.stamp, d.pieces[:0])
	at := d.offset[dir]
	for i := range d.pieces {
		p := &d.pieces[i]
		at += int64(p.Len)
		if p.Last && !p.Opaque {
			d.messages[dir]++
			d.whole[dir] = at
		}
	}
	d.session.Decode(dir, b, d.pieces)
	d.offset[dir] = at
	d.session.Open().Departed(dir, at, d.stamp)
}

// end finishes what waits and prints the summary.
func (d *decoder) end(trailing int64) error {
	d.session.End()
	return d.list.end(summary{
		MessagesToServer: d.messages[wire.ToServer],
		MessagesToClient: d.messages[wire.ToClient],
		Undecoded:        d.undecoded,
		TrailingBytes:    trailing,
	})
}
