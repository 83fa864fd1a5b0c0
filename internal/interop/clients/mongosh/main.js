// What people do with mongosh, on an empty database. mongosh hands no arguments
// to a script, so they are in WIREWAIT_ARGS: URI [FLAG,...], or --version.
//
// Prints what it got, and nothing that differs from run to run; at the end how
// often it sent each command, by the count of the driver inside.
'use strict';
const { createCipheriv, createHash } = require('crypto');
const [uri, flags = ''] = process.env.WIREWAIT_ARGS.split(' ');

function step(name, act) {
  let said;
  try {
    said = act();
  } catch (e) {
    if (!e.code && !/Timeout/.test(e.name)) throw e;
    said = [e.name, e.code, e.code && e.message];
  }
  print(`${name}: ${EJSON.stringify(said)}`);
}

function inserts(c) {
  step('insert one', () => c.insertOne({ _id: 1, item: 'pencil', qty: 5 }));
  const many = Array.from({ length: 250 }, (_, i) => ({ _id: 100 + i, item: 'pen', qty: i % 10 }));
  step('insert many', () => Object.keys(c.insertMany(many).insertedIds).length);
  step('duplicate key', () => c.insertOne({ _id: 1 }));
  step('bulk', () => c.bulkWrite([
    { insertOne: { document: { _id: 2, qty: 1 } } },
    { insertOne: { document: { _id: 3, qty: 2 } } },
    { updateOne: { filter: { _id: 2 }, update: { $inc: { qty: 10 } } } },
    { replaceOne: { filter: { _id: 3 }, replacement: { item: 'ink' } } },
    { updateMany: { filter: { qty: { $lt: 3 } }, update: { $set: { low: true } } } },
    { deleteOne: { filter: { _id: 3 } } },
  ]).modifiedCount);
  step('bulk with errors', () => c.bulkWrite([
    { insertOne: { document: { _id: 1 } } }, { insertOne: { document: { _id: 5 } } }, { insertOne: { document: { _id: 2 } } },
  ], { ordered: false }));
}

function changes(c) {
  step('update', () => c.updateMany({ qty: 7 }, { $set: { lucky: true } }).modifiedCount);
  step('update nothing', () => c.updateOne({ _id: -1 }, { $set: { x: 1 } }).matchedCount);
  step('upsert', () => c.updateOne({ _id: 4 }, { $set: { x: 1 } }, { upsert: true }).upsertedCount);
  step('delete', () => c.deleteMany({ qty: 9 }).deletedCount);
  step('find one and update', () => c.findOneAndUpdate({ _id: 1 }, { $inc: { qty: 1 } }, { returnDocument: 'after' }));
  const concerns = [{ w: 1 }, { w: 1, j: true }, { j: true }, { w: 'majority' },
    { w: 'majority', wtimeout: 1500 }, { w: 2, wtimeout: 100 }];
  for (const [i, writeConcern] of concerns.entries()) {
    step(`concern ${i}`, () => c.updateOne({ _id: 100 + i }, { $set: { seen: i } }, { writeConcern }).modifiedCount);
  }
}

function reads(c) {
  step('find in batches', () => c.find({ _id: { $lt: 400 } }).batchSize(50).sort({ _id: 1 }).toArray().map(d => [d._id, d.qty]));
  step('aggregate', () => c.aggregate([{ $match: { item: 'pen' } }, { $group: { _id: null, n: { $sum: 1 } } }]).toArray());
  step('count', () => c.countDocuments({}));
  step('estimated count', () => c.estimatedDocumentCount());
  step('distinct', () => c.distinct('qty').sort((a, b) => a - b));
  step('no such command', () => c.getDB().runCommand({ whatIsThis: 1 }));
}

const noise = seed => createCipheriv('aes-128-ctr', Buffer.alloc(16, seed), Buffer.alloc(16)).update(Buffer.alloc(5e6));

