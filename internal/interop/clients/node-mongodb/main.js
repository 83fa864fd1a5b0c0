// What people do with the Node.js driver, on an empty database:
// node main.js URI [FLAG,...]
//
// Prints what it got, and nothing that differs from run to run; at the end how
// often it sent each command. --version prints what it is made of. Flags add
// what only some servers have: w0 (writes without a reply), timeout (collection
// "slow" answers late), transaction, tail (a capped collection), watch, stepdown
// (writes while a replica set changes its primary).
'use strict';
const { createCipheriv, createHash } = require('crypto');
const { MongoClient } = require('mongodb');

const sent = {};

async function step(name, act) {
  let said;
  try {
    said = await act();
  } catch (e) {
    if (!e.code && !/Timeout/.test(e.name)) throw e;
    said = [e.name, e.code, e.code && e.message, e.writeErrors && e.writeErrors.map(w => [w.index, w.code])];
  }
  console.log(`${name}: ${JSON.stringify(said)}`);
}

async function inserts(c) {
  await step('insert one', () => c.insertOne({ _id: 1, item: 'pencil', qty: 5 }));
  const many = Array.from({ length: 250 }, (_, i) => ({ _id: 100 + i, item: 'pen', qty: i % 10 }));
  await step('insert many', async () => (await c.insertMany(many)).insertedCount);
  await step('duplicate key', () => c.insertOne({ _id: 1 }));
  await step('bulk', async () => (await c.bulkWrite([
    { insertOne: { document: { _id: 2, qty: 1 } } },
    { insertOne: { document: { _id: 3, qty: 2 } } },
    { updateOne: { filter: { _id: 2 }, update: { $inc: { qty: 10 } } } },
    { replaceOne: { filter: { _id: 3 }, replacement: { item: 'ink' } } },
    { updateMany: { filter: { qty: { $lt: 3 } }, update: { $set: { low: true } } } },
    { deleteOne: { filter: { _id: 3 } } },
  ])).modifiedCount);
  await step('bulk with errors', () => c.bulkWrite([
    { insertOne: { document: { _id: 1 } } }, { insertOne: { document: { _id: 5 } } }, { insertOne: { document: { _id: 2 } } },
  ], { ordered: false }));
}

async function changes(c) {
  await step('update', async () => (await c.updateMany({ qty: 7 }, { $set: { lucky: true } })).modifiedCount);
  await step('update nothing', async () => (await c.updateOne({ _id: -1 }, { $set: { x: 1 } })).matchedCount);
  await step('upsert', async () => (await c.updateOne({ _id: 4 }, { $set: { x: 1 } }, { upsert: true })).upsertedId);
  await step('delete', async () => (await c.deleteMany({ qty: 9 })).deletedCount);
  await step('find one and update', () => c.findOneAndUpdate({ _id: 1 }, { $inc: { qty: 1 } }, { returnDocument: 'after' }));
  const concerns = [{ w: 1 }, { w: 1, j: true }, { j: true }, { w: 'majority' },
    { w: 'majority', wtimeout: 1500 }, { w: 2, wtimeout: 100 }];
  for (const [i, writeConcern] of concerns.entries()) {
    await step(`concern ${i}`, async () =>
      (await c.updateOne({ _id: 100 + i }, { $set: { seen: i } }, { writeConcern })).modifiedCount);
  }
}

async function reads(c) {
  await step('find in batches', async () =>
    (await c.find({ _id: { $lt: 400 } }, { batchSize: 50 }).sort({ _id: 1 }).toArray()).map(d => [d._id, d.qty]));
  await step('aggregate', () => c.aggregate([{ $match: { item: 'pen' } }, { $group: { _id: null, n: { $sum: 1 } } }]).toArray());
  await step('count', () => c.countDocuments());
  await step('estimated count', () => c.estimatedDocumentCount());
  await step('distinct', async () => (await c.distinct('qty')).sort((a, b) => a - b));
  await step('no such command', () => c.db.command({ whatIsThis: 1 }));
}

// noise is n bytes that no compressor and no mistake can shrink.
const noise = (seed, n) => createCipheriv('aes-128-ctr', Buffer.alloc(16, seed), Buffer.alloc(16)).update(Buffer.alloc(n));

