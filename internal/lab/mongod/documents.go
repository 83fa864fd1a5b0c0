package mongod

import "sync"

// documentLocks are the documents that writes are changing. The zero value is
// usable.
type documentLocks struct {
	mu   sync.Mutex
	busy map[string]chan struct{} // closed when it's free
}

// lock takes a document; the empty name needs none. Where somebody has it, it
// returns what is closed when it's free, and no unlock.
func (l *documentLocks) lock(name string) (unlock func(), free <-chan struct{}) {
	if name == "" {
		return func() {}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.busy[name]; c != nil {
		return nil, c
	}
	if l.busy == nil {
		l.busy = map[string]chan struct{}{}
	}
	mine := make(chan struct{})
	l.busy[name] = mine
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.busy, name)
		close(mine)
	}, nil
}
