// The slowest write of each second: a list, and the one that is open. The list
// stands still while somebody is in it, and says how many newer ones there are.

import { $, chosen, h, keyed, options, set, text } from "./dom.js";
import { concernClass } from "./colours.js";
import { clock, ms } from "./format.js";
import { PARTS } from "./series.js";
import { stack } from "./waits.js";
import { waterfall } from "./waterfall.js";

const ROWS = 12;

export class Writes {
  constructor() {
    this.all = [];
    this.open = null;
    this.list = $("write-rows");
    this.list.addEventListener("keydown", (e) => this.key(e));
    this.list.addEventListener("focusout", (e) => { if (!this.list.contains(e.relatedTarget) && this.open === null) this.release(); });
    $("order").addEventListener("change", () => this.release());
    $("concern").addEventListener("change", () => this.release());
    $("newer").addEventListener("click", () => this.release());
    waterfall($("write"), null);
  }

  show(answer, concerns) {
    this.all = answer.writes;
    options($("concern"), concerns);
    if (!this.held()) this.draw();
    const newer = this.held() ? this.wanted().filter((w) => !this.shown.some((s) => s.id === w.id)).length : 0;
    $("newer").hidden = newer === 0;
    text($("newer"), `${newer} more`);
  }

  held() {
    return this.shown?.length > 0 && (this.open !== null || this.list.contains(document.activeElement));
  }

  // release lets the list go on.
  release() {
    this.choose(null);
    $("newer").hidden = true;
    this.draw();
  }

  clear() {
    this.all = [];
    this.release();
  }

  wanted() {
    const concern = $("concern").value;
    const list = this.all.filter((w) => concern === "" || (w.waits_for || "unknown") === concern);
    if (chosen("order") === "slowest") list.sort((a, b) => b.total_ms - a.total_ms);
    return list.slice(0, ROWS);
  }

  draw() {
    this.shown = this.wanted();
    keyed(this.list, this.shown, (w) => w.id, (w) => this.row(w), () => {});
    this.mark();
  }

  row(w) {
    const bar = h("span", { class: "stack thin", "aria-hidden": "true" });
    const parts = Object.fromEntries(PARTS.map((p) => [p, w.parts[`${p}_ms`]]));
    stack(bar, parts, w.total_ms);
    const words = { ok: w.released_by ?? "", error: `error ${w.error_code ?? ""}`, unreplicated: "not replicated", no_reply: "no reply came", unacknowledged: "no reply due" }[w.outcome];
    return h("li", {}, h("button", { type: "button", onclick: () => this.choose(this.open === w.id ? null : w.id) },
      h("span", { class: "when muted" }, clock(new Date(w.began))),
      h("span", { class: "what" }, w.summary),
      h("span", { class: "kind" }, h("i", { class: `key ${concernClass(w.waits_for || "unknown")}` }), w.waits_for || "unknown"),
      h("span", { class: "n" }, `${ms(w.total_ms)} ms`),
      bar,
      h("span", { class: w.outcome === "ok" ? "by muted" : "by failed" }, words)));
  }

  choose(id) {
    this.open = id;
    this.mark();
    waterfall($("write"), this.all.find((w) => w.id === id) ?? this.shown?.find((w) => w.id === id) ?? null);
  }

  mark() {
    for (const li of this.list.children) set(li.firstChild, { "aria-expanded": String(li.dataset.key === String(this.open)), "aria-controls": "write" });
  }

  // key moves within the list: up, down, home, end; escape closes.
  key(e) {
    const buttons = [...this.list.querySelectorAll("button")];
    const i = buttons.indexOf(document.activeElement);
    const to = { ArrowDown: i + 1, ArrowUp: i - 1, Home: 0, End: buttons.length - 1 }[e.key];
    if (e.key === "Escape") this.choose(null);
    if (to === undefined || !buttons[to]) return;
    e.preventDefault();
    buttons[to].focus();
  }
}
