package postgres

import (
	"errors"
	"fmt"
	"testing"

	"github.com/wirewait/wirewait/wire"
)

// counts wants so many whole messages of each kind.
func (p *player) wantCounts(dir wire.Direction, want map[int32]int) {
	p.t.Helper()
	if got := fmt.Sprint(p.counts[dir]); got != fmt.Sprint(want) {
		p.t.Errorf("messages %s: %v, want %v", dir, got, fmt.Sprint(want))
	}
}

func TestStartup_AnyVersionIsFramed(t *testing.T) {
	for _, version := range []uint32{3 << 16, 3<<16 | 1, 3<<16 | 2, 3<<16 | 9999, 2 << 16, 4 << 16} {
		p := newPlayer(t, wire.Options{})
		p.play(
			c(startupPacket(version, "user", "ann", "_pq_.test_protocol_negotiation", "")),
			s(msg('v', append([]byte{0, 3, 0, 2, 0, 0, 0, 1}, z("_pq_.test_protocol_negotiation")...)...), authOK(),
				msg('K', append([]byte{0, 0, 1, 0}, make([]byte, 32)...)...), ready('I')),
			c(query("SELECT 1")), s(columns(), datum(), tag("SELECT 1"), ready('I')))
		if err := p.s.Opaque(); err != nil {
			t.Fatalf("version %#x: %v", version, err)
		}
		p.wantCounts(wire.ToServer, map[int32]int{int32(version): 1, 'Q': 1})
		p.wantCounts(wire.ToClient, map[int32]int{'v': 1, 'R': 1, 'K': 1, 'Z': 2, 'T': 1, 'D': 1, 'C': 1})
		wantBriefs(t, p.got, "startup ok", "SELECT ok")
		if pid := p.got[1].Peer.BackendPID; pid != 256 {
			t.Errorf("backend %d of a 36-byte key, want 256", pid)
		}
	}
}

func TestStartup_UnsupportedVersionEndsWithFatal(t *testing.T) {
	got := run(t, c(startupPacket(4<<16, "user", "ann")), s(fatal("0A000")))
	wantBriefs(t, got, "startup error=0A000")
}

func TestStartup_CancelIsUrgentAndUnanswered(t *testing.T) {
	p := newPlayer(t, wire.Options{})
	b := packet(codeCancel, 0, 0, 0, 77, 1, 2, 3, 4)
	p.now = 100
	for _, pc := range append(p.frame(wire.ToServer, b[:8]), p.frame(wire.ToServer, b[8:])...) {
		if !pc.Urgent || pc.Exchange == nil {
			t.Errorf("piece %+v is not an urgent part of the cancel", pc)
		}
	}
	p.s.Decode(wire.ToServer, b, p.pieces[wire.ToServer])
	wantBriefs(t, p.got, "cancel noreply") // at once, not when the connection ends
	if n := p.got[0].Sides[wire.ToServer].Bytes; n != 16 {
		t.Errorf("%d bytes, want 16", n)
	}
	// A key of protocol 3.2 is longer.
	wantBriefs(t, run(t, c(packet(codeCancel, make([]byte, 36)...))), "cancel noreply")
}

func TestStartup_EncryptionRefused(t *testing.T) {
	begin := c(startupPacket(version30, "user", "ann"))
	end := s(authOK(), ready('I'))
	no := s([]byte{'N'})
	ssl, gss := c(packet(codeSSL)), c(packet(codeGSS))
	for name, steps := range map[string][]step{
		"ssl":               {ssl, no, begin, end},
		"gss":               {gss, no, begin, end},
		"gss, then ssl":     {gss, no, ssl, no, begin, end},
		"ssl, then gss":     {ssl, no, gss, no, begin, end},
		"ssl as often as 5": {ssl, no, ssl, no, ssl, no, ssl, no, ssl, no, begin, end},
	} {
		t.Run(name, func(t *testing.T) {
			wantBriefs(t, run(t, steps...), "startup ok")
			sameInAnyOrder(t, steps)
			p := newPlayer(t, wire.Options{}).play(steps...)
			if n := p.counts[wire.ToClient]['N']; n != (len(steps)-2)/2 {
				t.Errorf("%d answers", n)
			}
		})
	}
}

