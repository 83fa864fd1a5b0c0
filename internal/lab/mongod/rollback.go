package mongod

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// rollBack undoes what this member has and its source hasn't: writes of a former
// primary that no majority had got. It reads the source's oplog backwards to
// where both agree, drops what comes after, and makes the data anew of the rest.
func (s *Server) rollBack(source int) error {
	s.mu.Lock()
	if s.set.state != stateSecondary {
		s.mu.Unlock()
		return nil
	}
	s.set.state = stateRollback
	s.set.turned()
	s.inbox.clear()
	s.mu.Unlock()
	common, err := s.commonPoint(source)
	if err == nil {
		s.drain()
		err = s.dropAfter(common)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set.state == stateRollback {
		s.set.state = stateSecondary
		s.set.turned()
	}
	return err
}

// commonPoint is the last entry that both have.
func (s *Server) commonPoint(source int) (OpTime, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.set.electionTimeout())
	defer cancel()
	conn, err := s.dialPeer(ctx, source, driverFetcher, "Rollback")
	if err != nil {
		return OpTime{}, err
	}
	defer conn.close()
	reply, err := conn.call(ctx, s.set.electionTimeout(), s.gossiped(bson.D{
		{Key: "find", Value: "oplog.rs"}, {Key: "sort", Value: bson.D{{Key: "$natural", Value: int32(-1)}}},
		{Key: "$readPreference", Value: bson.D{{Key: "mode", Value: "secondaryPreferred"}}},
	}, "local"))
	for batch := "firstBatch"; err == nil; batch = "nextBatch" {
		entries, id, err := readBatch(reply, batch)
		if err != nil {
			return OpTime{}, err
		}
		if at, ok := s.newestOf(entries); ok {
			return at, nil
		}
		if id == 0 {
			return OpTime{}, fmt.Errorf("nothing in common: %w", errDiverged)
		}
		reply, err = conn.call(ctx, s.set.electionTimeout(), s.gossiped(bson.D{
			{Key: "getMore", Value: id}, {Key: "collection", Value: "oplog.rs"}, {Key: "batchSize", Value: int32(10_000)}}, "local"))
		if err != nil {
			return OpTime{}, err
		}
	}
	return OpTime{}, err
}

// newestOf finds the newest entry that this member has too, of some that are
// ordered from new to old.
func (s *Server) newestOf(entries []*entry) (OpTime, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range entries {
		if s.set.oplog.has(e.OpTime) {
			return e.OpTime, true
		}
	}
	return OpTime{}, false
}

func (s *Server) dropAfter(common OpTime) error {
	if err := s.journal.flush(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.set
	if common.Before(r.committed.OpTime) {
		return errors.New("a rollback would undo what a majority has")
	}
	log := r.oplog[:r.oplog.from(common.TS)+1]
	if err := s.journal.truncate(log[len(log)-1].end); err != nil {
		return err
	}
	r.rollbacks++
	s.replay(log[:len(log):len(log)])
	return nil
}
