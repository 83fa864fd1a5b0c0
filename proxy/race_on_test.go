//go:build race

package proxy

// raceDetector: it makes sync.Pool forget at random.
const raceDetector = true
