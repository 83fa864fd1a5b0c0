package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgproto3/v2"
)

// This file is all that knows pgproto3/v2. The module is archived, with an open
// advisory (GO-2026-4518, DataRow.Decode), and several of its decoders panic on
// short bodies. Those used here were not seen to; should one, it's an error.
// Nothing of it sits in the forwarding path: it reads copies of what is already
// on its way, and writes what is made up here.

// codec decodes message bodies. Its messages are used again.
type codec struct {
	parse     pgproto3.Parse
	execute   pgproto3.Execute
	describe  pgproto3.Describe
	close     pgproto3.Close
	ready     pgproto3.ReadyForQuery
	parameter pgproto3.ParameterStatus
	failed    pgproto3.ErrorResponse
	notice    pgproto3.NoticeResponse
}

var errBody = errors.New("body of a message can't be read")

type message interface{ Decode([]byte) error }

// guard turns a panic of a decoder into an error.
func guard(m message, body []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errBody, r)
		}
	}()
	return m.Decode(body)
}

// parsed is the name and the text of a Parse.
func (c *codec) parsed(body []byte) (name, text string, err error) {
	err = guard(&c.parse, body)
	return c.parse.Name, c.parse.Query, err
}

// executed is the portal of an Execute. The unnamed one, which nearly all are,
// is told without the decoder, which allocates.
func (c *codec) executed(body []byte) (portal string, err error) {
	if len(body) == 5 && body[0] == 0 {
		return "", nil
	}
	err = guard(&c.execute, body)
	return c.execute.Portal, err
}

// described is what a Describe asks about: S or P, and the name.
func (c *codec) described(body []byte) (what byte, name string, err error) {
	err = guard(&c.describe, body)
	return c.describe.ObjectType, c.describe.Name, err
}

// closedName is what a Close closes: S or P, and the name.
func (c *codec) closedName(body []byte) (what byte, name string, err error) {
	err = guard(&c.close, body)
	return c.close.ObjectType, c.close.Name, err
}

// readyStatus is the byte of a ReadyForQuery.
func (c *codec) readyStatus(body []byte) (byte, error) {
	err := guard(&c.ready, body)
	return c.ready.TxStatus, err
}

// parameterStatus is the name and the value of a ParameterStatus.
func (c *codec) parameterStatus(body []byte) (name, value string, err error) {
	err = guard(&c.parameter, body)
	return c.parameter.Name, c.parameter.Value, err
}

// errorCode is the SQLSTATE of an ErrorResponse.
func (c *codec) errorCode(body []byte) (string, error) {
	err := guard(&c.failed, body)
	return c.failed.Code, err
}

// noticed is what tells a NoticeResponse from others: its severity, which is
// not translated, its SQLSTATE, and the server's function that sent it.
func (c *codec) noticed(body []byte) (severity, code, routine, message string, err error) {
	err = guard(&c.notice, body)
	n := &c.notice
	return n.SeverityUnlocalized, n.Code, n.Routine, n.Message, err
}

// Messages that are made up here.

func encodeQuery(text string) []byte { return encode(&pgproto3.Query{String: text}) }
func encodeFlush() []byte            { return encode(&pgproto3.Flush{}) }
func encodeReady(status byte) []byte { return encode(&pgproto3.ReadyForQuery{TxStatus: status}) }

// encodeExtended runs a statement without parameters and results, under a name
// that it may have had before.
func encodeExtended(name, text string) []byte {
	return slices.Concat(
		encode(&pgproto3.Close{ObjectType: 'S', Name: name}),
		encode(&pgproto3.Parse{Name: name, Query: text}),
		encode(&pgproto3.Bind{DestinationPortal: name, PreparedStatement: name}),
		encode(&pgproto3.Execute{Portal: name}),
	)
}

func encode(m interface{ Encode([]byte) ([]byte, error) }) []byte {
	b, err := m.Encode(nil)
	if err != nil { // over 1 GiB
		return nil
	}
	return b
}

// EncodeError is an ErrorResponse as a server sends it: severity is ERROR or
// FATAL, code a SQLSTATE. After an ERROR a ReadyForQuery must follow, after a
// FATAL the end of the connection.
func EncodeError(severity, code, message string) []byte {
	clean := strings.NewReplacer("\x00", "")
	e := pgproto3.ErrorResponse{
		Severity:            clean.Replace(severity),
		SeverityUnlocalized: clean.Replace(severity),
		Code:                clean.Replace(code),
		Message:             clean.Replace(message),
	}
	return encode(&e)
}
