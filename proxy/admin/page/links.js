// Links: what each adds, a slider and a field that change it, and its traffic.

import { $, h, keyed, s, set, text } from "./dom.js";
import { patchLink } from "./api.js";
import { bytes, count, duration, ms, perSecond } from "./format.js";

const SEND_EVERY = 200; // ms, while the slider moves
const SETTLED = 1500; // ms after which the slider follows the link again
const HISTORY = 60; // seconds of traffic
const ENDS = [500, 1000, 2000, 5000, 10_000, 60_000]; // ms, of sliders

export class Links {
  // changed is called with a link's name and its new round trip.
  constructor(changed) {
    this.changed = changed;
    this.views = new Map();
  }

  show(answer, filter) {
    const links = answer.links.filter((l) => filter === "" || l.name === filter);
    for (const name of this.views.keys()) if (!answer.links.some((l) => l.name === name)) this.views.delete(name);
    keyed($("link-rows"), links, (l) => l.name, (l) => this.view(l).node, (_, l) => this.view(l).fill(l));
  }

  view(link) {
    if (!this.views.has(link.name)) this.views.set(link.name, new View(link, this.changed));
    return this.views.get(link.name);
  }
}

// View is one link's row.
class View {
  constructor(link, changed) {
    this.name = link.name;
    this.changed = changed;
    this.history = [];
    this.touched = -SETTLED;
    this.slider = h("input", { type: "range", min: 0, max: ENDS[0], step: 1, "aria-label": `Round trip that ${link.name} adds`, oninput: () => this.slide(), onchange: () => this.send(`${this.slider.value}ms`) });
    this.field = h("input", { type: "text", size: 8, spellcheck: "false", autocomplete: "off", "aria-label": `Round trip of ${link.name}, such as 80ms`, onchange: () => this.send(this.field.value.trim()), onkeydown: (e) => this.key(e) });
    this.cells = {};
    for (const c of ["ends", "adds", "rate", "there", "back", "late", "open"]) this.cells[c] = h("span");
    this.line = s("path", {});
    this.problem = h("p", { class: "wrong", role: "alert" });
    this.node = this.build(link);
  }

  build(link) {
    const figure = (label, ...nodes) => h("div", { class: "figure" }, h("span", { class: "muted" }, label), h("span", { class: "value" }, ...nodes));
    return h("div", { class: "link", role: "group", "aria-label": `Link ${link.name}` },
      h("div", { class: "who" }, h("strong", {}, link.name), h("span", { class: "muted" }, this.cells.ends)),
      h("div", { class: "delay" }, this.slider, this.field, h("span", { class: "muted adds" }, this.cells.adds)),
      h("div", { class: "traffic" }, s("svg", { viewBox: "0 0 120 28", preserveAspectRatio: "none", "aria-hidden": "true", class: "spark" }, this.line)),
      figure("exchanges/s", this.cells.rate), figure("to server", this.cells.there), figure("to client", this.cells.back),
      figure("open", this.cells.open), figure("late by", this.cells.late),
      this.problem);
  }

  fill(link) {
    this.link = link;
    const ways = link.from && link.to && link.name !== `${link.from}-${link.to}` ? `${link.from} → ${link.to}, ` : "";
    text(this.cells.ends, `${ways}${link.listen} → ${link.upstream}`);
    this.fillDelay(link);
    this.traffic(link);
    text(this.cells.open, count(link.connections.open));
    const held = Math.max(link.to_server.achieved_ms - link.to_server.planned_ms, link.to_client.achieved_ms - link.to_client.planned_ms);
    text(this.cells.late, link.to_server.held_runs + link.to_client.held_runs > 0 ? `${ms(Math.max(held, 0))} ms` : "–");
    set(this.cells.late, { title: "how much longer than planned bytes were held, on average, in the worse direction" });
  }

