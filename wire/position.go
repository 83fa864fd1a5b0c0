package wire

import (
	"cmp"
	"fmt"
)

// Position is how far a log has come: ordered by Hi, then by Lo. The zero value
// is unknown.
//
//	            Hi           Lo
//	MongoDB     term t       ts: seconds << 32 | increment
//	PostgreSQL  0            the LSN one past the last byte
//
// A position stands for everything before it, so that a member which has come
// to p has all that was written up to p.
type Position struct{ Hi, Lo uint64 }

// Compare is negative, zero or positive as p is before, at or after q.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Hi, q.Hi), cmp.Compare(p.Lo, q.Lo))
}

// Reaches reports whether p is at or after q.
func (p Position) Reaches(q Position) bool { return p.Compare(q) >= 0 }

// IsZero reports whether the position is unknown.
func (p Position) IsZero() bool { return p == Position{} }

// LSN is a PostgreSQL position.
func LSN(lsn uint64) Position { return Position{Lo: lsn} }

// LSN prints a position as PostgreSQL does: "0/68B570".
func (p Position) LSN() string { return fmt.Sprintf("%X/%X", p.Lo>>32, uint32(p.Lo)) }

// Level is what a member has done with the log.
type Level uint8

// The levels. A member acknowledges each with a position of its own.
//
//	           MongoDB    PostgreSQL           synchronous_commit
//	Written    written    write                remote_write
//	Durable    durable    flush                on
//	Applied    applied    apply                remote_apply
const (
	Written Level = iota
	Durable
	Applied
	// Levels is their number.
	Levels = 3
)

// String is "written", "durable" or "applied".
func (l Level) String() string { return [...]string{"written", "durable", "applied"}[min(l, Levels-1)] }

// Progress is how far one member has come. A zero position says nothing.
type Progress struct {
	Member  string
	Reached [Levels]Position
}

// CommitKind is what a log's record does to a transaction.
type CommitKind uint8

// A commit, and PostgreSQL's two-phase records. All of them are waited for.
const (
	CommitPlain CommitKind = iota
	CommitPrepare
	CommitPrepared
	AbortPrepared
)

// Commit is a record of the log that somebody may wait for.
type Commit struct {
	// End is what members must reach to have it.
	End Position
	// XID is PostgreSQL's transaction, without its epoch.
	XID  uint32
	Kind CommitKind
	// Apply: the record asks standbys to tell when it's applied, which it does
	// under synchronous_commit = remote_apply and never else.
	Apply bool
}
