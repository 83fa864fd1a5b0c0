package mongo

import "github.com/wirewait/wirewait/wire"

// framed is a message that was framed and is not yet decoded.
type framed struct {
	header
	call   *call
	report *wire.Report // what it may say between members; nil: nothing
}

// decoder reads one direction's messages, in the order of their framing.
type decoder struct {
	queue  wire.Queue[framed]
	active bool // reading the queue's first message
	seen   int  // bytes of that message given so far
	body   body
	packed packed
}

// Decode implements wire.Session.
func (s *session) Decode(dir wire.Direction, b []byte, pieces []wire.Piece) {
	s.asked.x, s.acks = nil, 0
	for i := range pieces {
		p := &pieces[i]
		n := min(p.Len, len(b))
		chunk := b[:n]
		b = b[n:]
		switch {
		case s.ended:
			return
		case p.Opaque:
			s.abandon(dir)
		default:
			s.decodePiece(dir, chunk, p)
		}
	}
}

func (s *session) decodePiece(dir wire.Direction, chunk []byte, p *wire.Piece) {
	d := &s.decoders[dir]
	if p.First {
		d.seen = 0
	}
	early := d.seen
	d.seen += len(chunk)
	// Without an exchange it's a part of a header; framing has kept what
	// matters of it.
	if p.Exchange == nil || d.queue.Len() == 0 {
		return
	}
	f := d.queue.Front()
	if !d.active {
		d.active = true
		s.beginDecode(dir, f)
	}
	chunk = chunk[min(max(f.size()-early, 0), len(chunk)):]
	if f.op == opCompressed {
		s.unpack(dir, f, chunk)
	} else {
		d.body.feed(chunk)
	}
	if p.Last {
		s.endDecode(dir, false)
	}
}

func (s *session) beginDecode(dir wire.Direction, f *framed) {
	d := &s.decoders[dir]
	if dir == wire.ToServer {
		s.request.begin(s, f.call)
	} else {
		s.reply.begin(s, f.call)
	}
	if f.op == opCompressed {
		return
	}
	s.beginBody(dir, f.op, f.length-headerLen)
	if f.size() > headerLen {
		d.body.feedFlags(f.flags)
	}
}

// beginBody makes ready for a message's body of n bytes.
func (s *session) beginBody(dir wire.Direction, op int32, n int) {
	b := &s.decoders[dir].body
	if dir == wire.ToServer {
		b.begin(op, n, &s.request, nil)
	} else {
		b.begin(op, n, nil, &s.reply)
	}
}

// endDecode closes the message at hand: what it said goes to its exchange. cut:
// its end never came.
func (s *session) endDecode(dir wire.Direction, cut bool) {
	d := &s.decoders[dir]
	f := d.queue.Pop()
	d.active = false
	b := &d.body
	if f.op == opCompressed {
		d.packed.end(s.options.Inflate)
	}
	b.end(cut)
	if dir == wire.ToServer {
		s.endRequest(&f, b)
		s.noteRequest(&f, b)
	} else {
		s.endReply(&f, b)
		s.noteReply(f.call)
	}
	if b.trouble != "" && !cut && s.options.Trouble != nil {
		s.options.Trouble(b.trouble)
	}
	if f.report != nil {
		s.endReport(dir, &f, b)
	}
	b.reset()
	s.settle(f.call)
	s.release(f.call)
}

// endRequest puts what a request said into its exchange.
func (s *session) endRequest(f *framed, b *body) {
	c := f.call
	if f.op == opCompressed {
		s.endCompressedRequest(c, b)
	}
	s.request.end(b)
	if s.between {
		s.following.note(c.x)
	}
	if c.x.Peer != s.peer {
		c.x.Peer = s.peer
	}
}

// endCompressedRequest learns what framing couldn't know: whether a reply is
// to be awaited at all.
func (s *session) endCompressedRequest(c *call, b *body) {
	x := c.x
	if b.op != 0 {
		x.Mongo.OpCode = b.op
	}
	if x.Operation == "" && (b.op == 0 || b.trouble != "") {
		x.Operation = opName(opCompressed)
	}
	if b.op == 0 || answered(b.op) && !moreToCome(b.flags) {
		return
	}
	x.NoReply = true
	c.answered = true
	if c.in != nil {
		c.in.remove(c)
	}
}

// endReply puts what a reply said into its exchange, and learns of a
// compressed one whether it was the last.
func (s *session) endReply(f *framed, b *body) {
	c := f.call
	s.reply.end(b)
	c.x.Peer = s.peer
	if f.op != opCompressed {
		return
	}
	if c.orphan && b.op != 0 {
		c.x.Mongo.OpCode = b.op
	}
	if b.op == opMsg && moreToCome(b.flags) {
		c.x.Mongo.Exhaust = true
		return
	}
	if c.in == &s.exhausts && c.key == f.requestID {
		s.exhausts.remove(c)
	} else if !s.closed() {
		s.overtaken = true
	}
	c.answered = true
}

// abandon gives up on what is left of a direction: its bytes will never be
// decoded. What was read of the message at hand is kept.
func (s *session) abandon(dir wire.Direction) {
	d := &s.decoders[dir]
	for d.queue.Len() > 0 {
		if !d.active {
			s.beginDecode(dir, d.queue.Front())
		}
		s.endDecode(dir, true)
	}
}
