// Package lab has servers to try wirewait on that need nothing set up: a
// throwaway PostgreSQL server from the machine's own binaries, and MongoDB
// servers in this process: one, or a replica set.
//
//	StartPostgres          a real server             initdb (cached) -> copy -> postgres
//	StartPostgresCluster   a primary with standbys   the same for each of them
//	StartMongo             one server                real TCP, real protocol, data in memory
//	StartMongoSet          a replica set             the same, with a journal and an oplog on disk
//
// All listen on 127.0.0.1 only and leave no server running and no data behind:
// not after Stop or Close, not after a start that failed, and no server when the
// process is killed. What stays is initdb's result (30 MB per version, in the
// temporary directory), which makes the next start fast; and, of a replica set in
// a process that was killed, its files.
//
// What they are worth as evidence differs. PostgreSQL is PostgreSQL. The MongoDB
// servers speak the protocol as servers and drivers have published it and are
// tested with the official driver, but they are not mongod: see package mongod.
package lab
