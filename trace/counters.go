package trace

// Counters are what the proxy counted since its start: a plain snapshot that
// it fills and that metrics and reports read. Arrays of two are indexed by
// wire.Direction.
type Counters struct {
	ConnectionsOpen  int64
	ConnectionsTotal uint64
	// BytesLive is how many bytes stand in the lines now.
	BytesLive int64
	// Bytes is how many were forwarded.
	Bytes     [2]uint64
	Exchanges uint64
	// Encrypted and Opaque are connections that could not be read: for TLS
	// that we don't end, and for anything else.
	Encrypted, Opaque uint64
	// DecodeFailures counts messages that were framed but not understood, by
	// reason. Whoever fills it hands over a map of its own.
	DecodeFailures map[string]uint64
	DialFailures   uint64
	AcceptFailures uint64
	// Dropped is how many exchanges the tracer had no room for.
	Dropped uint64
	// StalledSeconds is how long reading stood still because a line was full.
	StalledSeconds [2]float64
}
