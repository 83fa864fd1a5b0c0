// Package interop runs real clients and servers through wirewait. It has only
// tests, which share rig and ferret, and it is a module of its own so that their
// weight stays out of the root one.
//
//	official Go driver --+            +-- FerretDB on SQLite, in this process
//	                     +- wirewait -+-- the scripted MongoDB peer of internal/lab
//	pgx -----------------+            +-- PostgreSQL, from the machine's binaries
//
// Each scenario is run twice, directly and through the proxy, and must have the
// same outcome. What the tracer got is then held against what was written.
package interop