function big(c) {
  step('15 MB', () => c.insertOne({ _id: 'big', a: noise(1), b: noise(2), c: noise(3) }));
  step('15 MB back', () => {
    const d = c.findOne({ _id: 'big' });
    const hash = createHash('sha256');
    for (const k of 'abc') hash.update(d[k].buffer);
    return [Buffer.from(d.b.buffer).equals(noise(2)), hash.digest('hex')];
  });
}

function schema(c) {
  step('create index', () => c.createIndex({ item: 1 }));
  step('indexes', () => c.getIndexes().map(i => i.name).sort());
  step('drop', () => c.drop());
  step('count after drop', () => c.countDocuments({}));
}

const extra = {
  w0({ db }) {
    for (let i = 0; i < 20; i++) {
      step('w: 0', () => db.silent.insertOne({ _id: i }, { writeConcern: { w: 0 } }).acknowledged);
    }
    step('count of w: 0', () => db.silent.countDocuments({}));
  },
  timeout({ db, c }) {
    step('slow', () => db.slow.find({}, {}, { timeoutMS: 600 }).toArray());
    step('after slow', () => c.countDocuments({ _id: 1 }));
  },
  transaction({ mongo, c }) {
    const session = mongo.startSession();
    const own = session.getDatabase('shop').orders;
    step('commit', () => {
      session.startTransaction({ writeConcern: { w: 'majority', j: true } });
      own.insertOne({ _id: 't1' });
      own.updateOne({ _id: 't1' }, { $set: { x: 1 } });
      session.commitTransaction();
    });
    step('abort', () => {
      session.startTransaction();
      own.insertOne({ _id: 't2' });
      session.abortTransaction();
    });
    session.endSession();
    step('after transactions', () => c.find({ _id: { $in: ['t1', 't2'] } }).toArray().map(d => d._id));
  },
  tail({ db }) {
    step('create capped', () => db.createCollection('capped', { capped: true, size: 100000 }));
    step('insert capped', () => Object.keys(db.capped.insertMany([0, 1, 2].map(_id => ({ _id }))).insertedIds).length);
    step('tail', () => {
      const cursor = db.capped.find({}, {}, { tailable: true, awaitData: true, batchSize: 2, maxAwaitTimeMS: 1000 });
      const got = [];
      for (let i = 3; i < 6; i++) {
        db.capped.insertOne({ _id: i });
        while (got.at(-1) !== i) got.push(cursor.next()._id);
      }
      cursor.close();
      return got;
    });
  },
  stepdown({ db }) {
    const write = (from, to) => step('writes', () => {
      for (let i = from; i < to; i++) {
        db.moving.insertOne({ _id: i });
        db.moving.updateOne({ _id: i }, { $inc: { n: 1 } });
      }
      return to;
    });
    write(0, 20);
    step('step down', () => db.adminCommand({ replSetStepDown: 60 }).ok);
    write(20, 40);
    step('written once', () => db.moving.countDocuments({ n: 1 }));
  },
  watch({ c }) {
    step('watch', () => {
      const stream = c.watch([], { maxAwaitTimeMS: 50 });
      stream.tryNext();
      c.insertOne({ _id: 'w1' });
      c.deleteOne({ _id: 'w1' });
      const got = [];
      while (got.length < 2) {
        const e = stream.tryNext();
        if (e) got.push([e.operationType, e.documentKey]);
      }
      stream.close();
      return got;
    });
  },
};

function main() {
  const mongo = new Mongo(uri + '&monitorCommands=true');
  const sent = {};
  mongo._serviceProvider.mongoClient.on('commandStarted', e => { sent[e.commandName] = (sent[e.commandName] || 0) + 1; });
  const db = mongo.getDB('shop');
  const c = db.orders;
  inserts(c);
  changes(c);
  reads(c);
  for (const f of flags.split(',').filter(Boolean)) extra[f]({ mongo, db, c });
  big(c);
  schema(c);
  mongo.close();
  print('sent ' + JSON.stringify(sent));
}

if (uri === '--version') print('mongosh', version());
else main();
