package wire

// Fault is what a rule did to an exchange.
type Fault struct {
	// Rule is its name, Effect what it does: "lose_reply".
	Rule, Effect string
	// Draw says which of the rule's matches on the link this was and by which seed
	// it was drawn: "42:orders:17" is the 17th match of rule orders with seed 42.
	Draw string
	// Code is the error that the client was told in place of the server's answer;
	// empty if it wasn't told one.
	Code string
}

// Blame notes what a rule did.
func (x *Exchange) Blame(f Fault) { x.Faults = append(x.Faults, f) }
