package config

// keySet is what an object of the file may hold.
type keySet struct {
	what string // as a problem calls the object
	// known are the keys that are carried out.
	known []string
	// later are keys that a file will be able to hold and that nothing carries
	// out yet, each with what a person can do meanwhile, if anything.
	later map[string]string
}

// words are what a key knows that takes one of a few; the editors' schema has
// the same (a test compares them).
var (
	protocolWords      = []string{"mongodb", "postgres", "tcp"}
	clusterWords       = []string{"mongodb", "postgres"}
	clientTLSWords     = []string{"pass", "decline", "terminate"}
	distributionWords  = []string{"uniform", "normal", "pareto", "paretonormal"}
	proxyProtocolWords = []string{"accept", "send"}
	serverTLSWords     = []string{"off", "prefer", "require", "verify-ca", "verify-full"}
)

const (
	ofPairs = "give it to the pair of sites in network"
)

var fileKeys = keySet{
	what:  "the file",
	known: []string{"admin", "seed", "sources", "network", "clusters", "links", "rules"},
}

var pairKeys = keySet{
	what: "a pair of sites",
	known: []string{"between", "rtt", "delay", "jitter", "distribution", "correlation", "loss", "bandwidth",
		"bandwidth_per_connection", "window"},
}

var lossKeys = keySet{what: "loss", known: []string{"p", "r", "bad", "good"}}

var clusterKeys = keySet{
	what:  "a cluster",
	known: []string{"protocol", "members", "synchronous_standby_names", "wal_sender_timeout", "wal_receiver_timeout", "observe", "observe_every"},
}

var memberKeys = keySet{
	what:  "a member",
	known: []string{"site", "upstream", "host", "application_name", "votes", "arbiter", "tags", "id", "priority"},
}

var linkKeys = keySet{
	what:  "a link",
	known: []string{"name", "from", "to", "listen", "advertise", "upstream", "protocol", "rtt", "delay", "jitter", "connect", "proxy_protocol", "tls"},
	later: map[string]string{
		"distribution": ofPairs, "correlation": ofPairs, "loss": ofPairs, "bandwidth": ofPairs,
		"bandwidth_per_connection": ofPairs, "window": ofPairs,
	},
}

var meshKeys = keySet{
	what:  "a mesh",
	known: []string{"mesh", "listen", "advertise", "from", "members", "connect", "proxy_protocol", "tls"},
}

var proxyProtocolKeys = keySet{what: "proxy_protocol", known: []string{"accept", "send"}}

var delayKeys = keySet{what: "a link's delay", known: []string{"to_server", "to_client"}}

var tlsKeys = keySet{
	what: "tls",
	known: []string{"client", "cert", "key", "client_ca", "server", "ca", "server_name", "upstream_cert", "upstream_key",
		"direct"},
}
