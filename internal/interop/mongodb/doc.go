// Package mongodb is the MongoDB half of the interop matrix. It has no code of
// its own, only tests.
//
//	clients/go-mongodb    --+                       +-- FerretDB on SQLite, in this process
//	clients/node-mongodb  --+                       |
//	clients/mongosh       --+-- directly        ----+-- SecantusDB: MongoDB's protocol over the
//	clients/pymongo       --+-- and over a link     |   storage engine of mongod, WiredTiger
//	clients/java-mongodb  --+                       +-- the scripted peer of internal/lab
//	                                                +-- its replica set, a link to each member
//
// Each client is a small program that does what its users do, on an empty
// database, and prints what it got. Directly and over a link of 5 ms with jitter
// it must print the same. At the end it prints how often it sent each command, by
// its driver's own count; the proxy must have seen exactly those.
//
// clients/install.sh installs what the programs need. The outcome is written to
// docs/compatibility-mongodb.md by go test -update-docs.
package mongodb
