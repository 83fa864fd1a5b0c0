// Package soak holds a test that runs for as long as one likes: clients of
// both protocols and of none, whose payloads carry checksums, through links
// whose delays change at random, to upstreams that drop their connections at
// random.
//
//	client --> link (delay set at random) --> flaky relay --> server
//	  |                                         drops all it has,
//	  +-- payloads and their checksums          now and then
//
// It ends with nothing left over (goroutines, descriptors, memory), no payload
// changed and no message that could not be decoded. It's repeated by its seed.
//
//	make soak            # ten minutes, with the race detector
package soak
