//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package lab

import "syscall"

// dieWithParent does nothing: these systems have no such request. A server
// whose process was killed notices within a minute of the next start, which
// sweeps its directory, that its files are gone, and ends.
func dieWithParent(*syscall.SysProcAttr) {}
