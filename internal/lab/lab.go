// Package lab has servers to try wirewait on that need nothing set up: a
// throwaway PostgreSQL server from the machine's own binaries, and a small
// MongoDB peer in this process.
//
//	StartPostgres          a real server                initdb (cached) -> copy -> postgres
//	StartPostgresCluster   a primary with standbys      the same for each of them
//	StartMongo             a scripted peer              real TCP, real protocol, data in memory
//
// All listen on 127.0.0.1 only and leave no server running and no data behind:
// not after Stop, not after a start that failed, and not when the process is
// killed. What stays is initdb's result (30 MB per version, in the temporary
// directory), which makes the next start fast.
//
// What the two are worth as evidence differs. PostgreSQL is PostgreSQL. The
// MongoDB peer speaks the protocol as servers and drivers have published it and
// is tested with the official driver, but it is not mongod: it waits as long as
// its script says, and nothing in it replicates.
package lab
