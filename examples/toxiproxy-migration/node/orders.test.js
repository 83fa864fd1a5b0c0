"use strict";

// The tests of before. They know Toxiproxy only.

const assert = require("node:assert");
const { test } = require("node:test");

const { Unavailable } = require("./orders");
const { start, skip } = require("./rig");

test("a slow database", { skip }, async (t) => {
  const { orders, proxy, stored } = await start(t);
  await proxy.addToxic({ type: "latency", attributes: { latency: 100 } });
  const began = performance.now();
  await orders.place(1, "tea");
  assert(performance.now() - began >= 199); // connecting, and the insert
  assert.equal(await stored(), 1);
});

test("no database", { skip }, async (t) => {
  const { orders, proxy, stored } = await start(t);
  await proxy.update({ ...proxy.toJson(), enabled: false });
  await assert.rejects(orders.place(1, "tea"), Unavailable);
  await proxy.update({ ...proxy.toJson(), enabled: true });
  await orders.place(1, "tea");
  assert.equal(await stored(), 1);
});

test("a cut wire", { skip }, async (t) => {
  const { orders, proxy } = await start(t, { patience: 200 });
  await proxy.addToxic({ type: "bandwidth", attributes: { rate: 0 } });
  await assert.rejects(orders.place(1, "tea"), Unavailable);
});

test("connections that are reset", { skip }, async (t) => {
  const { orders, proxy, stored } = await start(t);
  await proxy.addToxic({ type: "reset_peer", attributes: { timeout: 0 } });
  await assert.rejects(orders.place(1, "tea"), Unavailable);
  assert.equal(await stored(), 0);
});
