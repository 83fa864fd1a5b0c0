// The percentile chart: a line for each write concern over two minutes, on a
// logarithmic scale, with its name and latest value at its end. The faint band is
// from p50 to p99.

import { h, s, set, text } from "./dom.js";
import { concernClass } from "./colours.js";
import { ms } from "./format.js";

const SPAN = 120_000;
const HEIGHT = 260;
const LEFT = 58;
const BOTTOM = 24;
const TOP = 14;

export class Chart {
  constructor(root, readout) {
    this.readout = readout;
    this.cursor = null; // ms before the latest point
    this.svg = s("svg", { role: "img", tabindex: 0, height: HEIGHT, class: "lines" });
    this.layers = {};
    for (const name of ["grid", "bands", "marks", "lines", "labels", "cursor"]) {
      this.layers[name] = s("g", { class: name });
      this.svg.append(this.layers[name]);
    }
    this.empty = h("p", { class: "empty muted" }, "No writes yet. They appear here as they pass.");
    root.append(this.svg, this.empty);
    this.svg.addEventListener("pointermove", (e) => this.point(e.offsetX));
    this.svg.addEventListener("pointerleave", () => this.moveTo(null));
    this.svg.addEventListener("blur", () => this.moveTo(null));
    this.svg.addEventListener("keydown", (e) => this.key(e));
    new ResizeObserver(() => this.draw()).observe(root);
  }

  // show draws points {at, by} and marks {at, label}.
  show(points, marks, quantile) {
    Object.assign(this, { points, marks, quantile });
    this.draw();
  }

  draw() {
    const width = this.svg.parentElement.clientWidth;
    if (!this.points || width === 0) return;
    this.right = width < 560 ? 96 : 132;
    this.width = width;
    set(this.svg, { width, viewBox: `0 0 ${width} ${HEIGHT}` });
    this.end = this.points.at(-1)?.at ?? 0;
    const values = this.points.flatMap((p) => [...p.by.values()].flatMap((f) => [f.p50, f.p99])).filter((v) => v > 0);
    this.empty.hidden = values.length > 0;
    this.low = Math.floor(Math.log10(Math.min(...values, 1)));
    this.high = Math.max(Math.ceil(Math.log10(Math.max(...values, 1) * 1.05)), this.low + 1);
    this.grid();
    this.curves();
    this.drawMarks();
    this.drawCursor();
  }

  x(at) {
    return LEFT + (1 - (this.end - at) / SPAN) * (this.width - LEFT - this.right);
  }

  y(value) {
    const share = (Math.log10(Math.max(value, 1e-3)) - this.low) / (this.high - this.low);
    return HEIGHT - BOTTOM - Math.min(Math.max(share, 0), 1) * (HEIGHT - BOTTOM - TOP);
  }

  grid() {
    const parts = [];
    for (let e = this.low; e <= this.high; e++) {
      const y = this.y(10 ** e);
      parts.push(s("line", { x1: LEFT, x2: this.width - this.right, y1: y, y2: y }));
      parts.push(s("text", { x: LEFT - 8, y: y + 4, "text-anchor": "end" }, unit(10 ** e)));
    }
    for (const back of this.width < 560 ? [120, 0] : [120, 90, 60, 30, 0]) {
      const anchor = back === 0 ? "end" : back === 120 ? "start" : "middle";
      parts.push(s("text", { x: this.x(this.end - back * 1000), y: HEIGHT - 6, "text-anchor": anchor }, back === 0 ? "now" : `${back} s ago`));
    }
    this.layers.grid.replaceChildren(...parts);
  }

  curves() {
    const names = [...(this.points.at(-1)?.by.keys() ?? [])];
    const lines = [], bands = [], ends = [];
    for (const name of names) {
      const all = this.points.filter((p) => p.at >= this.end - SPAN).map((p) => ({ at: p.at, f: p.by.get(name) }));
      const there = (p) => p.f && p.f[this.quantile] !== null;
      lines.push(s("path", { d: this.path(all, there, this.quantile), class: concernClass(name) }));
      for (const run of runs(all, there)) bands.push(s("path", { d: this.band(run), class: concernClass(name) }));
      const last = all.findLast(there);
      if (last) ends.push({ name, value: last.f[this.quantile], y: this.y(last.f[this.quantile]), stale: last.at < this.end });
    }
    this.layers.lines.replaceChildren(...lines);
    this.layers.bands.replaceChildren(...bands);
    this.labels(ends);
    const words = ends.map((e) => `${e.name} ${ms(e.value)} ms`).join(", ");
    set(this.svg, { "aria-label": `${this.quantile} of the time of writes over two minutes, by write concern. Now: ${words || "no writes"}. Arrow keys read earlier values.` });
  }

