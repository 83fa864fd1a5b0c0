package inject

import (
	"time"

	"github.com/wirewait/wirewait/wire"
)

// Rule is a match, an effect with its parameters, and its bounds. It's a value:
// whoever holds one may read it at any time, and nobody changes it.
type Rule struct {
	// Name is unique in its set.
	Name   string
	When   When
	Effect Effect
	With   With
	Limit  Limit
	// Stacks: it acts beside all others of its effect, instead of the first that
	// matches acting alone, and its end doesn't make anybody wait: what it kept
	// waiting goes on as if it had not been there. An effect on one message has
	// the first rule all the same. See proxy.Proxy.SetToxics.
	Stacks bool
}

// When is what a rule matches. Each field that isn't empty must match, and a
// field does if one of its values does. A rule with an empty When matches
// everything.
//
// All but Link, From, To, Direction and Monitors are content: what messages say.
// An effect that acts on bytes (Effect) and has no content in its match begins
// with the connection, by one draw; with content it begins with the first
// request that matches and fires. Latency with content delays the matching
// exchanges alone.
type When struct {
	// Link is a link's name, From and To its ends as they are configured.
	Link, From, To []string

	Command    []string // MongoDB: "insert"; in any case
	Collection []string // MongoDB
	Statement  []string // PostgreSQL: the first keyword, "COMMIT"; in any case
	Database   []string
	User       []string
	// Application is MongoDB's client.application.name, PostgreSQL's
	// application_name.
	Application []string
	// WriteConcern is MongoDB's, as the request states it.
	WriteConcern []Concern
	// SynchronousCommit is PostgreSQL's level believed to be in force: "on",
	// "local", ...
	SynchronousCommit []string

	// Direction is of the effect. Refuse, lose_reply, fail_reply and lag have
	// their own.
	Direction Ways
	// Monitors: hello, ping, heartbeats and the connections that carry nothing
	// else are matched too. Without it, an effect on bytes begins on a MongoDB
	// connection when its first other command comes.
	Monitors bool
}

// Concern is a write concern to be matched: W "majority", "1" or a tag's name, J
// "true" or "false"; an empty one of the two matches whatever was stated.
type Concern struct{ W, J string }

// Ways are the directions that an effect acts on. The zero value is both.
type Ways uint8

// The ways.
const (
	BothWays Ways = iota
	OnlyToServer
	OnlyToClient
)

// Include reports whether dir is among the ways.
func (w Ways) Include(dir wire.Direction) bool {
	return w == BothWays || (w == OnlyToServer) == (dir == wire.ToServer)
}

// String is "both", "to_server" or "to_client".
func (w Ways) String() string {
	switch w {
	case OnlyToServer:
		return "to_server"
	case OnlyToClient:
		return "to_client"
	}
	return "both"
}

// Content reports whether the match needs what messages say.
func (w *When) Content() bool {
	for _, f := range w.content() {
		if len(f) > 0 {
			return true
		}
	}
	return len(w.WriteConcern) > 0
}

func (w *When) content() [7][]string {
	return [...][]string{
		w.Command, w.Collection, w.Statement, w.Database, w.User, w.Application, w.SynchronousCommit,
	}
}

// Limit bounds how often a rule fires. All that is given must hold. Matches are
// counted on each link from 1, in the order in which they come; one to which the
// effect could not apply isn't counted.
type Limit struct {
	// Probability that a match fires, in (0, 1]; 0 stands for 1. The draw is made
	// of (seed, link, rule, ordinal of the match), so that the same matches fire
	// whenever the same seed is used.
	Probability float64
	// Nth: only this match fires. First: only so many of the first do. 0: no
	// bound.
	Nth, First uint64
	// Until is how long the rule is in force from when it was set; 0: for as long
	// as it's there.
	Until time.Duration
}
