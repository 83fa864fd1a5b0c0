package page

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// soon waits, without a limit but that of patience, for what must come to be.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// focused describes what has the focus.
const focused = `(e => e.id || e.name && e.name + " " + e.value || e.getAttribute("aria-label") || e.className || e.closest("[data-key]")?.dataset.key || e.tagName)(document.activeElement)`

// tabTo presses the tab key until something has the focus.
func (tb *tab) tabTo(condition string) {
	tb.t.Helper()
	for range 120 {
		tb.press(kb.Tab)
		if eval[bool](tb, "!!(%s)", condition) {
			if !eval[bool](tb, `document.activeElement.matches(":focus-visible") && (s => s.outlineStyle !== "none")(getComputedStyle(document.activeElement.closest(".choice") ?? document.activeElement))`) {
				tb.t.Errorf("%s has the focus, and nobody sees it", eval[string](tb, "%s", focused))
			}
			return
		}
	}
	tb.t.Fatalf("the tab key never leads to %s", condition)
}

func TestPage_ByKeyboardOnly(t *testing.T) {
	lab := startLab(t)
	stop := write(t, lab.uri)
	tb := open(t, lab.page, 1280, 900)
	tb.allConcerns()
	tb.until("document.querySelectorAll('#write-rows li').length === 12")
	stop()

	tb.tabTo(`document.activeElement.id === "pause"`)
	tb.press(kb.Enter)
	tb.until(`document.querySelector("#state").textContent === "paused" && document.activeElement.ariaPressed === "true"`)
	tb.press(kb.Enter)
	tb.until(`document.querySelector("#state").textContent.startsWith("running")`)
	tb.tabTo(`document.activeElement.id === "theme"`)
	tb.press(kb.Enter)
	tb.until(`document.documentElement.dataset.theme === "light"`)
	tb.tabTo(`document.activeElement.name === "quantile"`)
	tb.press(kb.ArrowLeft)
	tb.until(`document.querySelector("#readout").textContent.startsWith("p95")`)
	tb.tabTo(`document.activeElement.matches("svg.lines")`)
	tb.press(kb.ArrowLeft, kb.ArrowLeft, kb.ArrowLeft)
	tb.until(`/^[1-9]\d* s ago, p95/.test(document.querySelector("#readout").textContent)`)
	tb.tabTo(fmt.Sprintf(`document.activeElement.matches("[data-key='%s'] input[type=text]")`, appLink))
	tb.press("7ms", kb.Enter)
	tb.until(`[...document.querySelectorAll(".marks text")].some(t => t.textContent === "%s 7ms")`, appLink)
	tb.tabTo(`document.activeElement.matches("#write-rows li:first-child button")`)
	tb.press(kb.ArrowDown, kb.Enter)
	tb.until(`document.querySelector("#write .bars") && document.querySelector("#write-rows li:nth-child(2) button").ariaExpanded === "true"`)
	tb.press(kb.Escape)
	tb.until(`!document.querySelector("#write .bars")`)
	tb.clean()
}

// TestPage_EverythingHasAName asks the browser what it tells a screen reader.
func TestPage_EverythingHasAName(t *testing.T) {
	lab := startLab(t)
	write(t, lab.uri)
	tb := open(t, lab.page, 1280, 900)
	tb.allConcerns()
	tb.openWrite("majority")
	named := 0
	tb.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		tree, err := chromedp.Call(ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		if err != nil {
			return err
		}
		for _, n := range tree.Nodes {
			if n.Ignored || n.Role == nil {
				continue
			}
			role := fmt.Sprintf("%s", n.Role.Value)
			switch role {
			case `"button"`, `"textbox"`, `"slider"`, `"combobox"`, `"radio"`, `"image"`, `"region"`, `"link"`, `"group"`, `"table"`, `"heading"`:
				if n.Name == nil || len(n.Name.Value) <= len(`""`) {
					t.Errorf("a %s (%v) has no name", role, n.Description)
				}
				named++
			}
		}
		return nil
	}))
	if named < 50 {
		t.Errorf("only %d elements were looked at", named)
	}
	tb.clean()
}

// contrasts are texts with less contrast to what is behind them than WCAG 2.2
// asks for (1.4.3: 4.5 to 1).
const contrasts = `(() => {
	const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
	const rgb = colour => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
	const light = c => { const [r, g, b] = c.map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; } return [255, 255, 255, 255]; };
	const bad = [];
	let seen = 0;
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let n = walk.nextNode(); n; n = walk.nextNode()) {
		const e = n.parentElement;
		if (!n.textContent.trim() || !e.checkVisibility() || e.closest("noscript, option")) continue;
		const style = getComputedStyle(e);
		const a = light(rgb(e.closest("svg") ? style.fill : style.color)), b = light(behind(e));
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		seen++;
		if (ratio < 4.5) bad.push(n.textContent.trim() + " " + ratio.toFixed(2));
	}
	return seen < 100 ? ["only " + seen + " texts were looked at"] : [...new Set(bad)];
})()`

