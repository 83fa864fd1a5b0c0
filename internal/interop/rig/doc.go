// Package rig is what the tests of interop have in common: a link in front of
// one server and what its tracer saw of it, the programs that clients/install.sh
// installs, and the files that results go to.
//
//	client --+-- directly ------------------+-- server
//	         +-- Link: a delay, a tracer ---+
//	                        |
//	                        +-- Keep: every exchange, after Link.Stop has
//	                            checked that all of what passed was read
package rig
