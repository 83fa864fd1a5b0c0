//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package lab

import (
	"errors"
	"os"
	"syscall"
)

// serverAccount is this process's own user, unless that is root.
func serverAccount() (account, error) {
	if os.Getuid() == 0 {
		return unprivileged()
	}
	return account{uid: os.Getuid(), gid: os.Getgid()}, nil
}

// processAttr puts a program into a process group of its own, so that Ctrl-C at
// the terminal reaches us alone and we end it in order.
func processAttr(a account) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if a.other {
		attr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	dieWithParent(attr)
	return attr
}

// kill ends the program and its process group. The group outlives its leader
// while it has members, so after the program's end only a stranger could have
// the number, and nothing is sent.
func (p *process) kill() {
	select {
	case <-p.done:
	default:
		_ = syscall.Kill(-p.pid(), syscall.SIGKILL)
	}
}

// tryLock takes an exclusive lock that lasts until f is closed or this process
// ends. It reports false if another has it.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

func ownedByUs(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
