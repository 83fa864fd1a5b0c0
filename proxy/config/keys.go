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
	protocolWords     = []string{"mongodb", "postgres", "tcp"}
	clusterWords      = []string{"mongodb", "postgres"}
	clientTLSWords    = []string{"pass", "decline", "terminate"}
	distributionWords = []string{"uniform", "normal", "pareto", "paretonormal"}
	serverTLSWords    = []string{"off", "prefer", "require", "verify-ca", "verify-full"}
)

const (
	ofPairs   = "give it to the pair of sites in network"
	noSources = "give each site or member a link of its own"
)

var fileKeys = keySet{
	what:  "the file",
	known: []string{"admin", "seed", "network", "clusters", "links", "rules"},
	later: map[string]string{"sources": noSources},
}

var pairKeys = keySet{
	what: "a pair of sites",
	known: []string{"between", "rtt", "delay", "jitter", "distribution", "correlation", "loss", "bandwidth",
		"bandwidth_per_connection", "window"},
}

var lossKeys = keySet{what: "loss", known: []string{"p", "r", "bad", "good"}}

var clusterKeys = keySet{
	what:  "a cluster",
	known: []string{"protocol", "members", "synchronous_standby_names"},
	later: map[string]string{"observe": ""},
}

var memberKeys = keySet{
	what:  "a member",
	known: []string{"site", "upstream", "application_name"},
	later: map[string]string{
		"host": "", "votes": "", "arbiter": "", "tags": "", "id": "", "priority": "",
	},
}

var linkKeys = keySet{
	what:  "a link",
	known: []string{"name", "from", "to", "listen", "upstream", "protocol", "rtt", "delay", "jitter", "connect", "tls"},
	later: map[string]string{
		"advertise":      "names in hello replies aren't rewritten, so MongoDB drivers need directConnection=true",
		"proxy_protocol": "PROXY v2 is neither read nor written",
		"distribution":   ofPairs, "correlation": ofPairs, "loss": ofPairs, "bandwidth": ofPairs,
		"bandwidth_per_connection": ofPairs, "window": ofPairs,
	},
}

var meshKeys = keySet{
	what:  "a mesh",
	known: []string{"mesh", "listen", "from", "members", "connect", "tls"},
	later: map[string]string{"advertise": linkKeys.later["advertise"], "proxy_protocol": linkKeys.later["proxy_protocol"]},
}

var delayKeys = keySet{what: "a link's delay", known: []string{"to_server", "to_client"}}

var tlsKeys = keySet{
	what: "tls",
	known: []string{"client", "cert", "key", "client_ca", "server", "ca", "server_name", "upstream_cert", "upstream_key",
		"direct"},
}
