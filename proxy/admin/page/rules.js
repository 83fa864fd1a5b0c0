// Rules: what each does, and what it has done.

import { $, h, keyed, set, text } from "./dom.js";
import { count } from "./format.js";

export function showRules(answer, filter) {
  const rules = answer.rules.filter((r) => filter === "" || r.links.some((l) => l.link === filter));
  $("no-rules").hidden = rules.length > 0;
  keyed($("rule-rows"), rules, (r) => r.name, row, (tr, r) => fill(tr, r, filter));
}

function row(r) {
  const cell = (label) => h("td", { class: "n", role: "cell", "data-label": label });
  return h("tr", { role: "row" }, h("th", { scope: "row", role: "rowheader" }, r.name), h("td", { role: "cell" }), h("td", { class: "wide", role: "cell" }, h("code")),
    cell("matches"), cell("hits"), cell("connections"));
}

function fill(tr, r, filter) {
  const on = r.links.filter((l) => filter === "" || l.link === filter);
  const sum = (key) => on.reduce((n, l) => n + l[key], 0);
  set(tr, { class: r.over ? "over" : null });
  text(tr.cells[1], r.rule.effect);
  text(tr.cells[2].firstChild, words(r));
  text(tr.cells[3], count(sum("matches")));
  text(tr.cells[4], count(sum("hits")));
  text(tr.cells[5], count(r.connections));
  const not = on.flatMap((l) => Object.entries(l.not_applicable)).map(([reason, n]) => `${n} could not apply: ${reason}`);
  set(tr.cells[3], { title: not.join("; ") || null });
}

// words are a rule's keys and values: "when command insert, limit probability 1%".
function words(r) {
  const list = ["when", "with", "limit"].filter((k) => r.rule[k] && Object.keys(r.rule[k]).length).map((k) => `${k} ${plain(r.rule[k])}`);
  if (r.over) list.push("its time has passed");
  return list.join("  ") || "always";
}

function plain(v) {
  if (Array.isArray(v)) return v.map(plain).join("|");
  if (v && typeof v === "object") return Object.entries(v).map(([k, x]) => `${k}: ${plain(x)}`).join(", ");
  return String(v);
}
