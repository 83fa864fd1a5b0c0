package trace

import (
	"slices"

	"github.com/wirewait/wirewait/wire"
)

// commits are the records that somebody may wait for, in the order of the log,
// each once, however many members it was sent to and how often.
type commits struct {
	list      []commit
	forgotten wire.Stamp // those that were seen until then are gone
}

type commit struct {
	wire.Commit
	// seen is when it was first read on its way to any member.
	seen wire.Stamp
	// released is when the rule let those go who waited for it at the level; found
	// once, since what is past doesn't change. Nil: not looked for, or not yet.
	released *release
	level    wire.Level
	rule     Rule
}

// maxCommits are 4 MB, and three seconds at 20,000 a second.
const maxCommits = 1 << 16

// forget drops the n oldest.
func (c *commits) forget(n int) {
	for _, x := range c.list[:n] {
		c.forgotten = max(c.forgotten, x.seen)
	}
	c.list = slices.Delete(c.list, 0, n)
}

func (c *commits) add(x wire.Commit, seen wire.Stamp) {
	n := len(c.list)
	if n == 0 || x.End.Compare(c.list[n-1].End) > 0 {
		if n >= maxCommits {
			c.forget(n / 2)
		}
		c.list = append(c.list, commit{Commit: x, seen: seen})
		return
	}
	i, found := slices.BinarySearchFunc(c.list, x.End, func(c commit, p wire.Position) int { return c.End.Compare(p) })
	if found {
		c.list[i].seen = min(c.list[i].seen, seen)
	} else if i > 0 { // what is older than all is a segment that is sent again
		c.list = slices.Insert(c.list, i, commit{Commit: x, seen: seen})
	}
}

// between are those that were first seen in a stretch of time, and perhaps some
// among them that weren't: they come in the order of the log, in which they are
// sent to each member, but for those that were missed at first.
func (c *commits) between(from, to wire.Stamp) []commit {
	end := len(c.list)
	for end > 0 && c.list[end-1].seen > to {
		end--
	}
	begin := end
	for begin > 0 && c.list[begin-1].seen >= from {
		begin--
	}
	return c.list[begin:end]
}
