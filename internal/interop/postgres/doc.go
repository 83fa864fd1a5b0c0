// Package postgres runs what people connect to PostgreSQL with through
// wirewait. It has no code of its own, only tests.
//
//	psql, pgbench, pg_dump ...  --+                          +-- PostgreSQL of this machine
//	pgx and its own test suite  --+-- link: 5 ms round trip, |   (15 on Debian 12)
//	psycopg, asyncpg, pg, JDBC  --+   jitter 1 ms one way    +-- 17 and 18 (npm)
//	PgBouncer, before or behind --+                          +
//
// Every client runs twice, directly and through the link, each time on a fresh
// database. What it prints and its exit code must be the same, all that passed
// must have been read, and the writes that were traced must be those it did.
//
// What ran, and in which versions, goes into one JSON file per run: postgres.json
// in the directory WIREWAIT_MATRIX_OUT, else in a directory of this user's below
// the temporary one. With -update-docs docs/compatibility-postgres.md is made
// from it.
//
// The clients are programs in ../clients; ../clients/install.sh installs what
// they need.
package postgres
