package pump

import (
	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// answer is a reply that was made up, until its turn comes: the stream to the
// client must stand between messages, and what was asked for earlier must have
// been answered.
type answer struct {
	x   *wire.Exchange // held
	b   []byte
	at  wire.Stamp // when the request would have reached the server
	cut bool       // the connection ends behind it
}

// answer puts replies into the client's stream whose turn has come. The session
// is shown them like the server's own.
func (rd *reading) answer() {
	if rd.answers.Len() > 0 && rd.inspector.Opaque() != nil {
		// Nobody can tell any more where messages end.
		rd.forget()
		rd.end(rd.now, inject.EndCut)
	}
	for rd.answers.Len() > 0 {
		p := &rd.dirs[wire.ToClient]
		if !p.dead && !p.deaf && !p.ended && (p.mid || !rd.inspector.Turn(rd.answers.Front().x)) {
			return
		}
		a := rd.answers.Pop()
		if !p.dead && !p.deaf && !p.ended {
			rd.say(p, &a)
			rd.r.Queued = rd.r.Queued || p == rd.p
			rd.r.Other = rd.r.Other || p != rd.p
		}
		rd.session.Open().Release(a.x)
	}
}

func (rd *reading) say(p *pump, a *answer) {
	at := max(rd.now, a.at)
	p.path.Use(p.overlay(rd.set))
	p.line.Arrived(at)
	for b := a.b; len(b) > 0; {
		pc := rd.inspector.FrameOne(p.dir, b, at)
		rd.session.Decode(p.dir, b[:pc.Len], []wire.Piece{pc})
		rd.put(p, b[:pc.Len], &pc, at)
		b = b[pc.Len:]
	}
	p.line.Arrived(rd.now)
	if a.cut {
		_, due := rd.due(p, &wire.Piece{Exchange: a.x}, 0, at)
		rd.cut(p, due)
	}
}

// forget drops the replies that can't be given any more.
func (c *Conn) forget() {
	for c.answers.Len() > 0 {
		c.session.Open().Release(c.answers.Pop().x)
	}
}