async function big(c) {
  await step('15 MB', () => c.insertOne({ _id: 'big', a: noise(1, 5e6), b: noise(2, 5e6), c: noise(3, 5e6) }));
  await step('15 MB back', async () => {
    const d = await c.findOne({ _id: 'big' }, { promoteBuffers: true });
    const hash = createHash('sha256');
    for (const k of 'abc') hash.update(d[k]);
    return [d.b.equals(noise(2, 5e6)), hash.digest('hex')];
  });
}

async function schema(c) {
  await step('create index', () => c.createIndex({ item: 1 }));
  await step('indexes', async () => (await c.listIndexes().toArray()).map(i => i.name).sort());
  await step('drop', () => c.drop());
  await step('count after drop', () => c.countDocuments());
}

const extra = {
  async w0({ db }) {
    const silent = db.collection('silent', { writeConcern: { w: 0 } });
    for (let i = 0; i < 20; i++) await step('w: 0', async () => (await silent.insertOne({ _id: i })).acknowledged);
    await step('count of w: 0', () => db.collection('silent').countDocuments());
  },
  async timeout({ db, c }) {
    await step('slow', () => db.collection('slow').findOne({}, { timeoutMS: 600 }));
    await step('after slow', () => c.countDocuments({ _id: 1 }));
  },
  async transaction({ client, c }) {
    const session = client.startSession();
    await step('commit', async () => {
      session.startTransaction({ writeConcern: { w: 'majority', j: true } });
      await c.insertOne({ _id: 't1' }, { session });
      await c.updateOne({ _id: 't1' }, { $set: { x: 1 } }, { session });
      await session.commitTransaction();
    });
    await step('abort', async () => {
      session.startTransaction();
      await c.insertOne({ _id: 't2' }, { session });
      await session.abortTransaction();
    });
    await session.endSession();
    await step('after transactions', async () => (await c.find({ _id: { $in: ['t1', 't2'] } }).toArray()).map(d => d._id));
  },
  async tail({ db }) {
    await step('create capped', async () => (await db.createCollection('capped', { capped: true, size: 100000 })).collectionName);
    const capped = db.collection('capped');
    await step('insert capped', async () => (await capped.insertMany([0, 1, 2].map(_id => ({ _id })))).insertedCount);
    await step('tail', async () => {
      const cursor = capped.find({}, { tailable: true, awaitData: true, batchSize: 2, maxAwaitTimeMS: 1000 });
      const got = [];
      for (let i = 3; i < 6; i++) {
        await capped.insertOne({ _id: i });
        while (got.at(-1) !== i) got.push((await cursor.next())._id);
      }
      await cursor.close();
      return got;
    });
  },
  async stepdown({ client, db }) {
    const moving = db.collection('moving');
    const write = (from, to) => step('writes', async () => {
      for (let i = from; i < to; i++) {
        await moving.insertOne({ _id: i });
        await moving.updateOne({ _id: i }, { $inc: { n: 1 } });
      }
      return to;
    });
    await write(0, 20);
    await step('step down', async () => { await client.db('admin').command({ replSetStepDown: 60 }); });
    await write(20, 40);
    await step('written once', () => moving.countDocuments({ n: 1 }));
  },
  async watch({ c }) {
    await step('watch', async () => {
      const stream = c.watch([], { maxAwaitTimeMS: 50 });
      await stream.tryNext(); // it begins with its first command
      await c.insertOne({ _id: 'w1' });
      await c.deleteOne({ _id: 'w1' });
      const got = [await stream.next(), await stream.next()].map(e => [e.operationType, e.documentKey]);
      await stream.close();
      return got;
    });
  },
};

async function main(uri, flags = '') {
  const client = new MongoClient(uri, { monitorCommands: true });
  client.on('commandStarted', e => { sent[e.commandName] = (sent[e.commandName] || 0) + 1; });
  const db = client.db('shop');
  const c = Object.assign(db.collection('orders'), { db });
  await inserts(c);
  await changes(c);
  await reads(c);
  for (const f of flags.split(',').filter(Boolean)) await extra[f]({ client, db, c });
  await big(c);
  await schema(c);
  await client.close();
  console.log('sent', JSON.stringify(sent));
}

if (process.argv[2] === '--version') console.log('mongodb', require('mongodb/package.json').version);
else main(...process.argv.slice(2));