  fillDelay(link) {
    const delays = link.sources?.length ? link.sources.map((f) => f.delay) : [link.delay];
    const rtts = delays.map((d) => duration(d.rtt));
    const most = Math.max(...rtts);
    if (!this.sending && performance.now() - this.touched > SETTLED) {
      set(this.slider, { max: ENDS.find((e) => e >= most) ?? most });
      this.slider.value = most;
    }
    set(this.slider, { "aria-valuetext": `${this.slider.value} ms` });
    if (document.activeElement !== this.field || this.field.value === this.shown) {
      this.shown = new Set(rtts).size === 1 ? short(delays[0].rtt) : "";
      if (this.field.value !== this.shown) this.field.value = this.shown;
      set(this.field, { placeholder: this.shown === "" ? "several" : "0ms" });
    }
    const words = link.sources?.length ? link.sources.map((f) => `${f.name} ${short(f.delay.rtt)}`) : [];
    text(this.cells.adds, [...words, ...model(delays[0])].join(", "));
  }

  // traffic is worked out from two answers.
  traffic(link) {
    const now = performance.now();
    const total = link.to_server.bytes + link.to_client.bytes;
    const last = this.last;
    this.last = { now, link };
    if (!last || now - last.now < 100) return;
    const per = (a, b) => Math.max(a - b, 0) / ((now - last.now) / 1000);
    this.history = [...this.history.slice(1 - HISTORY), per(total, last.link.to_server.bytes + last.link.to_client.bytes)];
    text(this.cells.rate, perSecond(per(link.exchanges, last.link.exchanges)));
    text(this.cells.there, `${bytes(per(link.to_server.bytes, last.link.to_server.bytes))}/s`);
    text(this.cells.back, `${bytes(per(link.to_client.bytes, last.link.to_client.bytes))}/s`);
    const most = Math.max(...this.history, 1);
    const at = this.history.map((v, i) => `${(120 - (this.history.length - 1 - i) * (120 / (HISTORY - 1))).toFixed(1)},${(27 - 25 * (v / most)).toFixed(1)}`);
    set(this.line, { d: at.length > 1 ? `M${at.join("L")}` : "" });
  }

  slide() {
    this.touched = performance.now();
    this.field.value = this.shown = `${this.slider.value}ms`;
    set(this.slider, { "aria-valuetext": `${this.slider.value} ms` });
    this.due ??= setTimeout(() => this.send(`${this.slider.value}ms`), SEND_EVERY);
  }

  key(e) {
    if (e.key === "Escape") {
      this.field.value = this.shown;
      text(this.problem, "");
    }
  }

  // send changes the delay. Changes follow each other: of those that come while one
  // is under way the last is sent after it.
  async send(rtt) {
    clearTimeout(this.due);
    this.due = null;
    if (rtt === "") return;
    this.next = rtt;
    if (this.sending) return;
    this.sending = true;
    while (this.next) {
      const wanted = this.next;
      this.next = null;
      await this.patch(wanted);
    }
    this.sending = false;
  }

  async patch(rtt) {
    try {
      const link = await patchLink(this.name, { rtt });
      text(this.problem, "");
      set(this.field, { "aria-invalid": null });
      this.shown = this.field.value;
      this.fillDelay(link);
      this.changed(this.name, short(link.sources?.length ? link.sources[0].delay.rtt : link.delay.rtt));
    } catch (err) {
      text(this.problem, err.message);
      set(this.field, { "aria-invalid": "true" });
    }
  }
}

// short is a duration of Go's without units that are zero.
const short = (words) => words.replace(/m0s$/, "m").replace(/h0m$/, "h").replace(/^0s$/, "0ms");

// model says what a link adds besides its round trip.
function model(d) {
  const there = d.to_server, back = d.to_client, words = [];
  if (there.delay !== back.delay) words.push(`${short(there.delay)} there, ${short(back.delay)} back`);
  const one = there.jitter ? there : back;
  if (one.jitter) words.push(`± ${one.jitter}${one.distribution === "uniform" ? "" : ` ${one.distribution}`}`);
  if (there.loss ?? back.loss) words.push(`loss ${there.loss ?? back.loss}`);
  if (there.bandwidth ?? back.bandwidth) words.push(there.bandwidth ?? back.bandwidth);
  if (there.window ?? back.window) words.push(`window ${there.window ?? back.window}`);
  if (!d.connect) words.push("connecting is free");
  return words;
}
