//go:build unix

package main

import "syscall"

// mostConns is how many connections a process in the middle may have: two
// files each, and some to spare. A Go program may have as many files as the
// hard limit says; https://go.dev/issue/46279.
func mostConns() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0
	}
	return max(0, int(min(uint64(l.Max), 1<<16))-500) / 2
}
