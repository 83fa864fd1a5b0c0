package proxy

import (
	"encoding/binary"
	"fmt"

	"github.com/wirewait/wirewait/wire"
	"github.com/wirewait/wirewait/wire/mongo"
	"github.com/wirewait/wirewait/wire/postgres"
)

// NewSession makes the session that reads a protocol. An empty protocol is
// detected from the first bytes to the server. This file is the only place
// that knows both protocols.
func NewSession(p wire.Protocol, o wire.Options) (wire.Session, error) {
	switch p {
	case wire.MongoDB:
		return mongo.New(o), nil
	case wire.Postgres:
		return postgres.New(o), nil
	case wire.TCP:
		return wire.NewOpaque(), nil
	case "":
		return &detector{Session: wire.NewOpaque(), options: o}, nil
	}
	return nil, fmt.Errorf("unknown protocol %q: use mongodb, postgres or tcp, or leave it out to have it detected", p)
}

// What members of a replica set are asked: see members.go.
var (
	helloRequest = mongo.HelloRequest
	helloSize    = mongo.HelloSize
	helloName    = mongo.HelloName
)

// walVersions are those of PostgreSQL whose log is read.
const walVersions = postgres.WALVersions

// headSize is as many bytes as detection may need: MongoDB's header.
const headSize = 16

// detect tells the protocol from the first bytes that a client sent. It
// returns "" while more are needed; they are forwarded all the same.
//
//	PostgreSQL  Int32 length 8..10000 | Int32 code: 3.x, or 1234 and a request
//	MongoDB     int32 length >= 16, little-endian | id | responseTo | a known opcode
//	TLS         0x16 0x03: its record header
func detect(head []byte) wire.Protocol {
	if len(head) < 2 {
		return ""
	}
	if head[0] == 0x16 && head[1] == 3 {
		return wire.MongoDB // whose session says that it is encrypted
	}
	if head[0] == 0 && head[1] == 0 {
		if len(head) < 8 {
			return ""
		}
		length, code := binary.BigEndian.Uint32(head), binary.BigEndian.Uint32(head[4:])
		if major := code >> 16; length >= 8 && length <= 10000 && (major >= 2 && major <= 9 || major == 1234) {
			return wire.Postgres
		}
		return wire.TCP
	}
	if len(head) < headSize {
		if len(head) >= 4 && head[3] > 2 { // over 48 MB
			return wire.TCP
		}
		return ""
	}
	switch op := binary.LittleEndian.Uint32(head[12:]); op {
	case 1000, 2001, 2002, 2004, 2005, 2006, 2007, 2010, 2012, 2013:
		if n := binary.LittleEndian.Uint32(head); n >= headSize && n <= 48_000_000 {
			return wire.MongoDB
		}
	}
	return wire.TCP
}

// detector is a session that becomes another one once it knows which. Bytes
// pass meanwhile; the session that is chosen is then told of them.
type detector struct {
	wire.Session
	options wire.Options
	head    []byte
	pending []wire.Piece // of head, to be decoded before anything else
	decided bool
}

func (d *detector) Frame(dir wire.Direction, b []byte, now wire.Stamp, pieces []wire.Piece) []wire.Piece {
	d.decide(dir, b, now)
	return d.Session.Frame(dir, b, now, pieces)
}

// decide looks at the next bytes, if the protocol isn't known yet.
func (d *detector) decide(dir wire.Direction, b []byte, now wire.Stamp) {
	if d.decided {
		return
	}
	if dir == wire.ToClient { // neither protocol has a server that speaks first
		d.decided, d.head = true, nil
		return
	}
	n := len(d.head)
	look := append(d.head[:n:n], b[:min(len(b), headSize-n)]...)
	p := detect(look)
	if p == "" {
		d.head = look
		return
	}
	d.decided = true
	if p != wire.TCP {
		old := d.Session.Open()
		d.Session, _ = NewSession(p, d.options)
		d.Session.Open().Emit, d.Session.Open().Spare, d.Session.Open().Report = old.Emit, old.Spare, old.Report
		d.pending = d.Session.Frame(dir, d.head, now, nil)
	}
}

func (d *detector) Decode(dir wire.Direction, b []byte, pieces []wire.Piece) {
	if dir == wire.ToServer && len(d.pending) > 0 {
		d.Session.Decode(dir, d.head, d.pending)
		d.pending, d.head = nil, nil
	}
	d.Session.Decode(dir, b, pieces)
}
