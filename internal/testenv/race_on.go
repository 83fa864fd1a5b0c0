//go:build race

package testenv

// Race: the race detector is on. It makes programs several times slower, and
// sync.Pool forget at random.
const Race = true
