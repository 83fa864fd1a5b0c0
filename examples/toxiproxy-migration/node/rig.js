"use strict";

const { Client } = require("pg");
const { Toxiproxy } = require("toxiproxy-node-client");

const { Orders } = require("./orders");

const toxiproxy = new Toxiproxy(process.env.TOXIPROXY_URL || "http://localhost:8474");
let proxies = 0;

/** The service behind a proxy, and the database without one; until the test ends. */
async function start(t, options) {
  const url = new URL(process.env.DATABASE_URL);
  const database = new Client({ connectionString: url.href });
  await database.connect();
  t.after(() => database.end());
  await database.query("DROP TABLE IF EXISTS orders; CREATE TABLE orders (number int PRIMARY KEY, item text)");

  const name = `orders-node-${process.pid}-${++proxies}`;
  const proxy = await toxiproxy.createProxy({ name, listen: "127.0.0.1:0", upstream: url.host });
  t.after(() => proxy.remove());
  url.host = proxy.listen;
  const stored = async () => (await database.query("SELECT count(*)::int FROM orders")).rows[0].count;
  return { orders: new Orders(url.href, options), proxy, stored };
}

const skip = process.env.DATABASE_URL ? false : "DATABASE_URL is the PostgreSQL to use";

module.exports = { start, skip };
