//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package lab

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
)

func serverAccount() (account, error) {
	return account{}, fmt.Errorf("%w that the lab can run on %s: use Linux, macOS or a BSD", ErrNoPostgres, runtime.GOOS)
}

func processAttr(account) *syscall.SysProcAttr { return nil }
func (p *process) kill()                       { _ = p.cmd.Process.Kill() }
func tryLock(*os.File) (bool, error)           { return true, nil }
func ownedByUs(os.FileInfo) bool               { return true }
