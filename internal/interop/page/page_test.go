package page

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/wirewait/wirewait/proxy/admin"
)

// appLink is the one that all writes take: to the primary.
const appLink = "app-rs0.a"

// setRTT types a round trip into a link's field.
func (tb *tab) setRTT(link, rtt string) {
	tb.t.Helper()
	field := fmt.Sprintf("document.querySelector(\"[data-key='%s'] input[type=text]\")", link)
	eval[bool](tb, "(%s.focus(), %s.select(), true)", field, field)
	tb.press(rtt, kb.Enter)
}

// openWrite opens the first write in the list with a concern.
func (tb *tab) openWrite(concern string) {
	tb.t.Helper()
	button := "[...document.querySelectorAll('#write-rows button')].find(b => b.querySelector('.kind').textContent === '" + concern + "')"
	tb.until("(%s, true) && (%s?.click(), document.querySelector('#write .bars'))", button, button)
}

// allConcerns waits until every kind of write has a row.
func (tb *tab) allConcerns() {
	tb.t.Helper()
	tb.until("document.querySelectorAll('#concerns tbody tr').length === %d", len(concerns))
}

// chartValue is what the chart says of a concern at its line's end, in ms; 0: it
// says nothing.
func (tb *tab) chartValue(concern string) float64 {
	tb.t.Helper()
	v, _ := strconv.ParseFloat(eval[string](tb,
		"[...document.querySelectorAll('.labels text')].find(t => t.firstChild.textContent.trim() === %q)?.lastChild.textContent ?? ''", concern), 64)
	return v
}

func TestPage_ADelayMovesTheChart(t *testing.T) {
	lab := startLab(t)
	write(t, lab.uri)
	tb := open(t, lab.page, 1280, 900)
	tb.allConcerns()
	tb.click("#quantile label:first-of-type") // the median
	tb.until("[...document.querySelectorAll('.labels text')].length === %d", len(concerns))
	const added = 2000
	if before := tb.chartValue("w:1"); before <= 0 || before >= added {
		t.Fatalf("w:1 takes %v ms before", before)
	}
	tb.setRTT(appLink, "2s")
	tb.until("[...document.querySelectorAll('.marks text')].some(t => t.textContent === '%s 2s')", appLink)
	soon(t, "the chart shows the delay", func() bool { return tb.chartValue("w:1") >= added*0.99 })
	var l admin.Link
	lab.v1(t, "GET", "/v1/links/"+appLink, "", &l)
	if l.Delay.RTT != "2s" {
		t.Errorf("the link has %s", l.Delay.RTT)
	}
	tb.setRTT(appLink, "fast")
	tb.until("document.querySelector(\"[data-key='%s'] .wrong\").textContent.includes('80ms')", appLink)
	lab.v1(t, "GET", "/v1/links/"+appLink, "", &l)
	if l.Delay.RTT != "2s" {
		t.Errorf("refused, and the link has %s", l.Delay.RTT)
	}
	tb.clean("400") // the browser notes each answer that is a refusal
}

func TestPage_TheSliderChangesADelay(t *testing.T) {
	lab := startLab(t)
	tb := open(t, lab.page, 1280, 900)
	slider := fmt.Sprintf("document.querySelector(\"[data-key='%s'] input[type=range]\")", appLink)
	tb.until("%s", slider)
	eval[bool](tb, "%s.focus() ?? true", slider)
	tb.press(kb.PageUp, kb.ArrowRight, kb.ArrowRight)
	wanted := eval[string](tb, "%s.value", slider) + "ms"
	if wanted == "0ms" {
		t.Fatal("keys don't move the slider")
	}
	soon(t, "the link has the slider's value", func() bool {
		var l admin.Link
		lab.v1(t, "GET", "/v1/links/"+appLink, "", &l)
		return l.Delay.RTT == wanted
	})
	tb.until("document.querySelector(\"[data-key='%s'] input[type=text]\").value === %q", appLink, wanted)
	tb.clean()
}

