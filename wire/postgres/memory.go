package postgres

import (
	"fmt"

	"github.com/wirewait/wirewait/wire"
)

// memory bounds what a peer can make a session remember: a client that sends
// statements without end before it reads a result, a server that answers what
// nobody asked.
type memory struct {
	limit int  // bytes
	full  bool // it was exceeded while decoding
}

const (
	defaultMemory = 256 << 20

	// What is remembered costs, in bytes, with the room that a growing queue
	// has in reserve. TestMemory_Costs holds them against the sizes of types.
	costExchange = 960 // a wire.Exchange, its call, its item and two marks
	costRequest  = 160 // with the tail and the mark that a Sync has
	costFact     = 96  // of a message that was decoded and whose turn has not come
)

func newMemory(limit int) memory {
	if limit <= 0 {
		limit = defaultMemory
	}
	return memory{limit: limit}
}

// framed is what framing has led to.
func (s *session) framed() int {
	return s.open.Len()*costExchange + s.requests.Len()*costRequest
}

// crowded reports that no more may be framed. It doesn't ask how much of what
// was framed is decoded, so that it depends on the streams alone.
func (s *session) crowded() bool { return s.framed() > s.memory.limit }

// flooded reports that no more may be learned.
func (s *session) flooded() bool { return s.framed()+s.facts()*costFact > s.memory.limit }

// facts is how many wait for their turn.
func (s *session) facts() int {
	return s.decoders[wire.ToServer].facts.Len() + s.decoders[wire.ToClient].facts.Len()
}

func (s *session) errCrowded() error {
	return fmt.Errorf("%w: %d exchanges and %d requests without a reply take more than %d MiB",
		wire.ErrMalformed, s.open.Len(), s.requests.Len(), s.memory.limit>>20)
}

// overflow gives up, once, while decoding.
func (s *session) overflow(dir wire.Direction) {
	if s.memory.full {
		return
	}
	s.memory.full = true
	s.trouble("backlog")
	if s.err == nil {
		s.giveUp(dir, s.decoders[dir].off, s.errCrowded())
	}
}