func TestStartup_EncryptionIsSaidAndOpaque(t *testing.T) {
	hello := []byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3}
	yes := func(b byte) step { return s([]byte{b}) }
	for name, steps := range map[string][]step{
		"tls from the start":        {c(hello), s(hello)},
		"ssl accepted":              {c(packet(codeSSL)), yes('S'), c(hello), s(hello)},
		"ssl accepted, client fast": {c(packet(codeSSL)), c(hello), yes('S'), s(hello)},
		"gss accepted":              {c(packet(codeGSS)), yes('G'), c([]byte{0, 0, 0, 99, 0x60, 1, 2, 3, 4, 5}), s([]byte{0, 0, 0, 9, 1})},
		"gss accepted, client fast": {c(packet(codeGSS)), c([]byte{0, 0, 0x20, 0, 0x60, 1, 2, 3, 4, 5}), yes('G')},
		"server alone":              {s(append([]byte{'S'}, hello...))},
	} {
		t.Run(name, func(t *testing.T) {
			for _, o := range orders() {
				p := newPlayer(t, wire.Options{})
				o.feed(p, steps)
				if err := p.s.Opaque(); !errors.Is(err, wire.ErrEncrypted) {
					t.Errorf("%s: %v, want encrypted", o.name, err)
				}
				last := p.pieces[wire.ToClient][len(p.pieces[wire.ToClient])-1]
				if name != "gss accepted, client fast" && !last.Opaque {
					t.Errorf("%s: the end of the server's stream is %+v", o.name, last)
				}
				if o.name == "as sent" || o.name == "client first, whole" {
					if n := p.counts[wire.ToClient]['S'] + p.counts[wire.ToClient]['G']; n != 1 && name != "tls from the start" {
						t.Errorf("%s: %d answers, want 1", o.name, n)
					}
				}
			}
		})
	}
}

// A very old server answers an SSLRequest with an ErrorResponse.
func TestStartup_ErrorInsteadOfAnAnswer(t *testing.T) {
	got := run(t, c(packet(codeSSL)), s(fatal("0A000")))
	wantBriefs(t, got, "- error=0A000")
}

func TestStartup_AnswerWithoutTheClientsStream(t *testing.T) {
	p := newPlayer(t, wire.Options{})
	p.play(s([]byte{'N'}, authOK(), parameter("a", "b"), ready('I')))
	p.wantCounts(wire.ToClient, map[int32]int{'N': 1, 'R': 1, 'S': 1, 'Z': 1})
	// A notice or a parameter first is no answer.
	p = newPlayer(t, wire.Options{})
	p.play(s(notice("NOTICE", "00000", "x"), tag("SELECT 1"), ready('I')))
	p.wantCounts(wire.ToClient, map[int32]int{'N': 1, 'C': 1, 'Z': 1})
	p = newPlayer(t, wire.Options{})
	for _, b := range join([][]byte{parameter("a", "b"), tag("SELECT 1"), ready('I')}) {
		p.play(s([]byte{b}))
	}
	p.wantCounts(wire.ToClient, map[int32]int{'S': 1, 'C': 1, 'Z': 1})
}

func TestStartup_Parameters(t *testing.T) {
	for _, tc := range []struct {
		name       string
		pairs      []string
		want       wire.Peer
		level, src string
	}{
		{"user alone", []string{"user", "ann"}, wire.Peer{User: "ann", Database: "ann"}, "", "default"},
		{"database", []string{"user", "ann", "database", "shop", "application_name", "web"},
			wire.Peer{User: "ann", Database: "shop", Application: "web"}, "", "default"},
		{"physical replication", []string{"user", "r", "database", "replication", "replication", "true", "application_name", "s1"},
			wire.Peer{User: "r", Database: "replication", Application: "s1", Replication: "physical"}, "", "default"},
		{"replication 1", []string{"user", "r", "replication", "1"}, wire.Peer{User: "r", Replication: "physical"}, "", "default"},
		{"replication off", []string{"user", "r", "replication", "off"}, wire.Peer{User: "r", Database: "r"}, "", "default"},
		{"logical replication", []string{"user", "r", "database", "d", "replication", "database"},
			wire.Peer{User: "r", Database: "d", Replication: "logical"}, "", "default"},
		{"a setting by name", []string{"user", "a", "synchronous_commit", "remote_apply"}, wire.Peer{User: "a", Database: "a"}, "remote_apply", "startup"},
		{"in any case", []string{"user", "a", "Synchronous_Commit", "Remote_Apply"}, wire.Peer{User: "a", Database: "a"}, "remote_apply", "startup"},
		{"a boolean", []string{"user", "a", "synchronous_commit", "no"}, wire.Peer{User: "a", Database: "a"}, "off", "startup"},
		{"options -c", []string{"user", "a", "options", "-c synchronous_commit=local"}, wire.Peer{User: "a", Database: "a"}, "local", "startup"},
		{"options -cname", []string{"user", "a", "options", "-csynchronous_commit=off"}, wire.Peer{User: "a", Database: "a"}, "off", "startup"},
		{"options --name", []string{"user", "a", "options", "-c work_mem=4MB --synchronous-commit=remote_write"},
			wire.Peer{User: "a", Database: "a"}, "remote_write", "startup"},
		{"options with an escape", []string{"user", "a", "options", `-c application_name=a\ b  -c synchronous_commit=on`},
			wire.Peer{User: "a", Database: "a", Application: "a b"}, "on", "startup"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := run(t, append(hello(tc.pairs...), c(query("INSERT INTO t VALUES (1)")), s(tag("INSERT 0 1"), ready('I')))...)
			if len(got) != 2 {
				t.Fatal(briefs(got))
			}
			peer := *got[1].Peer
			if peer.BackendPID != 77 {
				t.Errorf("backend %d, want 77", peer.BackendPID)
			}
			peer.BackendPID = 0
			if peer != tc.want {
				t.Errorf("peer %+v, want %+v", peer, tc.want)
			}
			if f := got[1].Postgres; f.SynchronousCommit != tc.level || f.SyncSource != tc.src {
				t.Errorf("level %q of %q, want %q of %q", f.SynchronousCommit, f.SyncSource, tc.level, tc.src)
			}
		})
	}
}

