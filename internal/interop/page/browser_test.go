package page

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/wirewait/wirewait/internal/testenv"
)

// patience is how long anything may take on a machine that does much else.
const patience = 2 * time.Minute

// tab is a page in a browser of its own.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	problems []string // of the console
}

// open starts Chromium and opens an address in a window of so many pixels.
func open(t *testing.T, address string, width, height int64) *tab {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		testenv.Missing(t, "chromium is not installed: apt-get install chromium fonts-inter")
	}
	o := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(patience),
		chromedp.NoSandbox, // root in a container can't have one
		chromedp.Flag("font-render-hinting", "none"), chromedp.Flag("lang", "en"))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), o...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(func() { chromedp.Cancel(ctx); cancel() })
	tb := &tab{t: t, ctx: ctx}
	tb.do(chromedp.EmulateViewport(width, height))
	go tb.listen()
	tb.do(chromedp.Navigate(address))
	return tb
}

// listen keeps what goes wrong in the page: an exception, a refusal of its policy.
func (tb *tab) listen() {
	for m, err := range chromedp.Console(tb.ctx) {
		if err != nil {
			return
		}
		if m.IsException() || m.Type == "error" || m.Type == "warning" {
			tb.mu.Lock()
			tb.problems = append(tb.problems, m.Text)
			tb.mu.Unlock()
		}
	}
}

// clean checks that nothing went wrong in the page, but what is excused.
func (tb *tab) clean(excused ...string) {
	tb.t.Helper()
	tb.mu.Lock()
	defer tb.mu.Unlock()
next:
	for _, p := range tb.problems {
		for _, e := range excused {
			if strings.Contains(p, e) {
				continue next
			}
		}
		tb.t.Errorf("the page's console: %s", p)
	}
}

func (tb *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	tb.t.Helper()
	ctx, cancel := context.WithTimeout(tb.ctx, patience)
	if chromedp.FromContext(tb.ctx).Target == nil { // a limit of the first would be the browser's
		ctx = tb.ctx
	}
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		tb.t.Fatal(err)
	}
}

// eval is a JavaScript expression's value.
func eval[T any](tb *tab, expression string, args ...any) T {
	tb.t.Helper()
	ctx, cancel := context.WithTimeout(tb.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](fmt.Sprintf(expression, args...)))
	if err != nil {
		tb.t.Fatalf("%s: %v", fmt.Sprintf(expression, args...), err)
	}
	return v
}

// until waits, without a limit but that of patience, for what must come to be.
func (tb *tab) until(expression string, args ...any) {
	tb.t.Helper()
	expression = fmt.Sprintf(expression, args...)
	for deadline := time.Now().Add(patience); !eval[bool](tb, "!!(%s)", expression); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.t.Fatalf("never: %s\n%s", expression, eval[string](tb, "document.body.innerText"))
		}
	}
}

// press presses keys, whatever has the focus.
func (tb *tab) press(keys ...string) {
	tb.t.Helper()
	for _, k := range keys {
		tb.do(chromedp.KeyEvent(k))
	}
}

func (tb *tab) click(css string) {
	tb.t.Helper()
	tb.do(chromedp.Click(chromedp.CSS(css)))
}

// text is an element's.
func (tb *tab) text(css string) string {
	tb.t.Helper()
	return eval[string](tb, "document.querySelector(%q).textContent", css)
}

// system says which theme the system has.
func (tb *tab) system(theme string) {
	tb.t.Helper()
	tb.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
		})
		return err
	}))
}

// scrollTo brings an element to the top of the window.
func (tb *tab) scrollTo(css string) {
	tb.t.Helper()
	eval[bool](tb, "(document.querySelector(%q).scrollIntoView(), true)", css)
}
