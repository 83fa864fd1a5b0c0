package postgres

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wirewait/wirewait/wire"
)

// captures is the directory of real traffic that others recorded.
func captures(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("WIREWAIT_CAPTURES")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "captures")
	}
	if _, err := os.Stat(filepath.Join(dir, "INDEX.md")); err == nil {
		return dir
	}
	if os.Getenv("WIREWAIT_CI") == "1" {
		t.Fatalf("no captures in %s: set WIREWAIT_CAPTURES", dir)
	}
	t.Skipf("no captures in %s: set WIREWAIT_CAPTURES to their directory", dir)
	return ""
}

// stream is one direction of a recorded connection, and the list of its
// messages that another program made.
type stream struct {
	bytes []byte
	rows  []row
}

// row is a message of that list. trouble: the other program couldn't read it.
type row struct {
	offset, length int
	kind           string
	detail         map[string]any
	trouble        bool
}

// unit is a recorded connection; either direction may be missing.
type unit struct {
	name    string
	streams [2]*stream
}

// kinds of the other program's lists, by our pieces' kinds.
var kindNames = [2]map[string]int32{
	{
		"Query": 'Q', "Parse": 'P', "Bind": 'B', "Describe": 'D', "Execute": 'E', "Close": 'C', "Sync": 'S', "Flush": 'H',
		"Password/SASL": 'p', "CopyData": 'd', "CopyDone": 'c', "CopyFail": 'f', "Terminate": 'X',
		"StartupMessage": version30, "SSLRequest": codeSSL, "CancelRequest": codeCancel, "GSSENCRequest": codeGSS,
	},
	{
		"Authentication": 'R', "ParameterStatus": 'S', "BackendKeyData": 'K', "ReadyForQuery": 'Z', "CommandComplete": 'C',
		"RowDescription": 'T', "DataRow": 'D', "ErrorResponse": 'E', "NoticeResponse": 'N', "NotificationResponse": 'A',
		"EmptyQueryResponse": 'I', "ParseComplete": '1', "BindComplete": '2', "CloseComplete": '3', "NoData": 'n',
		"ParameterDescription": 't', "PortalSuspended": 's', "CopyInResponse": 'G', "CopyOutResponse": 'H',
		"CopyBothResponse": 'W', "CopyData": 'd', "CopyDone": 'c', "EncryptionAnswer N": 'N', "EncryptionAnswer S": 'S',
	},
}

func readStream(t testing.TB, bin string) *stream {
	t.Helper()
	b, err := os.ReadFile(bin)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	st := &stream{bytes: b}
	list, err := os.ReadFile(strings.TrimSuffix(bin, ".bin") + ".msgs.tsv")
	if err != nil {
		return st
	}
	for line := range strings.Lines(string(list)) {
		f := strings.SplitN(strings.TrimRight(line, "\n"), "\t", 4)
		r := row{kind: f[2]}
		r.offset, _ = strconv.Atoi(f[0])
		r.length, _ = strconv.Atoi(f[1])
		json.Unmarshal([]byte(f[3]), &r.detail)
		// What the other program couldn't read, but for bodies: those don't
		// matter to framing.
		why, bad := r.detail["error"].(string)
		_, cut := r.detail["incomplete"]
		r.trouble = bad && !strings.HasPrefix(why, "body") || cut || r.kind == "TLS"
		st.rows = append(st.rows, r)
	}
	return st
}

// units are all recorded PostgreSQL connections.
func units(t testing.TB) (all []unit) {
	t.Helper()
	dir := captures(t)
	for _, pattern := range []string{"captured-pg15/*.bin", "arkime/*.bin", "beats/pg*.bin", "deepflow/*.bin",
		"keploy-samples-go/*sql*.bin", "pgx/*.bin", "pixie/pg*.bin", "suricata-verify/*.bin", "suricata-verify-pr/*.bin", "zeek/*.bin"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no captures match %s", pattern)
		}
		for _, f := range files {
			base := strings.TrimSuffix(f, ".bin")
			name := strings.TrimSuffix(strings.TrimSuffix(base, ".c2s"), ".s2c")
			rel, _ := filepath.Rel(dir, name)
			if strings.Contains(rel, "mongo") || slices.ContainsFunc(all, func(u unit) bool { return u.name == rel }) {
				continue
			}
			u := unit{name: rel}
			if base == name {
				u.streams[single(base)] = readStream(t, f)
			} else {
				u.streams[wire.ToServer] = readStream(t, name+".c2s.bin")
				u.streams[wire.ToClient] = readStream(t, name+".s2c.bin")
			}
			all = append(all, u)
		}
	}
	return all
}

// single is the direction of a single message, by its name.
func single(name string) wire.Direction {
	for _, w := range []string{"_Query", "_Parse", "_Startup", "request"} {
		if strings.HasSuffix(name, w) {
			return wire.ToServer
		}
	}
	return wire.ToClient
}
