package page

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// shoot writes a picture of what is seen, if they were asked for.
func (tb *tab) shoot(name string, how chromedp.Action[[]byte]) {
	tb.t.Helper()
	dir := os.Getenv("WIREWAIT_SHOTS")
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(tb.ctx, how)
	if err != nil {
		tb.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644); err != nil {
		tb.t.Fatal(err)
	}
}

// TestShots makes the pictures of docs/page.md. What is on them is checked by the
// other tests.
func TestShots(t *testing.T) {
	if os.Getenv("WIREWAIT_SHOTS") == "" {
		t.Skip("it makes the pictures of docs/page.md: make page")
	}
	lab := startLab(t)
	write(t, lab.uri)
	lab.v1(t, "PUT", "/v1/rules", `[
		{"name": "late-orders", "when": {"collection": "orders"}, "effect": "latency", "with": {"delay": "40ms"}, "limit": {"probability": "10%"}},
		{"name": "lost-acks", "when": {"command": "insert", "write_concern": "majority", "application": "nobody"}, "effect": "lose_reply", "limit": {"probability": "1%"}}]`, nil)
	tb := open(t, lab.page, 1280, 900)
	tb.system("light")
	tb.until("document.querySelectorAll('#concerns tbody tr').length === %d", len(concerns))
	points := cmp.Or(os.Getenv("WIREWAIT_SHOTS_SECONDS"), "110")
	tb.until("document.querySelector('.lines .lines path').getAttribute('d').split('L').length > %s * 0.6", points)
	tb.setRTT("app-rs0.a", "60ms")
	tb.until("document.querySelector('.lines .lines path').getAttribute('d').split('L').length > %s", points)
	tb.openWrite("majority")
	tb.scrollTo("#connections")
	tb.until("document.querySelectorAll('#connection-rows tr').length > 10")
	tb.scrollTo("header")
	tb.do(chromedp.EmulateViewport(1280, 1185))
	tb.shoot("page-light", chromedp.CaptureScreenshot())
	tb.shoot("page-write", chromedp.Screenshot(chromedp.CSS("#writes")))
	tb.scrollTo("header")
	tb.do(chromedp.EmulateViewport(1280, 900))
	tb.system("dark")
	tb.shoot("page-dark", chromedp.CaptureScreenshot())
	tb.do(chromedp.EmulateViewport(360, 780, chromedp.EmulateMobile, chromedp.EmulateScale(2)))
	tb.shoot("page-phone", chromedp.CaptureScreenshot())
	tb.scrollTo("#write .title")
	tb.shoot("page-phone-write", chromedp.CaptureScreenshot())
	tb.clean()
}
