package mongod

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// config is a set's configuration. It never changes.
type config struct {
	name     string
	id       bson.ObjectID // replicaSetId
	members  []configMember
	chaining bool
	modes    map[string]map[string]int
	// Times in milliseconds, as the configuration has them.
	electionTimeout, heartbeatInterval int64
}

type configMember struct {
	host      string // as the other members and drivers dial it
	votes     int
	priority  float64
	hidden    bool
	delaySecs int64
	tags      bson.D
	memberID  int32
}

// Version and term of the only configuration.
const (
	configVersion = int64(1)
	configTerm    = int64(1)
)

// index is the place of the member with this _id, -1 if there's none.
func (c *config) index(memberID int64) int {
	return slices.IndexFunc(c.members, func(m configMember) bool { return int64(m.memberID) == memberID })
}

func (c *config) voters() (n int) {
	for _, m := range c.members {
		n += m.votes
	}
	return n
}

// majority of the votes, which is what an election and a majority write need:
// every voter bears data here.
func (c *config) majority() int { return c.voters()/2 + 1 }

// majorityOf is the furthest that n of the marks have reached.
func majorityOf(marks []mark, n int) mark {
	slices.SortFunc(marks, func(a, b mark) int { return a.Compare(b.OpTime) })
	return marks[len(marks)-n]
}

// document is what replSetGetConfig shows (src/mongo/db/repl/repl_set_config.idl).
func (c *config) document() bson.D {
	members := bson.A{}
	for _, m := range c.members {
		tags := m.tags
		if tags == nil {
			tags = bson.D{}
		}
		members = append(members, bson.D{
			{Key: "_id", Value: m.memberID}, {Key: "host", Value: m.host}, {Key: "arbiterOnly", Value: false},
			{Key: "buildIndexes", Value: true}, {Key: "hidden", Value: m.hidden}, {Key: "priority", Value: m.priority},
			{Key: "tags", Value: tags}, {Key: "secondaryDelaySecs", Value: m.delaySecs}, {Key: "votes", Value: int32(m.votes)},
		})
	}
	return bson.D{
		{Key: "_id", Value: c.name}, {Key: "version", Value: int32(configVersion)}, {Key: "term", Value: configTerm},
		{Key: "members", Value: members}, {Key: "protocolVersion", Value: int64(1)},
		{Key: "writeConcernMajorityJournalDefault", Value: true},
		{Key: "settings", Value: bson.D{
			{Key: "chainingAllowed", Value: c.chaining},
			{Key: "heartbeatIntervalMillis", Value: int32(c.heartbeatInterval)},
			{Key: "heartbeatTimeoutSecs", Value: int32(heartbeatTimeout.Seconds())},
			{Key: "electionTimeoutMillis", Value: int32(c.electionTimeout)},
			{Key: "catchUpTimeoutMillis", Value: int32(-1)}, {Key: "catchUpTakeoverDelayMillis", Value: int32(30000)},
			{Key: "getLastErrorModes", Value: c.modesDocument()},
			{Key: "getLastErrorDefaults", Value: bson.D{{Key: "w", Value: int32(1)}, {Key: "wtimeout", Value: int32(0)}}},
			{Key: "replicaSetId", Value: c.id},
		}},
	}
}
