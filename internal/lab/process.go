package lab

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// account is the user that a server runs as, and owns its files.
type account struct {
	uid, gid int
	// other: it isn't this process's own, so that files must be handed over.
	other bool
}

// unprivileged picks the account for a root process, as which PostgreSQL
// refuses to run.
func unprivileged() (account, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err1 == nil && err2 == nil && uid != 0 {
			return account{uid: uid, gid: gid, other: true}, nil
		}
	}
	return account{}, fmt.Errorf("postgresql doesn't run as root and there is neither a user postgres nor nobody: run as another user")
}

// own hands a path over to the account.
func (a account) own(path string) error {
	if !a.other {
		return nil
	}
	return os.Lchown(path, a.uid, a.gid)
}

// writeFile writes a file that only the account can read.
func (a account) writeFile(path string, data []byte) error {
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return err
	}
	return a.own(path)
}

// copyTree copies directories and plain files, the only things that initdb makes.
func (a account) copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		dest := filepath.Join(to, rel)
		if d.IsDir() {
			err = os.Mkdir(dest, 0o700)
		} else {
			err = copyFile(path, dest)
		}
		if err != nil {
			return err
		}
		return a.own(dest)
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// command prepares a server program to run as the server's user, in a directory
// that this user may enter, and untouched by the caller's PG* variables.
func (w *workspace) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(w.bin.path(program), args...)
	cmd.Dir = "/"
	cmd.SysProcAttr = processAttr(w.account)
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "PG") && !strings.HasPrefix(kv, "LC_") && !strings.HasPrefix(kv, "LANG") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C")
	return cmd
}

// process is a started program.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // of its end; read after done is closed
}

// spawn starts cmd from a thread that lives as long as the program: the signal
// that Linux sends a child at its parent's death is sent at the death of the
// *thread* that started it (prctl(2), PR_SET_PDEATHSIG).
func spawn(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go p.keep(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) keep(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	close(p.done)
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// signal has no effect on a program that has ended.
func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// wait reports whether the program ended within d.
func (p *process) wait(d time.Duration) bool {
	select {
	case <-p.done:
		return true
	case <-time.After(d):
		return false
	}
}
