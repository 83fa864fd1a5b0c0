package mongod

import (
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// mode is a write concern that asks for values of tags, by a name that the
// configuration has for it or as it stands:
//
//	members  a {dc: east}   b {dc: east}   c {dc: west}
//	{dc: 1}  any of them
//	{dc: 2}  c, and a or b
//
// (src/mongo/db/repl/repl_set_tag.cpp, ReplSetTagMatch; topology_coordinator.cpp,
// haveTaggedNodesReachedOpTime). It counts what is applied, with j what is durable
// too, and no votes.
type mode struct {
	name string         // empty: it has none
	tags map[string]int // of how many values of each; nil with a name
}

// readTags reads w as an object.
func readTags(w bson.RawValue) (*mode, error) {
	doc, ok := w.DocumentOK()
	elements, err := doc.Elements()
	if !ok || err != nil || len(elements) == 0 {
		return nil, failedToParse("w has to be a number, string, or object of tags")
	}
	m := &mode{tags: map[string]int{}}
	for _, e := range elements {
		n, ok := e.Value().AsInt64OK()
		if !ok || n < 0 || n > maxNodes {
			return nil, failedToParse("tags must be numbers of at most %d; %s isn't", maxNodes, e.Key())
		}
		m.tags[e.Key()] = int(n)
	}
	return m, nil
}

// value is w as it was sent.
func (m *mode) value() any {
	if m.tags == nil {
		return m.name
	}
	return tagsDocument(m.tags)
}

func tagsDocument(tags map[string]int) bson.D {
	d := bson.D{}
	for _, tag := range slices.Sorted(maps.Keys(tags)) {
		d = append(d, bson.E{Key: tag, Value: int32(tags[tag])})
	}
	return d
}

func (c *config) modesDocument() bson.D {
	d := bson.D{}
	for _, name := range slices.Sorted(maps.Keys(c.modes)) {
		d = append(d, bson.E{Key: name, Value: tagsDocument(c.modes[name])})
	}
	return d
}

// tagsOf is what a mode asks for; nil: the configuration has no such one.
func (c *config) tagsOf(m *mode) map[string]int {
	if m.tags != nil {
		return m.tags
	}
	return c.modes[m.name]
}

// tagged reports whether members have enough values of each tag.
func (c *config) tagged(tags map[string]int, counts func(i int) bool) bool {
	for tag, n := range tags {
		values := map[any]bool{}
		for i, m := range c.members {
			for _, e := range m.tags {
				if e.Key == tag && counts(i) {
					values[e.Value] = true
				}
			}
		}
		if len(values) < n {
			return false
		}
	}
	return true
}

func (m *mode) met(r *replication, w *waiter) bool {
	return r.config.tagged(r.config.tagsOf(m), func(i int) bool { return r.reached(i, w) })
}

// cannot says why no progress of any member would meet a concern; nil: some may.
// The write stays done (src/mongo/db/repl/repl_set_config.cpp,
// checkIfWriteConcernCanBeSatisfied).
func (c *config) cannot(wc concern) bson.D {
	info := bson.D{{Key: "writeConcern", Value: wc.document()}}
	all := func(int) bool { return true }
	switch m := wc.mode; {
	case wc.members > len(c.members):
		return wcError(100, "UnsatisfiableWriteConcern", "Not enough data-bearing nodes", info)
	case m == nil:
		return nil
	case c.tagsOf(m) == nil:
		return wcError(79, "UnknownReplWriteConcern", "No write concern mode named '"+m.name+"' found in replica set configuration", info)
	case !c.tagged(c.tagsOf(m), all):
		return wcError(100, "UnsatisfiableWriteConcern", "Not enough nodes match the write concern's tags", info)
	}
	return nil
}
