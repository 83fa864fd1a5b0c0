package mongod

import (
	"context"
	"sync"
	"time"
)

// tickets let so many operations into the storage engine at a time. The others
// queue, and give up when their time is over
// (src/mongo/util/concurrency/ticketholder.cpp).
type tickets struct {
	mu    sync.Mutex
	total int
	out   int
	queue []chan struct{} // closed when its ticket is there
	stats ticketStats
}

// ticketStats have the names of a server's.
type ticketStats struct {
	addedToQueue, removedFromQueue, canceled int64
	started, finished                        int64
	queued, processing                       time.Duration // in all
}

// take waits for a ticket. Its only error is the context's.
func (t *tickets) take(ctx context.Context) error {
	t.mu.Lock()
	if t.out < t.total {
		t.out++
		t.stats.started++
		t.mu.Unlock()
		return nil
	}
	mine, begun := make(chan struct{}), time.Now()
	t.queue = append(t.queue, mine)
	t.stats.addedToQueue++
	t.mu.Unlock()
	select {
	case <-mine:
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.removedFromQueue++
	t.stats.queued += time.Since(begun)
	select {
	case <-mine: // it may have come just now
		t.stats.started++
		return nil
	default:
	}
	t.stats.canceled++
	for i, c := range t.queue {
		if c == mine {
			t.queue = append(t.queue[:i], t.queue[i+1:]...)
			break
		}
	}
	return ctx.Err()
}

// give returns a ticket that was taken at since, to whoever waits longest.
func (t *tickets) give(since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.finished++
	t.stats.processing += time.Since(since)
	if len(t.queue) == 0 {
		t.out--
		return
	}
	close(t.queue[0])
	t.queue = t.queue[1:]
}

// ticketsNow is what tickets are at a moment.
type ticketsNow struct {
	ticketStats
	total, out, waiting int
}

func (t *tickets) now() ticketsNow {
	t.mu.Lock()
	defer t.mu.Unlock()
	return ticketsNow{t.stats, t.total, t.out, len(t.queue)}
}