// TestPage_FiguresAreThoseOfV1 compares what stands still: the writers have gone.
func TestPage_FiguresAreThoseOfV1(t *testing.T) {
	lab := startLab(t)
	stop := write(t, lab.uri)
	tb := open(t, lab.page, 1280, 900)
	tb.allConcerns()
	tb.until("document.querySelectorAll('#write-rows li').length === 12")
	stop()
	tb.click("#span label:last-child")
	var waits admin.Waits
	soon(t, "both have the last write", func() bool {
		waits = admin.Waits{}
		lab.v1(t, "GET", "/v1/waits?by=concern", "", &waits)
		var sum uint64
		for _, r := range waits.Rows {
			sum += r.Count
		}
		return eval[string](tb, "String([...document.querySelectorAll('#concerns tbody tr')].reduce((n, r) => n + Number(r.cells[1].textContent.replaceAll(',', '')), 0))") == fmt.Sprint(sum)
	})
	if len(waits.Rows) != len(concerns) {
		t.Fatalf("%d kinds of writes, want %d", len(waits.Rows), len(concerns))
	}
	for _, r := range waits.Rows {
		cells := eval[[]string](tb, "[...[...document.querySelectorAll('#concerns tbody tr')].find(r => r.cells[0].textContent === %q).cells].map(c => c.textContent)", r.WaitsFor)
		for i, want := range []float64{float64(r.Count), r.Total.P50, r.Total.P95, r.Total.P99, r.Total.Mean} {
			sameFigure(t, fmt.Sprintf("%s, column %d", r.WaitsFor, i+1), cells[i+1], want)
		}
		said := eval[string](tb, "[...document.querySelectorAll('#concerns tbody tr')].find(r => r.cells[0].textContent === %q).querySelector('.stack').getAttribute('aria-label')", r.WaitsFor)
		for part, want := range map[string]float64{"request": r.Request.Mean, "server": r.Server.Mean, "replication": r.Replication.Mean, "reply": r.Reply.Mean} {
			if _, after, ok := strings.Cut(said, part+" "); ok {
				figure, _, _ := strings.Cut(after, " ")
				sameFigure(t, r.WaitsFor+", "+part, figure, want)
			} else if want > 0 {
				t.Errorf("%s: the bar lacks %s: %s", r.WaitsFor, part, said)
			}
		}
		for member, n := range r.ReleasedBy {
			if !strings.Contains(cells[7], fmt.Sprintf("%s %d", member, n)) {
				t.Errorf("%s: released by %q, want %s %d", r.WaitsFor, cells[7], member, n)
			}
		}
	}
	var links admin.Links
	lab.v1(t, "GET", "/v1/links", "", &links)
	for _, l := range links.Links {
		row := tb.text("#link-rows [data-key='" + l.Name + "']")
		if len(l.Sources) == 0 && eval[string](tb, "document.querySelector(\"[data-key='%s'] input[type=text]\").value.replace(/^0ms$/, '0s')", l.Name) != l.Delay.RTT {
			t.Errorf("%s: the field doesn't say %s", l.Name, l.Delay.RTT)
		}
		for _, want := range append([]string{l.Listen, l.Upstream}, sources(&l)...) {
			if !strings.Contains(row, want) {
				t.Errorf("%s: %q lacks %s", l.Name, row, want)
			}
		}
	}
	tb.clean()
}

func sources(l *admin.Link) (words []string) {
	for _, s := range l.Sources {
		words = append(words, s.Name+" "+s.Delay.RTT)
	}
	return words
}

// sameFigure holds what is shown, three figures or so, against what it's of.
func sameFigure(t *testing.T, what, shown string, want float64) {
	t.Helper()
	got, err := strconv.ParseFloat(strings.ReplaceAll(shown, ",", ""), 64)
	if err != nil || math.Abs(got-want) > math.Max(0.0051, want*0.006) {
		t.Errorf("%s: the page says %q, /v1 %v", what, shown, want)
	}
}

