package postgres

import (
	"testing"

	"github.com/wirewait/wirewait/wire"
)

// A stream is a standby's from its begin to its end, and a logical one never is,
// whether or not anybody wants reports.
func TestReplication_IsAStandbysAlone(t *testing.T) {
	x := &standbyStream{t: t, s: New(wire.Options{}).(*session)}
	want := func(what string, is bool) {
		t.Helper()
		r := x.s.Replication()
		if r.Log != is || r.Progress != is || is && (r.Peer == nil || r.Peer.Application != "s1") {
			t.Errorf("%s: %+v", what, r)
		}
	}
	begin := "user\x00rep\x00replication\x00true\x00application_name\x00s1\x00\x00"
	x.pass(c(packet(3<<16, []byte(begin)...)))
	x.pass(s(authOK(), ready('I')))
	want("before it begins", false)
	x.pass(c(query("BASE_BACKUP ( LABEL 'START_REPLICATION LOGICAL' )")))
	x.pass(s(msg('H', 0, 0, 0), msg('d', 'n'), msg('c'), tag("SELECT"), ready('I')))
	want("a backup", false)
	x.pass(c(query("START_REPLICATION 0/1000000 TIMELINE 1")))
	x.pass(s(msg('W', 0, 0, 0)))
	want("a stream", true)
	x.pass(c(msg('c')))
	x.pass(s(msg('c'), tag("COPY 0"), ready('I')))
	want("after its end", false)
	x.pass(c(query(`START_REPLICATION SLOT "s" LOGICAL 0/0 (proto_version '1')`)))
	x.pass(s(msg('W', 0, 0, 0)))
	want("a logical stream", false)
}
