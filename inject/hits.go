package inject

import "github.com/wirewait/wirewait/wire"

// Hits is what is counted of one rule on one link, shared by the link's
// connections. It's safe for concurrent use; package proxy has one.
type Hits interface {
	// Match counts a match to which the effect can apply, and returns its ordinal
	// from 1.
	Match() uint64
	// Hit counts a match that fired.
	Hit()
	// NotApplicable counts a match to which the effect could not apply.
	NotApplicable(wire.Reason)
}
