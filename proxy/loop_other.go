//go:build !linux

package proxy

// hasEpoll says whether there are event loops here.
const hasEpoll = false
