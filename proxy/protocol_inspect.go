package proxy

import "github.com/wirewait/wirewait/wire"

// A detector can be inspected as far as the session that it becomes can. Until
// then there is nothing in it to judge.

func (d *detector) inspector() wire.Inspector {
	i, _ := d.Session.(wire.Inspector)
	return i
}

// FrameOne implements wire.Inspector.
func (d *detector) FrameOne(dir wire.Direction, b []byte, now wire.Stamp) wire.Piece {
	d.decide(dir, b, now)
	if i := d.inspector(); i != nil {
		return i.FrameOne(dir, b, now)
	}
	return d.Session.Frame(dir, b, now, nil)[0] // opaque: all of it is one
}

// Monitors implements wire.Inspector. Before it's decided, it may be MongoDB.
func (d *detector) Monitors() bool {
	i := d.inspector()
	return !d.decided || i != nil && i.Monitors()
}

// Asked implements wire.Inspector.
func (d *detector) Asked() wire.Asked {
	if i := d.inspector(); i != nil {
		return i.Asked()
	}
	return wire.Asked{}
}

// CanRefuse implements wire.Inspector.
func (d *detector) CanRefuse(f *wire.Failure) wire.Reason {
	if i := d.inspector(); i != nil {
		return i.CanRefuse(f)
	}
	return wire.Unread
}

// Refuse implements wire.Inspector.
func (d *detector) Refuse(f *wire.Failure) wire.Refusal { return d.inspector().Refuse(f) }

// Turn implements wire.Inspector.
func (d *detector) Turn(x *wire.Exchange) bool { return d.inspector().Turn(x) }

// Acknowledged implements wire.Inspector.
func (d *detector) Acknowledged() []wire.Acknowledgement {
	if i := d.inspector(); i != nil {
		return i.Acknowledged()
	}
	return nil
}

// CanFail implements wire.Inspector.
func (d *detector) CanFail(x *wire.Exchange, f *wire.Failure) wire.Reason {
	return d.inspector().CanFail(x, f)
}

// Fail implements wire.Inspector.
func (d *detector) Fail(x *wire.Exchange, f *wire.Failure, b, out []byte) []byte {
	return d.inspector().Fail(x, f, b, out)
}

func (d *detector) rewriter() wire.Rewriter {
	r, _ := d.Session.(wire.Rewriter)
	return r
}

// Rewriting implements wire.Rewriter. Before it's decided, it may be MongoDB.
func (d *detector) Rewriting() bool {
	r := d.rewriter()
	return !d.decided && d.options.Rename != nil || r != nil && r.Rewriting()
}

// Rewrites implements wire.Rewriter.
func (d *detector) Rewrites(x *wire.Exchange) bool {
	r := d.rewriter()
	return r != nil && r.Rewrites(x)
}

// Rewrite implements wire.Rewriter.
func (d *detector) Rewrite(x *wire.Exchange, b, out []byte) ([]byte, bool) {
	return d.rewriter().Rewrite(x, b, out)
}

// Removing implements wire.Inspector.
func (d *detector) Removing() bool {
	i := d.inspector()
	return i != nil && i.Removing()
}
