// Connections: whose each is, as far as it said so.

import { $, h, keyed, text } from "./dom.js";
import { age, bytes, count, duration, ms } from "./format.js";

const MOST = 100;

export function showConnections(answer) {
  const all = answer.connections, shown = all.slice(-MOST).reverse();
  keyed($("connection-rows"), shown, (c) => c.id, row, fill);
  const more = all.length > MOST ? `The latest ${MOST} of ${count(all.length)}; wirewait connections lists all.` : `${count(all.length)} open.`;
  text($("connections-note"), more);
}

function row(c) {
  const n = () => h("td", { class: "n" });
  return h("tr", {}, h("td", { class: "n" }, String(c.id)), h("td", {}, c.link), h("td", {}, c.client), h("td", { class: "wide" }), h("td"), n(), n(), n(), n(), n());
}

function fill(tr, c) {
  const cells = tr.cells;
  const lag = Math.max(c.to_server.lag_ms, c.to_client.lag_ms);
  const words = [c.from && c.from_basis !== "link" ? c.from : "", c.application, c.user && `user ${c.user}`, c.database && `database ${c.database}`, c.driver,
    c.replication && `${c.replication} replication`, c.backend_pid && `pid ${c.backend_pid}`, c.not_decoded,
    lag > 0 && `lags by ${ms(lag)} ms`];
  text(cells[3], words.filter(Boolean).join(", ") || "–");
  text(cells[4], c.state.replace("_", " "));
  text(cells[5], age((Date.now() - new Date(c.since)) / 1000));
  text(cells[6], count(c.exchanges));
  text(cells[7], bytes(c.to_server.bytes));
  text(cells[8], bytes(c.to_client.bytes));
  text(cells[9], `${ms(duration(c.delay.rtt))} ms`);
}
