package mongodb

// What the page says beside its table.

const intro = `# MongoDB clients

Written by ` + "`go test ./mongodb -update-docs`" + ` in internal/interop; every run of the tests holds it against what it saw.

Each client does the same, on an empty database: single and bulk inserts, a duplicate key, ordered and unordered bulk
writes, finds in batches, updates, an upsert, deletes, findOneAndUpdate, an aggregation, counts, distinct, an index, a
drop, a document of 15 MB there and back, an unknown command, and the write concerns ` + "`w: 1`, `w: 1, j: true`" + `,
` + "`j: true`, `majority`, `majority` with `wtimeout`, and `w: 2`" + ` with one.

*Equal* means: over a link of 5 ms with 1 ms of jitter each way it printed what it prints directly, and ended the same;
the proxy read every message; and it saw each command as often as the driver says it sent it, the writes as writes and
hello never as one.

`

const notes = `
* **FerretDB** is MongoDB's protocol on SQLite. It takes no compressor, ignores write concerns, and answers even writes
  that ask for no reply.
* **SecantusDB** is MongoDB's protocol on WiredTiger, the storage engine of mongod, as a single node: ` + "`j: true`" + `
  syncs a journal. On it clients also run writes without a reply (` + "`w: 0`" + `), a transaction that commits and one that
  aborts, a tailable cursor and a change stream.
* **The peer** is the scripted one of internal/lab, of which what is compared is the client and the wire, not the answers:
  it refuses distinct, indexes and drops as a server without them would. Compression is tested with it, hello in a
  stream, writes without a reply, and a read that is answered long after the client gave up.
* **The replica set** is internal/lab's, of three members that replicate over TCP, with a link in front of each: clients
  are told of one of them and find the others by the hello that the proxy rewrites. In the midst of 40 writes a client
  has the primary step down: all of them are there once, and every command of it was seen on the links.
* Of a compressed message the proxy inflates 256 KiB, of a command that goes on behind that up to 4 MiB. The reply of
  15 MB is forwarded whole and counted as ` + "`compressed_cut`" + `; so are the inserts of it by mongosh and the Node.js driver,
  which have the document before the write concern.
* mongosh brings zlib only. The Node.js driver's zstd is @mongodb-js/zstd 1.2.2: later ones fetch a binary when they are
  installed.
* None of these is mongod. What is known of its own wire is tested with recorded streams (wire/mongo).
`