func TestStartup_ApplicationChanges(t *testing.T) {
	got := run(t, append(hello("user", "ann", "application_name", "one"),
		c(query("SELECT 1")), s(tag("SELECT 1"), ready('I')),
		c(query("SET application_name = 'two'")), s(tag("SET"), parameter("application_name", "two"), ready('I')),
		c(query("SELECT 2")), s(tag("SELECT 1"), ready('I')))...)
	if a, b := got[1].Peer.Application, got[3].Peer.Application; a != "one" || b != "two" {
		t.Errorf("applications %q and %q", a, b)
	}
	if got[1].Peer.BackendPID != 77 || got[3].Peer.BackendPID != 77 {
		t.Error("the backend was forgotten")
	}
}

func TestStartup_RefusedAndPasswords(t *testing.T) {
	steps := []step{
		c(startupPacket(version30, "user", "ann")),
		s(msg('R', append([]byte{0, 0, 0, 10}, z("SCRAM-SHA-256", "")...)...)),
		c(msg('p', append(z("SCRAM-SHA-256"), 0, 0, 0, 3, 'n', ',', ',')...)),
		s(msg('R', 0, 0, 0, 11, 'r')), c(msg('p', 's', 'e', 'c')), s(fatal("28P01")),
	}
	got := run(t, steps...)
	wantBriefs(t, got, "startup error=28P01")
	if n := got[0].Sides[wire.ToServer].Bytes; n != int64(len(steps[0].b)+len(steps[2].b)+len(steps[4].b)) {
		t.Errorf("%d bytes to the server", n)
	}
	sameInAnyOrder(t, steps)
}

func TestMalformed_EndsFramingBothWays(t *testing.T) {
	for name, tc := range map[string]struct {
		steps []step
		at    string
	}{
		"start-up too short":     {[]step{c([]byte{0, 0, 0, 7, 0, 3, 0, 0})}, "to_server"},
		"start-up too long":      {[]step{c([]byte{0, 0, 0x27, 0x11, 0, 3, 0, 0})}, "to_server"},
		"no version":             {[]step{c(packet(0x00ff00ff))}, "to_server"},
		"http":                   {[]step{c([]byte("GET / HTTP/1.1\r\n\r\n"))}, "to_server"},
		"length 3":               {append(hello(), c([]byte{'Q', 0, 0, 0, 3})), "to_server"},
		"length 0x7fffffff":      {append(hello(), c([]byte{'S', 0x7f, 0xff, 0xff, 0xff})), "to_server"},
		"length 0x40000000":      {append(hello(), c([]byte{'Q', 0x40, 0, 0, 0, 'x'})), "to_server"},
		"unknown type":           {append(hello(), c(msg('y'))), "to_server"},
		"server's length 3":      {append(hello(), s([]byte{'Z', 0, 0, 0, 3})), "to_client"},
		"server's unknown type":  {append(hello(), s(msg('Q'))), "to_client"},
		"a second start-up":      {append(hello(), c(startupPacket(version30, "user", "x"))), "to_server"},
		"server joined mid-data": {[]step{s([]byte("98e8cbe"))}, "to_client"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, o := range orders()[:3] {
				p := newPlayer(t, wire.Options{})
				o.feed(p, tc.steps)
				err := p.s.Opaque()
				if !errors.Is(err, wire.ErrMalformed) {
					t.Fatalf("%s: %v, want malformed", o.name, err)
				}
				// For good, in both directions, whatever comes.
				p.play(c(query("SELECT 1")), s(tag("SELECT 1"), ready('I')))
				for dir, pieces := range p.pieces {
					if len(pieces) == 0 || !pieces[len(pieces)-1].Opaque {
						t.Errorf("%s: %s is not opaque", o.name, wire.Direction(dir))
					}
				}
				if !errors.Is(p.s.Opaque(), err) || !p.s.Quiet() {
					t.Errorf("%s: the verdict changed", o.name)
				}
				p.s.End()
				if n := p.s.Open().Len(); n != 0 {
					t.Errorf("%s: %d exchanges left", o.name, n)
				}
			}
		})
	}
}
