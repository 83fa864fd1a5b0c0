//go:build !race

package testenv

// Race: the race detector is on.
const Race = false
