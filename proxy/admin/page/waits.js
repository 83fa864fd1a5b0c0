// What writes waited for: the chart, and a row for each write concern with its
// percentiles and the parts that its mean divides into.

import { $, chosen, h, keyed, set, text } from "./dom.js";
import { Chart } from "./chart.js";
import { concernClass } from "./colours.js";
import { count, ms } from "./format.js";
import { PARTS, Series } from "./series.js";

const LETTER = 7; // pixels, to tell whether a part's name has room

export class Waits {
  constructor() {
    this.series = new Series();
    this.marks = [];
    this.chart = new Chart($("chart"), $("readout"));
    this.body = $("concerns").tBodies[0];
    $("legend").append(...PARTS.map((p) => h("li", {}, h("i", { class: `part ${p}` }), p)));
    for (const id of ["quantile", "span"]) $(id).addEventListener("change", () => this.draw());
  }

  // mark notes what was changed, to be seen in the chart. Changes of one thing that
  // follow each other at once are one.
  mark(what, value) {
    const at = performance.now(), last = this.marks.at(-1);
    if (last?.what === what && at - last.at < 2000) this.marks.pop();
    this.marks = [...this.marks.slice(-9), { at, what, label: `${what} ${value}` }];
    this.draw();
  }

  show(answer) {
    this.answer = answer;
    this.series.add(performance.now(), answer);
    this.draw();
  }

  clear() {
    this.series.clear();
    this.marks = [];
  }

  concerns() {
    return [...this.series.rows().keys()];
  }

  // rate is how many writes a second there were of late.
  rate() {
    const { answers } = this.series;
    const from = answers[Math.max(answers.length - 6, 0)], now = answers.at(-1);
    const sum = (a) => [...a.rows.values()].reduce((n, r) => n + r.count, 0);
    return answers.length < 2 ? 0 : (sum(now) - sum(from)) / ((now.at - from.at) / 1000);
  }

  draw() {
    this.chart.show(this.series.points, this.marks, chosen("quantile"));
    const rows = chosen("span") === "all" ? this.series.rows() : this.series.recent();
    keyed(this.body, [...rows], ([name]) => name, ([name]) => row(name), (tr, [, f]) => fill(tr, f));
    const notes = ["Means add up, percentiles don't."];
    if (this.answer?.dropped) notes.push(`${count(this.answer.dropped)} exchanges found no room to be counted.`);
    text($("waits-note"), notes.join(" "));
  }
}

function row(name) {
  const cell = () => h("td", { class: "n", role: "cell" });
  return h("tr", { role: "row" }, h("th", { scope: "row", role: "rowheader" }, h("i", { class: `key ${concernClass(name)}` }), name),
    cell(), cell(), cell(), cell(), cell(), h("td", { class: "wide", role: "cell" }, h("div", { class: "stack", role: "img" })), h("td", { class: "released", role: "cell" }));
}

function fill(tr, f) {
  const cells = tr.cells;
  [count(f.count), ms(f.p50), ms(f.p95), ms(f.p99), ms(f.mean)].forEach((words, i) => text(cells[i + 1], words));
  const failed = f.errors ? `${count(f.errors)} of them failed, or were not replicated as asked` : "";
  set(cells[1], { title: failed || null, class: failed ? "n failed" : "n" });
  stack(cells[6].firstChild, f.parts, f.mean);
  const by = Object.entries(f.releasedBy).sort((a, b) => b[1] - a[1]);
  text(cells[7], by.map(([name, n]) => `${name} ${count(n)}`).join(", ") || "–");
  set(cells[7], { class: by.length ? "released" : "released nobody" });
}

// stack fills a bar with the parts that a time divides into.
export function stack(bar, parts, total) {
  const there = total > 0 ? PARTS.filter((p) => parts[p] > 0) : [];
  const width = bar.clientWidth;
  keyed(bar, there, (p) => p, (p) => h("span", { class: `part ${p}` }, h("b")), (node, p) => {
    const share = parts[p] / total, words = `${p} ${ms(parts[p])}`;
    node.style.flexGrow = share;
    text(node.firstChild, share * width > (words.length + 2) * LETTER ? words : "");
    set(node, { title: `${p} ${ms(parts[p])} ms, ${(100 * share).toFixed(1)} %` });
  });
  set(bar, { "aria-label": there.map((p) => `${p} ${ms(parts[p])} ms`).join(", ") || "nothing" });
}
