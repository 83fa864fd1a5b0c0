// One write as a waterfall: its parts end to end, and below the replication what
// each member did meanwhile.
//
//	request       |##                      |
//	server        |  ===                ===|
//	replication   |     ================   |  released by rs0.c
//	  rs0.c       |     ================   |
//	  rs0.b       |     ===================|
//	reply         |                       #|

import { h } from "./dom.js";
import { concernClass } from "./colours.js";
import { clock, measures, ms } from "./format.js";

// waterfall draws w into root; null: nothing is open.
export function waterfall(root, w) {
  if (!w) {
    root.replaceChildren(h("p", { class: "empty muted" }, "Open a write to see where its time went."));
    return;
  }
  root.replaceChildren(head(w), axis(w.total_ms), h("div", { class: "bars", role: "list" }, ...rows(w).map((r) => bar(r, w.total_ms))), facts(w));
}

function head(w) {
  return h("div", { class: "title" }, h("h3", {}, w.summary), h("span", {}, h("i", { class: `key ${concernClass(w.waits_for || "unknown")}` }), w.waits_for || "unknown"),
    h("strong", { class: "n" }, `${ms(w.total_ms)} ms`));
}

function axis(total) {
  return h("div", { class: "axis muted", "aria-hidden": "true" }, h("span"), h("span", { class: "ticks" }, ...[0, 0.25, 0.5, 0.75, 1].map((f) => h("span", {}, ms(f * total)))), h("span"));
}

// rows are {name, part, from: ms, pieces: [[from, to]], time, remark}.
function rows(w) {
  const p = w.parts, list = [];
  let at = 0;
  const next = (part, remark) => {
    const time = p[`${part}_ms`];
    list.push({ name: part, part, pieces: [[at, at + time]], time, remark });
    at += time;
  };
  if (p.receive_ms > 0) next("receive");
  next("request", injected(w));
  const back = at + p.server_ms + p.replication_ms;
  if (p.replication_ms === 0) next("server");
  else {
    const from = Math.min(Math.max(w.replication_from_ms, at), back), to = Math.min(from + p.replication_ms, back);
    list.push({ name: "server", part: "server", pieces: [[at, from], [to, back]], time: p.server_ms });
    list.push({ name: "replication", part: "replication", pieces: [[from, to]], time: p.replication_ms, remark: w.released_by ? `released by ${w.released_by}` : "" });
    at = back;
  }
  list.push(...members(w));
  if (w.outcome !== "no_reply" && w.outcome !== "unacknowledged") next("reply");
  return list;
}

function members(w) {
  const list = w.members.map((m) => ({
    name: m.member, part: "member", pieces: [[m.sent_ms, Math.min(m.acknowledged_ms, w.total_ms)]], time: m.acknowledged_ms - m.sent_ms, child: true,
    released: m.member === w.released_by, remark: [m.member === w.released_by ? "the one waited for" : "had it too", m.sync_source ? `follows ${m.sync_source}` : ""].filter(Boolean).join(", "),
  }));
  return [...list, ...w.not_waited_for.map((name) => ({ name, part: "member", pieces: [], time: null, child: true, remark: "not waited for" }))];
}

function bar(r, total) {
  const track = h("div", { class: "track" });
  for (const [from, to] of r.pieces.filter(([a, b]) => b > a)) {
    const piece = h("i", { class: `part ${r.part}${r.released ? " released" : ""}` });
    piece.style.left = `${(100 * from) / total}%`;
    piece.style.width = `${(100 * (to - from)) / total}%`;
    track.append(piece);
  }
  if (r.pieces.length === 0) track.append(h("span", { class: "muted" }, r.remark));
  const time = r.time === null ? "" : ms(r.time);
  return h("div", { class: r.child ? "bar child" : "bar", role: "listitem" }, h("span", { class: "name" }, r.name), track, h("span", { class: "n" }, time),
    h("span", { class: "remark muted" }, r.pieces.length === 0 ? "" : r.remark ?? ""));
}

const injected = (w) => (w.planned_ms > 0 ? `${ms(w.planned_ms)} ms injected, both ways` : "");

// meanwhile is what the server did during its part, where it's asked. That it is
// why the write took its time nobody can tell from that.
function meanwhile(w) {
  return w.meanwhile ? `${measures(w.meanwhile.values)}: on the server at the time, and not for certain why` : "";
}

// facts are what there is besides, as a list of names and values.
function facts(w) {
  const list = [["began", clock(new Date(w.began))], ["link", w.link], ["client", [w.client, w.application].filter(Boolean).join(", ")], ["database", w.database],
    ["basis", w.released_basis], ["delay", w.planned_ms > 0 ? `${ms(w.planned_ms)} ms planned, ${ms(w.achieved_ms)} achieved` : ""],
    ["stalled", w.stalled_ms > 0 ? `${ms(w.stalled_ms)} ms: a line was full` : ""], ["rules", w.rules.join(", ")], ["scenario", w.scenario],
    ["meanwhile", meanwhile(w)],
    ["outcome", w.outcome === "ok" ? "" : [w.outcome, w.error_code].filter(Boolean).join(" ")]];
  return h("dl", { class: "facts" }, ...list.filter(([, v]) => v).flatMap(([k, v]) => [h("dt", {}, k), h("dd", {}, v)]));
}
