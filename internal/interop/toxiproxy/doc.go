// Package toxiproxy runs the clients of Toxiproxy against wirewait, and against
// the Toxiproxy server that wirewait takes the place of, built from its module.
// It has only tests.
//
//	requests of ours ------+              +-- toxiproxy-server (2.12.0)
//	Go client, CLI --------+-- recorder --+
//	Node, Python, Java ----+              +-- wirewait toxiproxy
//
// What passed between a client and each of the two must be equal, exchange by
// exchange, but for the version, ports and the request's id. Where they are to
// differ the test says how, and why.
package toxiproxy
