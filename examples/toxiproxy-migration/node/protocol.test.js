"use strict";

// What is new: toxics that know the protocol, by the same client.

const assert = require("node:assert");
const { test } = require("node:test");

const { Unavailable } = require("./orders");
const { start, skip } = require("./rig");

test("the insert is done, and nobody hears of it", { skip }, async (t) => {
  const { orders, proxy, stored } = await start(t);
  const toxic = await proxy.addToxic({ type: "lose_reply", attributes: { match: { statement: "INSERT" } } });
  await assert.rejects(orders.place(1, "tea"), Unavailable);
  assert.equal(await stored(), 1);
  await toxic.remove();
  await orders.place(1, "tea");
  assert.equal(await stored(), 1);
});

test("the first two inserts meet a serialization failure", { skip }, async (t) => {
  const { orders, proxy, stored } = await start(t);
  await proxy.addToxic({ type: "refuse", attributes: { match: { statement: "INSERT" }, code: "40001", first: 2 } });
  await orders.place(1, "tea");
  assert.equal(await stored(), 1);
});

test("what another attempt won't help isn't tried again", { skip }, async (t) => {
  const { orders, proxy, stored } = await start(t);
  await proxy.addToxic({ type: "refuse", attributes: { match: { statement: "INSERT" }, code: "42501" } });
  await assert.rejects(orders.place(1, "tea"), { code: "42501" });
  assert.equal(await stored(), 0);
});
