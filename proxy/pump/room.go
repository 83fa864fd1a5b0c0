package pump

import "github.com/wirewait/wirewait/wire"

// Assured is how many bytes each direction may hold whatever the others do.
const Assured = 1 << 20

// backlog is how much may wait although it was due: as much as Linux keeps in
// front of a socket by default (the last value of tcp_wmem). A peer that is
// slower than the other one must slow it down, as it would without a proxy;
// the rest of the line is for bytes on their way.
const backlog = 4 << 20

// grain is how much is taken from the shared budget at a time.
const grain = 256 << 10

// room reports whether the direction may take more bytes at now, and takes or
// gives back what that means for the budget.
func (c *Conn) room(p *pump, now wire.Stamp) bool {
	n := p.line.Bytes()
	p.again = 0
	if p.shift == nil { // else most of it is not on its way, but put off
		full, again := p.path.Full(n, now)
		if p.again = again; full {
			return false // the sender itself would wait
		}
	}
	if n < Assured {
		c.giveBack(p)
		return true
	}
	if p.line.Late(now, backlog) {
		return false
	}
	for p.granted-(n-Assured) > 8*grain {
		p.granted -= grain
		if c.budget != nil {
			c.budget.Give(grain)
		}
	}
	for n >= Assured+p.granted {
		if c.budget != nil && !c.budget.Take(grain) {
			return false
		}
		p.granted += grain
	}
	return true
}

func (c *Conn) giveBack(p *pump) {
	if p.granted > 0 && c.budget != nil {
		c.budget.Give(p.granted)
	}
	p.granted = 0
}