func TestPage_OpensAWrite(t *testing.T) {
	lab := startLab(t)
	stop := write(t, lab.uri)
	tb := open(t, lab.page, 1280, 900)
	tb.until("[...document.querySelectorAll('#write-rows .by')].some(b => b.textContent.startsWith('rs0.'))")
	stop()
	var all admin.Writes
	soon(t, "the list is that of /v1, which a slower write may have changed", func() bool {
		all = admin.Writes{}
		lab.v1(t, "GET", "/v1/writes?limit=10000", "", &all)
		for _, id := range eval[[]string](tb, "[...document.querySelectorAll('#write-rows li')].map(li => li.dataset.key)") {
			if !slices.ContainsFunc(all.Writes, func(w admin.Write) bool { return fmt.Sprint(w.ID) == id }) {
				return false
			}
		}
		return true
	})
	tb.openWrite("majority")
	id := eval[string](tb, "document.querySelector('#write-rows [aria-expanded=true]').parentNode.dataset.key")
	var w *admin.Write
	for i := range all.Writes {
		if fmt.Sprint(all.Writes[i].ID) == id {
			w = &all.Writes[i]
		}
	}
	if w == nil {
		t.Fatalf("/v1/writes has no write %s", id)
	}
	if title := tb.text("#write .title"); !strings.HasPrefix(title, w.Summary+w.WaitsFor) || w.Summary != "insert orders" {
		t.Errorf("the title is %q, the write %q", title, w.Summary)
	}
	bars := map[string]string{}
	for _, b := range eval[[][]string](tb, "[...document.querySelectorAll('#write .bar')].map(b => [b.querySelector('.name').textContent, b.querySelector('.n').textContent])") {
		bars[b[0]] = b[1]
	}
	for part, want := range map[string]float64{"request": w.Parts.Request, "server": w.Parts.Server, "replication": w.Parts.Replication, "reply": w.Parts.Reply} {
		if part == "replication" && want == 0 {
			continue
		}
		sameFigure(t, part, bars[part], want)
	}
	for _, m := range w.Members {
		sameFigure(t, m.Member, bars[m.Member], m.AcknowledgedMS-m.SentMS)
	}
	if len(w.Members) == 0 {
		t.Errorf("no member had it: %+v", w)
	}
	if w.ReleasedBy != "" && !strings.Contains(tb.text("#write .bars"), "released by "+w.ReleasedBy) {
		t.Errorf("it doesn't say that %s released it: %s", w.ReleasedBy, tb.text("#write"))
	}
	// Every piece lies within its track, and parts follow each other.
	if out := eval[[]string](tb, `[...document.querySelectorAll('#write .track')].flatMap(t => [...t.querySelectorAll('.part')].filter(p => {
		const a = t.getBoundingClientRect(), b = p.getBoundingClientRect();
		return b.left < a.left - 1 || b.right > a.right + 3 || b.width < 1;
	}).map(p => p.className))`); len(out) > 0 {
		t.Errorf("outside of their tracks: %q", out)
	}
	tb.clean()
}

func TestPage_LooksAtOneLink(t *testing.T) {
	lab := startLab(t)
	write(t, lab.uri)
	tb := open(t, lab.page, 1280, 900)
	tb.allConcerns()
	if n := eval[int](tb, "document.querySelectorAll('#link-rows .link').length"); n != 6 {
		t.Errorf("%d links, want 6", n)
	}
	choose := func(link string) {
		eval[bool](tb, "(document.querySelector('#filter').value = %q, document.querySelector('#filter').dispatchEvent(new Event('change')))", link)
	}
	choose("app-rs0.b") // nobody writes to a secondary
	tb.until("document.querySelectorAll('#link-rows .link').length === 1")
	tb.until("document.querySelectorAll('#concerns tbody tr').length === 0 && document.querySelectorAll('#write-rows li').length === 0")
	tb.until("document.querySelector('.chart .empty').checkVisibility()")
	choose(appLink)
	tb.allConcerns()
	tb.scrollTo("#connections")
	tb.until("document.querySelectorAll('#connection-rows tr').length > 0 && [...document.querySelectorAll('#connection-rows tr')].every(r => r.cells[1].textContent === %q)", appLink)
	tb.until("[...document.querySelectorAll('#connection-rows tr')].some(r => r.cells[3].textContent.includes('orders-api, mongo-go-driver'))")
	tb.do(chromedp.Reload()) // the address has it
	tb.until("document.querySelector('#filter')?.value === %q && document.querySelectorAll('#link-rows .link').length === 1", appLink)
	choose("")
	tb.until("document.querySelectorAll('#link-rows .link').length === 6")
	tb.clean()
}

