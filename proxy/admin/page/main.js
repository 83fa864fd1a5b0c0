// The page asks /v1 once a second while it's seen, and shows what it answers.

import { $, options, set, text } from "./dom.js";
import { get, giveToken } from "./api.js";
import { count, perSecond } from "./format.js";
import { Links } from "./links.js";
import { Waits } from "./waits.js";
import { Writes } from "./writes.js";
import { showServers } from "./servers.js";
import { showRules } from "./rules.js";
import { showConnections } from "./connections.js";
import { startTheme } from "./theme.js";

const EVERY = 1000; // ms
const CONNECTIONS_EVERY = 3; // ticks: with thousands it's the long answer

const waits = new Waits();
const writes = new Writes();
const links = new Links((name, rtt) => waits.mark(name, rtt));
let paused = false;
let ticks = 0;
let connectionsSeen = false;

async function tick() {
  const link = $("filter").value;
  const wanted = [get("/v1/health"), get("/v1/links"), get("/v1/waits", { by: "concern", buckets: "true", link }), get("/v1/writes", { link }), get("/v1/rules"), get("/v1/observed"),
    connectionsSeen && ticks++ % CONNECTIONS_EVERY === 0 ? get("/v1/connections", { link }) : null];
  const [health, l, w, slow, rules, observed, connections] = await Promise.all(wanted);
  if (link !== $("filter").value) return; // the answer to another question
  $("token").hidden = true;
  $("main").hidden = false;
  options($("filter"), l.links.map((x) => x.name));
  waits.show(w);
  links.show(l, link);
  writes.show(slow, waits.concerns());
  showServers(observed);
  showRules(rules, link);
  if (connections) showConnections(connections);
  text($("version"), health.version);
  say(health.status === "ok" ? "live" : "wrong", `${health.status === "ok" ? "running" : health.status} · ${count(health.connections)} connections · ${perSecond(waits.rate())} writes/s`);
}

async function loop() {
  const began = performance.now();
  if (!paused && !document.hidden) {
    try {
      await tick();
    } catch (err) {
      failed(err);
    }
  }
  setTimeout(loop, Math.max(EVERY - (performance.now() - began), 50));
}

function failed(err) {
  if (err.status === 404 && $("filter").value) { // the link has gone
    choose("");
    return;
  }
  if (err.status !== 401) {
    say("wrong", err.status ? err.message : "wirewait does not answer");
    return;
  }
  say("wrong", "the token is needed");
  if ($("token").hidden) {
    $("token").hidden = false;
    $("main").hidden = true;
    $("token-text").focus();
  }
}

function say(state, words) {
  set($("state"), { class: `state ${state}` });
  text($("state"), words);
}

$("token").addEventListener("submit", async (e) => {
  e.preventDefault();
  giveToken($("token-text").value);
  try {
    await get("/v1/health");
    text($("token-wrong"), "");
    $("token-text").value = "";
    await tick();
  } catch (err) {
    text($("token-wrong"), err.status === 401 ? "That isn't its token." : err.message);
  }
});

$("pause").addEventListener("click", () => {
  paused = !paused;
  set($("pause"), { "aria-pressed": String(paused) });
  text($("pause"), paused ? "Go on" : "Pause");
  if (paused) say("paused", "paused");
});

// choose filters by a link, and keeps it in the address.
function choose(link) {
  $("filter").value = link;
  history.replaceState(null, "", link ? `#link=${encodeURIComponent(link)}` : location.pathname);
  waits.clear();
  writes.clear();
  ticks = 0;
  if (!paused) tick().catch(failed);
}

$("filter").addEventListener("change", () => choose($("filter").value));
new IntersectionObserver(([e]) => { connectionsSeen = e.isIntersecting; ticks = 0; }).observe($("connections"));

async function start() {
  startTheme($("theme"));
  const link = new URLSearchParams(location.hash.slice(1)).get("link");
  if (link) {
    const there = await get("/v1/links").catch(() => ({ links: [] }));
    options($("filter"), there.links.map((x) => x.name));
    if (there.links.some((x) => x.name === link)) $("filter").value = link;
  }
  loop();
}

start();
