//go:build !linux

package proxy

func newAlarm(c *clock) (alarm, error) { return timerAlarm{c}, nil }
