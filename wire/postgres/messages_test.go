package postgres

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/wirewait/wirewait/wire"
)

// Every type of message is framed, in its own direction only: one letter may
// mean two things.
func TestMessages_EveryType(t *testing.T) {
	for dir, types := range [2]string{"BCDEFHPQSXcdfp", "123ACDEGHIKNRSTVWZcdnstv"} {
		for b := range 256 {
			dir := wire.Direction(dir)
			p := newPlayer(t, wire.Options{}).play(hello()...)
			p.play(step{dir, msg(byte(b), 0, 0, 0, 0, 0)})
			if want := strings.IndexByte(types, byte(b)) >= 0; (p.s.Opaque() == nil) != want || p.counts[dir][int32(b)] == 0 && want {
				t.Errorf("%s %q: opaque %v, known: %v", dir, rune(b), p.s.Opaque(), want)
			}
		}
	}
}

// An answer of the client's means what the last request for it asked. None is
// read, whatever it is.
func TestStartup_EveryAuthentication(t *testing.T) {
	const secret = "hunter2-secret"
	request := func(code byte, more ...byte) step { return s(msg('R', append([]byte{0, 0, 0, code}, more...)...)) }
	answer := c(msg('p', z(secret)...))
	for name, exchange := range map[string][]step{
		"trust":        nil,
		"cleartext":    {request(3), answer},
		"MD5":          {request(5, 1, 2, 3, 4), answer},
		"Kerberos V5":  {request(2), answer},
		"GSS":          {request(7), answer, request(8, 9, 9), answer},
		"SSPI":         {request(9), answer, request(8, 9, 9), answer},
		"SCRAM":        {request(10, append(z("SCRAM-SHA-256"), 0)...), answer, request(11, 'r', '='), answer, request(12, 'v', '=')},
		"what is next": {request(99), answer},
	} {
		t.Run(name, func(t *testing.T) {
			steps := append([]step{c(startupPacket(version30, "user", "ann"))}, exchange...)
			steps = append(steps, s(authOK(), keyData(7), ready('I')), c(query("SELECT 1")), s(tag("SELECT 1"), ready('I')))
			p := newPlayer(t, wire.Options{Text: wire.TextRaw}).play(steps...)
			wantBriefs(t, p.got, "startup ok", "SELECT ok")
			in := p.s.(*session)
			if strings.Contains(fulls(p.got), secret) || bytes.Contains(in.decoders[wire.ToServer].body, []byte(secret)) || len(p.text) > 0 {
				t.Errorf("the answer was read, or trouble %v", p.text)
			}
			sameInAnyOrder(t, steps)
		})
	}
}

// A body that can't be read is counted, and framing goes on.
func TestMessages_ABodyThatIsNone(t *testing.T) {
	for name, b := range map[string][]byte{
		"a Query without its NUL":      msg('Q', 'S', 'E', 'L'),
		"a Query without a body":       msg('Q'),
		"a Parse without its NUL":      msg('P', 'a'),
		"a FunctionCall without a OID": msg('F', 0, 0),
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t, wire.Options{}).play(hello()...)
			p.play(c(b, sync()), s(refused("08P01"), ready('I')), c(query("SELECT 1")), s(tag("SELECT 1"), ready('I')))
			if !slices.Equal(p.text, []string{"body"}) || p.s.Opaque() != nil {
				t.Errorf("trouble %v, opaque %v", p.text, p.s.Opaque())
			}
			last := p.got[len(p.got)-1]
			if brief(last) != "SELECT ok" || brief(p.got[1])[len(brief(p.got[1]))-11:] != "error=08P01" {
				t.Errorf("%v", briefs(p.got))
			}
		})
	}
}

// Only the SQLSTATE is taken of an error, whatever else there is, in whatever
// language and order.
func TestMessages_FieldsOfAnError(t *testing.T) {
	for name, fields := range map[string][]string{
		"in the usual order":  {"SERROR", "VERROR", "C23505", "Mno", "Dd", "st", "tt", "nc", "Ff.c", "L1", "Rr"},
		"localised":           {"SFEHLER", "VERROR", "C23505", "Mnein"},
		"before 9.6":          {"SERROR", "C23505", "Mno"},
		"with letters unseen": {"~x", "SERROR", "xmore", "C23505", "Mno", "zlast"},
		"the code last":       {"Mno", "SERROR", "C23505"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, append(hello(), c(query("INSERT INTO t VALUES (1)")), s(msg('E', append(z(fields...), 0)...), ready('I')))...)
			wantBriefs(t, got, "startup ok", "INSERT error=23505 write=keyword level=/default")
		})
	}
}

// WITH HOLD outlives its transaction; what it made at the commit is gone with it.
func TestNames_HeldCursorOutlivesTheTransaction(t *testing.T) {
	ran(t, []step{
		c(query("BEGIN; DECLARE c1 CURSOR WITH HOLD FOR SELECT 1")), s(tag("BEGIN"), tag("DECLARE CURSOR"), ready('T')),
		c(query("COMMIT")), s(tag("COMMIT"), ready('I')),
		c(execute("c1"), sync()), s(tag("SELECT 1"), ready('I')),
	}, "BEGIN", "DECLARE c1 CURSOR WITH HOLD FOR SELECT 1", "COMMIT", "DECLARE c1 CURSOR WITH HOLD FOR SELECT 1")
}

// A logical stream passes as a physical one does.
func TestPairing_LogicalReplication(t *testing.T) {
	steps := append(hello("user", "r", "database", "d", "replication", "database"),
		c(query(`START_REPLICATION SLOT "s" LOGICAL 0/0 ("proto_version" '1')`)), s(msg('W', 0, 0, 0)),
		s(msg('d', make([]byte, 60)...)), c(msg('d', make([]byte, 34)...)), s(msg('d', make([]byte, 60)...)),
		c(msg('c')), s(msg('c'), tag("START_REPLICATION"), ready('I')),
		c(query("SELECT 1")), s(tag("SELECT 1"), ready('I')))
	got := run(t, steps...)
	wantBriefs(t, got, "startup ok", "START_REPLICATION ok", "SELECT ok")
	if r := got[1].Peer.Replication; r != "logical" {
		t.Errorf("replication %q", r)
	}
	sameInAnyOrder(t, steps)
}

// pg_basebackup's stream is one COPY TO for all tablespaces and the manifest.
func TestPairing_BaseBackup(t *testing.T) {
	steps := append(hello("user", "r", "replication", "true"),
		c(query("BASE_BACKUP ( LABEL 'x', MANIFEST 'yes' )")), s(columns(), datum(), tag("SELECT"), columns(), datum(), tag("SELECT"), msg('H', 0, 0, 0)),
		s(msg('d', append([]byte("n"), z("base.tar", "")...)...), msg('d', make([]byte, 40_000)...)), s(msg('d', 'm'), msg('d', 'd', '{')),
		s(msg('c'), tag("SELECT"), columns(), datum(), tag("SELECT"), tag("BASE_BACKUP"), ready('I')),
		c(msg('X')))
	got := run(t, steps...)
	if last := brief(got[len(got)-1]); last != "BASE_BACKUP ok" {
		t.Errorf("%v", briefs(got))
	}
	for _, x := range got {
		if x.Write {
			t.Errorf("a write: %s", brief(x))
		}
	}
	sameInAnyOrder(t, steps)
}