func TestPage_LightAndDark(t *testing.T) {
	lab := startLab(t)
	write(t, lab.uri)
	tb := open(t, lab.page, 1280, 900)
	tb.system("light")
	tb.allConcerns()
	tb.openWrite("majority")
	ground := func() string { return eval[string](tb, "getComputedStyle(document.body).backgroundColor") }
	light := ground()
	tb.system("dark")
	tb.until("getComputedStyle(document.body).backgroundColor !== %q", light)
	dark := ground()
	for theme, step := range map[string]func(){"dark": func() {}, "light": func() { tb.system("light") }} {
		step()
		if bad := eval[[]string](tb, "%s", contrasts); len(bad) > 0 {
			t.Errorf("%s: hard to read: %q", theme, bad)
		}
	}
	// The button wins over the system, and is remembered.
	tb.system("light")
	tb.click("#theme")
	tb.click("#theme")
	tb.until("getComputedStyle(document.body).backgroundColor === %q", dark)
	tb.do(chromedp.Reload())
	tb.until("document.querySelector('#theme')?.textContent === 'Theme: dark' && getComputedStyle(document.body).backgroundColor === %q", dark)
	tb.clean()
}

func TestPage_OnAPhone(t *testing.T) {
	lab := startLab(t)
	write(t, lab.uri)
	lab.v1(t, "PUT", "/v1/rules", `[{"name": "a-rule-with-a-long-name", "when": {"collection": "orders", "application": "some-service"}, "effect": "latency", "with": {"delay": "40ms"}}]`, nil)
	tb := open(t, lab.page, 360, 740)
	tb.do(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile, chromedp.EmulateTouch))
	tb.allConcerns()
	tb.until("document.querySelectorAll('#rule-rows tr').length === 1")
	tb.openWrite("majority")
	if wide := eval[int](tb, "document.documentElement.scrollWidth"); wide > 360 {
		t.Errorf("the page is %d pixels wide", wide)
	}
	// What lies outside must be in something that scrolls.
	if out := eval[[]string](tb, `[...document.querySelectorAll("body *")].filter(e => e.checkVisibility() && !e.closest(".scroll, .hidden, .skip, svg, option, .choice input") &&
		(r => r.width > 0 && (r.right > 361 || r.left < -1))(e.getBoundingClientRect())).map(e => e.tagName + "." + e.className)`); len(out) > 0 {
		t.Errorf("outside of the screen: %q", out)
	}
	if n := eval[int](tb, `[...document.querySelectorAll("#concerns .stack, #rule-rows code")].filter(e => e.getBoundingClientRect().right <= 360 && e.getBoundingClientRect().width > 100).length`); n != len(concerns)+1 {
		t.Errorf("%d bars and rules are seen whole, want %d", n, len(concerns)+1)
	}
	if small := eval[[]string](tb, `[...document.querySelectorAll("button, select, input:not([type=radio]), .choice span")].filter(e => e.checkVisibility() && e.getBoundingClientRect().height < 24).map(e => e.outerHTML.slice(0, 80))`); len(small) > 0 {
		t.Errorf("hard to hit with a finger (WCAG 2.5.8: 24 pixels): %q", small)
	}
	tb.clean()
}

// TestPage_NothingJumps counts what moves by itself while figures change, as
// browsers do: 0.1 is called good (web.dev/articles/cls).
func TestPage_NothingJumps(t *testing.T) {
	lab := startLab(t)
	write(t, lab.uri)
	tb := open(t, lab.page, 1280, 900)
	tb.allConcerns()
	tb.until("document.querySelectorAll('#write-rows li').length === 12")
	eval[bool](tb, `(window.moved = [], new PerformanceObserver(list => list.getEntries().forEach(e => moved.push([e.value, ...e.sources.map(s => s.node?.outerHTML?.slice(0, 80) ?? "")]))).observe({type: "layout-shift"}), true)`)
	points := "document.querySelector('.lines .lines path').getAttribute('d').split('L').length"
	tb.until("%s > %d", points, eval[int](tb, "%s", points)+8) // seconds
	if sum := eval[float64](tb, "moved.reduce((n, m) => n + m[0], 0)"); sum > 0.02 {
		t.Errorf("things moved, by %.3f: %q", sum, eval[[]string](tb, "moved.map(String)"))
	}
	tb.clean()
}

func TestPage_AsksForTheToken(t *testing.T) {
	lab := startLab(t)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("open-sesame-0123456789\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := start(t, "run", "--listen", "127.0.0.1:0", "--upstream", lab.said(t, `(?m)^a, primary\s+mongodb://([^/]+)/`), "--admin", "127.0.0.1:0", "--admin-token-file", file)
	tb := open(t, w.page, 800, 600)
	tb.until(`document.activeElement.id === "token-text" && !document.querySelector("#main").checkVisibility()`)
	tb.press("wrong", kb.Enter)
	tb.until(`document.querySelector("#token-wrong").textContent === "That isn't its token."`)
	eval[bool](tb, `document.querySelector("#token-text").select() ?? true`)
	tb.press("open-sesame-0123456789", kb.Enter)
	tb.until(`document.querySelector("#main").checkVisibility() && document.querySelectorAll("#link-rows .link").length === 1`)
	if kept := eval[string](tb, `JSON.stringify([Object.keys(sessionStorage), Object.keys(localStorage), document.cookie, location.href.includes("sesame")])`); kept != `[["wirewait.token"],[],"",false]` {
		t.Errorf("kept: %s", kept)
	}
	tb.clean("401")
}
