"use strict";

const { Client } = require("pg");

/** The order may have been placed or not: ask again with the same number. */
class Unavailable extends Error {}

/** Stores orders. Placing one twice places it once: its number is the key. */
class Orders {
  constructor(url, { attempts = 3, patience = 5000 } = {}) {
    Object.assign(this, { url, attempts, patience });
  }

  /** Returns once it's certain that the order is there. */
  async place(number, item) {
    let last;
    for (let i = 0; i < this.attempts; i++) {
      try {
        return await this.attempt(number, item);
      } catch (e) {
        if (!retryable(e)) throw e;
        last = e;
      }
    }
    throw new Unavailable("the database can't be reached", { cause: last });
  }

  async attempt(number, item) {
    const client = new Client({
      connectionString: this.url,
      connectionTimeoutMillis: this.patience,
      query_timeout: this.patience,
    });
    client.on("error", () => {}); // whoever waits for the query is told
    try {
      await client.connect();
      await client.query("INSERT INTO orders VALUES ($1, $2) ON CONFLICT DO NOTHING", [number, item]);
    } finally {
      client.end().catch(() => {}); // it may never be answered
    }
  }
}

// The network's errors, and of the server's own those that another attempt may not
// meet: the transaction was rolled back, or the server is going.
function retryable(e) {
  return !e.severity || /^(40|57)/.test(e.code);
}

module.exports = { Orders, Unavailable };
