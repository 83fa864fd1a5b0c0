package lab

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// A workspace is one server's (later: one cluster's) directory, beside the
// template that all of a user's share:
//
//	TMP/wirewait-lab-UID/            ours alone; 0711, so that the server's user passes
//	    lock                         flock: held while anything here is made or swept
//	    template-15.20-1a2b3c4d/     what initdb made, copied for each data directory
//	    run-123456789/               a workspace
//	        owner                    flock: held while its process lives
//	        primary/  primary.log    a node's data directory and log
//
// A lock dies with its process. So whoever comes next can tell a workspace in
// use from one whose process was killed, and removes the latter.
type workspace struct {
	bin     binaries
	account account
	base    string
	dir     string
	owner   *os.File
	once    sync.Once
}

// newWorkspace makes a workspace, and the template if there is none yet.
func newWorkspace(ctx context.Context, bin binaries) (_ *workspace, err error) {
	who, err := serverAccount()
	if err != nil {
		return nil, err
	}
	w := &workspace{bin: bin, account: who}
	if w.base, err = baseDir(); err != nil {
		return nil, err
	}
	unlock, err := w.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	w.sweep()
	if err := w.makeTemplate(ctx); err != nil {
		return nil, err
	}
	if w.dir, err = os.MkdirTemp(w.base, "run-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.remove())
		}
	}()
	if err := os.Chmod(w.dir, 0o711); err != nil {
		return nil, err
	}
	if w.owner, err = os.OpenFile(filepath.Join(w.dir, "owner"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if _, err := tryLock(w.owner); err != nil {
		return nil, err
	}
	return w, nil
}

// baseDir is a directory that belongs to this user and that no other can
// change: in a shared /tmp somebody else may have made it first.
func baseDir() (string, error) {
	tmp, err := filepath.Abs(os.TempDir())
	if err != nil {
		return "", err
	}
	base := filepath.Join(tmp, fmt.Sprintf("wirewait-lab-%d", os.Getuid()))
	if err := os.Mkdir(base, 0o711); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(base)
	if err != nil {
		return "", err
	}
	if !info.IsDir() || !ownedByUs(info) {
		return "", fmt.Errorf("%s isn't a directory of this user: remove it or set TMPDIR", base)
	}
	return base, os.Chmod(base, 0o711)
}

// lock waits for the lock over base. ctx ends the wait.
func (w *workspace) lock(ctx context.Context) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(w.base, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		ok, err := tryLock(f)
		if err == nil && !ok {
			err = pause(ctx, 10*time.Millisecond)
		}
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("wait for %s: %w", f.Name(), err)
		}
		if ok {
			return func() { f.Close() }, nil
		}
	}
}

// sweep removes what processes left behind that were killed. It's called under
// the lock and is best effort: what can't be removed is in nobody's way.
func (w *workspace) sweep() {
	half, _ := filepath.Glob(filepath.Join(w.base, "making-*"))
	for _, dir := range half {
		os.RemoveAll(dir)
	}
	runs, _ := filepath.Glob(filepath.Join(w.base, "run-*"))
	for _, dir := range runs {
		f, err := os.OpenFile(filepath.Join(dir, "owner"), os.O_RDWR, 0)
		if err == nil {
			dead, _ := tryLock(f)
			f.Close()
			if !dead {
				continue
			}
		}
		os.RemoveAll(dir)
	}
}

// templateAge bounds a template's life: systems that clean /tmp by age take
// single files out of it.
const templateAge = 24 * time.Hour

// template is the path of what initdb made. Two installations of one version
// don't share it, for they may have been built with different options.
func (w *workspace) template() string {
	build := crc32.ChecksumIEEE([]byte(w.bin.dir + fmt.Sprint(w.account.uid)))
	return filepath.Join(w.base, fmt.Sprintf("template-%s-%08x", w.bin.version, build))
}

// makeTemplate runs initdb unless there is a young template. Under the lock.
func (w *workspace) makeTemplate(ctx context.Context) error {
	info, err := os.Stat(w.template())
	if err == nil && time.Since(info.ModTime()) < templateAge {
		return nil
	}
	if err := os.RemoveAll(w.template()); err != nil {
		return err
	}
	making, err := os.MkdirTemp(w.base, "making-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(making)
	if err := w.account.own(making); err != nil {
		return err
	}
	// Small segments: a data directory of 30 MB instead of 60.
	err = w.run(ctx, "initdb", "-D", making, "-U", "postgres", "-A", "trust", "-E", "UTF8",
		"--locale=C", "--no-sync", "--wal-segsize=1")
	if err != nil {
		return err
	}
	now := time.Now()
	if err := os.Chtimes(making, now, now); err != nil {
		return err
	}
	return os.Rename(making, w.template())
}

// dataDir copies the template to a node's data directory. A tree fresh from
// initdb was shut down cleanly, so it can also become a standby of another copy.
func (w *workspace) dataDir(ctx context.Context, node string) (string, error) {
	unlock, err := w.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	dir := filepath.Join(w.dir, node)
	if err := w.account.copyTree(w.template(), dir); err != nil {
		return "", fmt.Errorf("copy a data directory: %w", err)
	}
	return dir, nil
}

// run runs one of the server's programs as the server's user to its end.
func (w *workspace) run(ctx context.Context, program string, args ...string) error {
	var out strings.Builder
	cmd := w.command(program, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	p, err := spawn(cmd)
	if err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.kill()
		<-p.done
		return fmt.Errorf("%s: %w", program, ctx.Err())
	}
	if p.err != nil {
		return fmt.Errorf("%s: %w: %s", program, p.err, strings.TrimSpace(out.String()))
	}
	return nil
}

// remove deletes the workspace. The servers in it must have ended.
func (w *workspace) remove() (err error) {
	w.once.Do(func() {
		err = os.RemoveAll(w.dir)
		if w.owner != nil {
			w.owner.Close()
		}
	})
	return err
}

// pause waits for d or for the end of ctx, whose error it returns.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
