package postgres

import (
	"bytes"
	"strings"

	"github.com/wirewait/wirewait/wire"
)

// startup is what a StartupMessage says.
type startup struct {
	peer  wire.Peer
	level string // of synchronous_commit; empty if it's not set
	set   bool   // it is set, readable or not
}

// readParameters reads the names and values of a StartupMessage.
func readParameters(b []byte) (*startup, error) {
	st := &startup{}
	for len(b) > 0 && b[0] != 0 {
		name, rest, ok := bytes.Cut(b, []byte{0})
		value, rest, terminated := bytes.Cut(rest, []byte{0})
		if !ok || !terminated {
			return st, errBody
		}
		st.parameter(string(name), string(value))
		b = rest
	}
	if st.peer.Database == "" && st.peer.Replication != "physical" {
		st.peer.Database = st.peer.User
	}
	return st, nil
}

func (st *startup) parameter(name, value string) {
	switch name {
	case "user":
		st.peer.User = value
	case "database":
		st.peer.Database = value
	case "replication":
		st.peer.Replication = replicationOf(value)
	case "options":
		st.options(value)
	default:
		st.setting(name, value)
	}
}

// replicationOf reads a boolean or "database"
// (src/backend/postmaster/postmaster.c, ProcessStartupPacket).
func replicationOf(v string) string {
	switch strings.ToLower(v) {
	case "database":
		return "logical"
	case "true", "on", "yes", "1", "t", "y":
		return "physical"
	}
	return ""
}

// setting is a server's setting by its name, in any case.
func (st *startup) setting(name, value string) {
	switch strings.ToLower(strings.ReplaceAll(name, "-", "_")) {
	case "application_name":
		st.peer.Application = value
	case "synchronous_commit":
		st.level, _ = levelOf([]byte(value))
		st.set = true
	}
}

// options reads a command line: -c name=value, -cname=value, --name=value.
func (st *startup) options(line string) {
	words := splitOptions(line)
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case w == "-c" && i+1 < len(words):
			i++
			w = words[i]
		case strings.HasPrefix(w, "--"), strings.HasPrefix(w, "-c"):
			w = w[2:]
		default:
			continue
		}
		if name, value, ok := strings.Cut(w, "="); ok {
			st.setting(name, value)
		}
	}
}

// splitOptions splits at white space; a backslash takes the next character as
// it is (src/backend/utils/init/postinit.c, pg_split_opts).
func splitOptions(line string) []string {
	var words []string
	var word []byte
	in := false
	for i := 0; i < len(line); i++ {
		c := line[i]
		if isSpace(c) {
			if in {
				words = append(words, string(word))
			}
			word, in = word[:0], false
			continue
		}
		if c == '\\' && i+1 < len(line) {
			i++
			c = line[i]
		}
		word, in = append(word, c), true
	}
	if in {
		words = append(words, string(word))
	}
	return words
}
