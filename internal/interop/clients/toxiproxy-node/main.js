"use strict";

// Makes every call of toxiproxy-node-client: node main.js HOST PORT UPSTREAM

const { Toxiproxy } = require("toxiproxy-node-client");

const [host, port, upstream] = process.argv.slice(2);

// said prints what a call returned, or how it failed.
async function said(call, promise) {
  try {
    const got = await promise;
    console.log(call, JSON.stringify(plain(got)));
    return got;
  } catch (e) {
    console.log(call, "failed:", e.message);
  }
}

function plain(x) {
  if (x === undefined || x === null || typeof x !== "object") return x ?? null;
  if (x.toJson) return x.toJson();
  return Object.fromEntries(Object.keys(x).sort().map((k) => [k, plain(x[k])]));
}

async function main() {
  const toxiproxy = new Toxiproxy(`http://${host}:${port}`);
  await said("getVersion", toxiproxy.getVersion());
  await said("getAll", toxiproxy.getAll());
  const orders = { name: "orders", listen: "localhost:0", upstream };
  const proxy = await said("createProxy", toxiproxy.createProxy(orders));
  await said("createProxy again", toxiproxy.createProxy(orders));
  await said("createProxy without a name", toxiproxy.createProxy({ upstream }));
  await said("createProxy on a taken port", toxiproxy.createProxy({ name: "taken", listen: upstream, upstream }));
  await said("get", toxiproxy.get("orders"));
  await said("get nobody", toxiproxy.get("nobody"));
  await said("update", proxy.update({ enabled: false, listen: proxy.listen, upstream }));
  await said("update", proxy.update({ enabled: true, listen: proxy.listen, upstream }));

  const bodies = [
    { type: "latency", attributes: { latency: 1000, jitter: 100 } },
    { type: "bandwidth", attributes: { rate: 1000 }, stream: "upstream", toxicity: 0.5 },
    { type: "slow_close", attributes: { delay: 10 }, name: "late" },
    { type: "timeout", attributes: { timeout: 1000 }, name: "gone", toxicity: 0 },
    { type: "reset_peer", attributes: { timeout: 1000 }, name: "reset", toxicity: 0 },
    { type: "slicer", attributes: { average_size: 64, size_variation: 8, delay: 10 }, name: "pieces" },
    { type: "limit_data", attributes: { bytes: 1024 }, name: "short", toxicity: 0 },
    { type: "latency", attributes: { latency: 1000 } },
    { type: "nothing", attributes: {} },
    { type: "latency", attributes: { latency: 0.5 }, name: "half" },
  ];
  const toxics = [];
  for (const body of bodies) {
    const toxic = await said(`addToxic ${body.type}`, proxy.addToxic(body));
    if (toxic) toxics.push(toxic);
  }
  await said("getToxic", proxy.getToxic("late"));
  await said("getToxic nobody", proxy.getToxic("nobody"));
  await said("toxic.update", toxics[0].update({ toxicity: 0.25, attributes: { latency: 500, jitter: 0 } }));
  await said("toxic.update badly", toxics[0].update({ attributes: { latency: "soon" } }));
  await said("toxic.remove", toxics[0].remove());
  await said("toxic.remove again", toxics[0].remove());

  await said("populate", toxiproxy.populate([
    { name: "orders", listen: proxy.listen, upstream },
    { name: "stock", listen: "127.0.0.1:0", upstream },
  ]));
  await said("populate badly", toxiproxy.populate([{ upstream }]));
  await said("reset", toxiproxy.reset());
  await said("getAll", toxiproxy.getAll());
  await said("remove", proxy.remove());
  await said("remove again", proxy.remove());
  console.log("done");
}

main();