  path(all, there, quantile) {
    return runs(all, there).map((run) => {
      const at = run.map((p) => `${this.x(p.at).toFixed(1)},${this.y(p.f[quantile]).toFixed(1)}`);
      return run.length > 1 ? `M${at.join("L")}` : `M${at[0]}h0.1`;
    }).join("");
  }

  band(run) {
    const at = (q) => (p) => `${this.x(p.at).toFixed(1)},${this.y(p.f[q]).toFixed(1)}`;
    return `M${run.map(at("p99")).join("L")}L${run.toReversed().map(at("p50")).join("L")}Z`;
  }

  // labels stand at the lines' ends, and apart from each other.
  labels(ends) {
    ends.sort((a, b) => a.y - b.y);
    let free = TOP;
    for (const e of ends) {
      e.y = Math.max(e.y, free);
      free = e.y + 17;
    }
    for (let i = ends.length - 1, limit = HEIGHT - BOTTOM; i >= 0; i--, limit -= 17) ends[i].y = Math.min(ends[i].y, limit);
    this.layers.labels.replaceChildren(...ends.map((e) => s("text", { x: this.width - this.right + 8, y: e.y + 4, class: `${concernClass(e.name)}${e.stale ? " stale" : ""}` },
      s("tspan", { class: "name" }, `${e.name} `), s("tspan", {}, ms(e.value)))));
  }

  drawMarks() {
    const shown = this.marks.filter((m) => m.at > this.end - SPAN);
    this.layers.marks.replaceChildren(...shown.flatMap((m, i) => {
      const x = this.x(Math.min(m.at, this.end));
      const last = i === shown.length - 1;
      const before = x > (this.width - this.right) / 2;
      return [s("line", { x1: x, x2: x, y1: TOP - 6, y2: HEIGHT - BOTTOM }),
        last ? s("text", { x: x + (before ? -6 : 6), y: TOP + 2, "text-anchor": before ? "end" : "start" }, m.label) : null].filter(Boolean);
    }));
  }

  key(e) {
    const step = { ArrowLeft: 1, ArrowRight: -1 }[e.key];
    if (!step) return;
    e.preventDefault();
    this.moveTo(Math.min(Math.max((this.cursor ?? -1000) + step * 1000, 0), SPAN));
  }

  point(x) {
    const share = (this.width - this.right - x) / (this.width - LEFT - this.right);
    this.moveTo(share >= 0 && share <= 1 ? share * SPAN : null);
  }

  moveTo(cursor) {
    this.cursor = cursor;
    if (this.points) this.drawCursor();
  }

  drawCursor() {
    const at = this.end - (this.cursor ?? 0);
    const nearest = this.cursor === null ? null : this.points.reduce((best, p) => (Math.abs(p.at - at) < Math.abs((best?.at ?? Infinity) - at) ? p : best), null);
    if (!nearest) {
      this.layers.cursor.replaceChildren();
      text(this.readout, `${this.quantile} of the writes of the last five seconds, second by second; the band is from p50 to p99.`);
      return;
    }
    const x = this.x(nearest.at);
    this.layers.cursor.replaceChildren(s("line", { x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM }));
    const words = [...nearest.by].filter(([, f]) => f[this.quantile] !== null).map(([name, f]) => `${name} ${ms(f[this.quantile])}`);
    text(this.readout, `${((this.end - nearest.at) / 1000).toFixed(0)} s ago, ${this.quantile} in ms: ${words.join("   ") || "no writes"}`);
  }
}

// unit is a power of ten in milliseconds, short enough for the margin.
function unit(v) {
  if (v >= 1000) return `${v / 1000} s`;
  return v < 1 ? `${Math.round(v * 1000)} µs` : `${v} ms`;
}

// runs divides a list where something is missing.
function runs(list, there) {
  const all = [];
  let open = null;
  for (const p of list) {
    if (!there(p)) open = null;
    else if (open) open.push(p);
    else all.push((open = [p]));
  }
  return all;
}
