//go:build !linux

package proxy

// hasEpoll says whether there are event loops here.
const hasEpoll = false

type loops struct{}

func (*loops) close() {}

func (*conn) onLoop(*established) (driver, func()) { return nil, nil }
