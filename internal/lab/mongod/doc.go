// Package mongod is a model of MongoDB 8.0's server, small enough to read: a
// standalone server, or a replica set whose members run in this process and
// speak to each other over TCP as real ones do.
//
//	        clients                                  another member
//	           |  OP_MSG, OP_QUERY, OP_COMPRESSED           ^  |
//	           v                                            |  | replSetHeartbeat
//	connection -> command -> write -> oplog entry           |  | replSetRequestVotes
//	                           |        |     |             |  v
//	                           v        |     +--> exhaust getMore on local.oplog.rs
//	                         data       v                      |
//	                                 journal (fsync)           v
//	                                    |              inbox -> oplog -> outbox -> data
//	                    durable         v                         |
//	waiters <-- commit point <-- positions <-- replSetUpdatePosition (written, durable, applied)
//
// What is like a server: the messages, their order and who sends them when; that
// every acknowledged change is an oplog entry, and the data what the entries add
// up to; group commit; what each write concern waits for; elections, step-down,
// rollback. Where this follows a file of the server's source or a page of a
// specification, the comment names it.
//
// What an operation waits for before it's done (Engine) is like a server's too:
// tickets and their queue, flow control, the time of a client; checkpoints are
// real writes of what has changed, and as slow as an option says.
//
// What isn't: transactions, indexes other than _id, read concern majority, initial
// sync (the oplog is kept whole instead), arbiters, reconfiguration,
// authentication, TLS. All of that is refused with a server's own code, or with
// NotImplemented (238), and never answered half.
//
// It has been tested against the official driver and against what is published.
// It has not been compared with a running mongod.
package mongod
