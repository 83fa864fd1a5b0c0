// What servers did by second, where the file has them observed: a strip for each
// mark over the last minute, and the latest figures.

import { $, h, keyed, set, text } from "./dom.js";
import { MARKS, age, measures } from "./format.js";

export function showServers(answer) {
  $("servers").hidden = answer.servers.length === 0;
  keyed($("server-rows"), answer.servers, (s) => s.server, row, fill);
}

function row(s) {
  return h("div", { class: "observed", role: "group", "aria-label": `Server ${s.server}` }, h("strong", {}, s.server), h("div", { class: "strips" }), h("p"));
}

function fill(node, s) {
  const [, strips, words] = node.children;
  const shown = MARKS.filter((m) => s.samples.some((x) => m in x.values));
  keyed(strips, shown, (m) => m, (m) => h("div", { class: "strip" }, h("span", { class: "muted" }, m.replaceAll("_", " ")), h("span", { class: "cells", role: "img" })), (strip, m) => {
    const on = s.samples.map((x) => x.values[m] === 1);
    strip.lastChild.replaceChildren(...on.map((is) => h("i", { class: is ? "on" : null })));
    set(strip.lastChild, { "aria-label": `${m.replaceAll("_", " ")} in ${on.filter(Boolean).length} of the last ${on.length} samples` });
  });
  const last = s.samples.at(-1);
  const behind = (last?.lags ?? []).map((l) => `${l.member} ${((l.durable_ms ?? l.applied_ms ?? l.written_ms ?? 0) / 1000).toFixed(1)} s behind`);
  text(words, last ? [measures(last.values), ...behind, `asked ${age((Date.now() - new Date(last.at)) / 1000)} ago`].join(", ") : "not asked yet");
}