func TestPage_ShowsRules(t *testing.T) {
	lab := startLab(t)
	write(t, lab.uri)
	tb := open(t, lab.page, 1280, 900)
	tb.until("document.querySelector('#no-rules').checkVisibility()")
	lab.v1(t, "PUT", "/v1/rules", `[{"name": "late-orders", "when": {"collection": "orders"}, "effect": "latency", "with": {"delay": "40ms"}}]`, nil)
	tb.until("Number(document.querySelector('#rule-rows tr')?.cells[4].textContent) > 0")
	row := tb.text("#rule-rows tr")
	for _, want := range []string{"late-orders", "latency", "collection: orders", "delay: 40ms"} {
		if !strings.Contains(row, want) {
			t.Errorf("%q lacks %q", row, want)
		}
	}
	tb.clean()
}

func TestPage_SaysThatNobodyAnswers(t *testing.T) {
	lab := startLab(t)
	tb := open(t, lab.page, 1280, 900)
	tb.until("document.querySelector('#state').textContent.startsWith('running')")
	lab.Stop()
	tb.until("document.querySelector('#state').textContent === 'wirewait does not answer'")
	if n := eval[int](tb, "document.querySelectorAll('#link-rows .link').length"); n != 6 {
		t.Errorf("%d links are left to look at, want 6", n)
	}
	tb.clean("ERR_")
}

// TestPage_ShowsWhatServersDid has the primary asked what it does.
func TestPage_ShowsWhatServersDid(t *testing.T) {
	lab := startLab(t)
	primary := lab.said(t, `(?m)^a, primary\s+mongodb://([^/]+)/`)
	file := filepath.Join(t.TempDir(), "wirewait.yaml")
	if err := os.WriteFile(file, []byte(fmt.Sprintf(`admin: 127.0.0.1:0
network:
  - {between: [app, sgp], rtt: 10ms}
clusters:
  rs0:
    protocol: mongodb
    observe: "mongodb://%[1]s/?directConnection=true"
    members:
      a: {site: sgp, upstream: "%[1]s"}
links:
  - {from: app, to: rs0.a, listen: "127.0.0.1:0"}
`, primary)), 0o600); err != nil {
		t.Fatal(err)
	}
	w := start(t, "run", file)
	write(t, "mongodb://"+w.said(t, `(?m)^link app-rs0\.a: (\S+) -> `)+"/?directConnection=true")
	tb := open(t, w.page, 1280, 900)
	tb.until("/^rs0\\.a.*asked \\d+ s ago/.test(document.querySelector('#server-rows .observed')?.textContent)")
	tb.until("document.querySelector('#server-rows .observed').textContent.includes('journal syncs')")
	tb.until("document.querySelector('#write-rows li')")
	soon(t, "a write says what the server did", func() bool {
		eval[bool](tb, "document.querySelector('#newer').click() ?? true")
		tb.openWrite("majority")
		return strings.Contains(tb.text("#write .facts"), "on the server at the time")
	})
	tb.clean()
}

// TestPage_TextIsText: what clients call themselves and their collections is text.
func TestPage_TextIsText(t *testing.T) {
	const tag = `<img src=x onerror=alert(1)>`
	lab := startLab(t)
	client, err := mongo.Connect(options.Client().ApplyURI(lab.uri).SetAppName(tag))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Disconnect(context.Background()) })
	if _, err := client.Database("shop").Collection(tag).InsertOne(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	tb := open(t, lab.page, 1280, 900)
	tb.until("document.querySelector('#write-rows .what')?.textContent === %q", "insert "+tag)
	tb.openWrite("default")
	tb.until("document.querySelector('#write').textContent.includes(%q)", tag)
	tb.scrollTo("#connections")
	tb.until("[...document.querySelectorAll('#connection-rows tr')].some(r => r.cells[3].textContent.includes(%q))", tag)
	if n := eval[int](tb, "document.images.length"); n != 0 {
		t.Errorf("%d images", n)
	}
	// Whatever a script tries, the page's policy refuses it.
	if said := eval[string](tb, `(() => { try { document.body.innerHTML = "<b>"; return "done"; } catch (e) { return e.name; } })()`); said != "TypeError" {
		t.Errorf("text became markup: %s", said)
	}
	tb.clean("TrustedHTML")
}
