package proxy

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// pgMessages cuts a stream into messages.
type pgMessages struct{ left []byte }

func (m *pgMessages) feed(b []byte, each func(t byte, body []byte)) {
	m.left = append(m.left, b...)
	for len(m.left) >= 5 {
		n := 1 + int(binary.BigEndian.Uint32(m.left[1:]))
		if len(m.left) < n {
			return
		}
		each(m.left[0], m.left[5:n])
		m.left = m.left[n:]
	}
}

func simMessage(t byte, parts ...string) []byte {
	body := strings.Join(parts, "")
	return append(binary.BigEndian.AppendUint32([]byte{t}, uint32(4+len(body))), body...)
}

// pgServer is as much of a server as shows whether a client is in step with it:
// transactions, pipelines, and what it keeps.
type pgServer struct {
	pgMessages
	status     byte // of the transaction block
	skipping   bool
	statements map[string]string
	portals    map[string]string
	pending    []string // INSERTs of the transaction
	kept       []string
	out        []byte // not sent before Sync, Flush or the end of a Query
	send       func([]byte)
}

func (s *pgServer) say(t byte, parts ...string) { s.out = append(s.out, simMessage(t, parts...)...) }

func (s *pgServer) flush() {
	s.send(s.out)
	s.out = nil
}

func (s *pgServer) take(t byte, body []byte) {
	f := strings.Split(string(body), "\x00")
	if s.skipping && t != 'S' {
		return
	}
	switch t {
	case 'Q':
		for _, sql := range strings.Split(f[0], ";") {
			if !s.run(sql, false) {
				break
			}
		}
		s.end()
	case 'P':
		if s.status == 'E' && !strings.HasPrefix(f[1], "COMMIT") {
			s.fail("25P02", true)
			return
		}
		s.statements[f[0]] = f[1]
		s.say('1')
	case 'B':
		s.portals[f[0]] = s.statements[f[1]]
		s.say('2')
	case 'C':
		delete(s.statements, f[0][1:])
		s.say('3')
	case 'D':
		s.say('n')
	case 'E':
		s.run(s.portals[f[0]], true)
	case 'H':
		s.flush()
	case 'S':
		s.skipping = false
		s.end()
	}
}

// end ends an implicit transaction and says that the server is ready.
func (s *pgServer) end() {
	if s.status == 'I' {
		s.kept, s.pending = append(s.kept, s.pending...), nil
	}
	s.say('Z', string(s.status))
	s.flush()
}

func (s *pgServer) fail(code string, extended bool) {
	s.say('E', "SERROR\x00VERROR\x00C", code, "\x00Mno\x00\x00")
	s.pending = nil
	if s.status == 'T' {
		s.status = 'E'
	}
	s.skipping = extended
}

func (s *pgServer) run(sql string, extended bool) bool {
	word, rest, _ := strings.Cut(sql, " ")
	tag := word
	switch {
	case word == "COMMIT":
		if s.status == 'E' {
			tag = "ROLLBACK"
		} else {
			s.kept = append(s.kept, s.pending...)
		}
		s.pending, s.status = nil, 'I'
	case s.status == 'E':
		s.fail("25P02", extended)
		return false
	case word == "DO":
		_, code, _ := strings.Cut(sql, "ERRCODE = '")
		s.fail(code[:5], extended)
		return false
	case word == "BAD":
		s.fail("22012", extended)
		return false
	case word == "BEGIN":
		s.status = 'T'
	case word == "INSERT":
		s.pending = append(s.pending, rest)
		tag = "INSERT 0 1"
	}
	s.say('C', tag, "\x00")
	return true
}

// pgClient says what it has to say, in rounds, and follows the answers.
type pgClient struct {
	pgMessages
	rounds []pgRound
	wrong  func(format string, args ...any)

	at     int  // the round that is being answered
	step   int  // in its steps
	failed bool // it has an error
	bad    bool // the block failed
	// sure are the INSERTs that the client was told are there, and gone those
	// that it was told are not.
	sure, gone []string
	pend       []string
}

// pgRound is a Query or what ends with a Sync: steps are the messages that
// answer it, in order, but for ReadyForQuery.
type pgRound struct {
	steps []pgStep
}

type pgStep struct {
	t   byte
	sql string // of C
}

func (c *pgClient) take(t byte, body []byte) {
	if c.at >= len(c.rounds) {
		c.wrong("%q comes after all was answered", t)
		return
	}
	r := &c.rounds[c.at]
	switch {
	case t == 'E':
		if c.failed || c.step >= len(r.steps) && !c.mayFailLate(r) {
			c.wrong("round %d: an error at step %d of %d", c.at, c.step, len(r.steps))
		}
		c.failed, c.bad = true, true
	case t == 'Z':
		if !c.failed && c.step != len(r.steps) {
			c.wrong("round %d: it's ready after step %d of %d", c.at, c.step, len(r.steps))
		}
		c.ready(body[0])
	case c.failed:
		c.wrong("round %d: %q after an error", c.at, t)
	case c.step >= len(r.steps) || r.steps[c.step].t != t:
		c.wrong("round %d, step %d of %v: got %q", c.at, c.step, r.steps, t)
	default:
		if t == 'C' {
			c.done(r.steps[c.step].sql, strings.TrimSuffix(string(body), "\x00"))
		}
		c.step++
	}
}

// mayFailLate: a commit is refused after its CommandComplete.
func (c *pgClient) mayFailLate(r *pgRound) bool { return len(r.steps) > 0 }

func (c *pgClient) done(sql, tag string) {
	word, rest, _ := strings.Cut(sql, " ")
	switch {
	case word == "INSERT":
		c.pend = append(c.pend, rest)
	case tag == "COMMIT":
		c.sure, c.pend = append(c.sure, c.pend...), nil
	case tag == "ROLLBACK":
		c.gone, c.pend = append(c.gone, c.pend...), nil
	}
}

func (c *pgClient) ready(status byte) {
	if status == 'I' {
		if c.failed {
			c.gone = append(c.gone, c.pend...)
		} else {
			c.sure = append(c.sure, c.pend...)
		}
		c.pend = nil
	}
	c.at, c.step, c.failed = c.at+1, 0, false
}

// pgTalk makes what the client sends, and the rounds that it expects.
func pgTalk(d *dice) (out []byte, rounds []pgRound) {
	out = append(out, simStartup()...)
	rounds = append(rounds, pgRound{steps: []pgStep{{t: 'R'}, {t: 'K'}}})
	open, id := false, 0
	statement := func() string {
		switch k := d.n(10); {
		case open && k < 3:
			open = false
			return "COMMIT"
		case !open && k == 0:
			open = true
			return "BEGIN"
		case k == 4 && d.one(3):
			return "BAD"
		case k == 5:
			return "SELECT"
		}
		id++
		return fmt.Sprint("INSERT ", id)
	}
	for range 1 + d.n(30) {
		if d.one(2) {
			sql := statement()
			out = append(out, simMessage('Q', sql, "\x00")...)
			rounds = append(rounds, pgRound{steps: []pgStep{{'C', sql}}})
			continue
		}
		var r pgRound
		for range 1 + d.n(4) {
			sql, name := statement(), []string{"", "s1"}[d.n(2)]
			out = append(out, simMessage('P', name, "\x00", sql, "\x00\x00\x00")...)
			out = append(out, simMessage('B', "\x00", name, "\x00\x00\x00\x00\x00\x00\x00")...)
			r.steps = append(r.steps, pgStep{t: '1'}, pgStep{t: '2'})
			if d.one(2) {
				out = append(out, simMessage('D', "P\x00")...)
				r.steps = append(r.steps, pgStep{t: 'n'})
			}
			out = append(out, simMessage('E', "\x00\x00\x00\x00\x00")...)
			r.steps = append(r.steps, pgStep{'C', sql})
			if d.one(4) {
				out = append(out, simMessage('H')...)
			}
		}
		out = append(out, simMessage('S')...)
		rounds = append(rounds, r)
	}
	return out, rounds
}

func simStartup() []byte {
	body := "\x00\x03\x00\x00user\x00ann\x00database\x00shop\x00\x00"
	return append(binary.BigEndian.AppendUint32(nil, uint32(4+len(body))), body...)
}

// playPostgresRules: whatever is refused, failed, delayed and held, client and
// server stay in step, every byte that passes is intact, and what the client was
// told of its transactions is so.
func playPostgresRules(t *testing.T, script []byte) map[string]*ruleCount {
	t.Helper()
	d := newDice(script)
	lying := d.one(3) // fail_reply tells the client what isn't so
	rules := []inject.Rule{
		{Name: "a", Effect: inject.EffectRefuse, When: inject.When{Statement: []string{"INSERT"}}, With: inject.With{Code: "40001"}, Limit: inject.Limit{Probability: 0.2}},
		{Name: "b", Effect: inject.EffectRefuse, When: inject.When{Statement: []string{"SELECT", "BAD"}, User: []string{"ann"}}, With: inject.With{Code: "57014"}},
		{Name: "c", Effect: inject.EffectLatency, When: inject.When{Statement: []string{"COMMIT"}}, With: inject.With{Delay: 30}},
		{Name: "d", Effect: inject.EffectHold, When: inject.When{Statement: []string{"INSERT"}}, Limit: inject.Limit{Nth: 5}},
		{Name: "e", Effect: inject.EffectLatency, When: inject.When{Direction: inject.OnlyToClient}, With: inject.With{Delay: 10, Jitter: 10}},
	}
	if lying {
		rules = append(rules, inject.Rule{
			Name: "f", Effect: inject.EffectFailReply, When: inject.When{Statement: []string{"COMMIT", "INSERT"}}, With: inject.With{Code: "40001"}, Limit: inject.Limit{Probability: 0.3},
		})
	}
	ending := d.one(4)
	if ending {
		rules = append(rules, inject.Rule{
			Name: "g", Effect: inject.EffectLoseReply, When: inject.When{Statement: []string{"COMMIT", "INSERT"}}, Limit: inject.Limit{Nth: uint64(1 + d.n(8))},
		})
	}
	s := newSim(t, d, wire.Postgres, rules)
	out, rounds := pgTalk(d)
	server := &pgServer{status: 'I', statements: map[string]string{}, portals: map[string]string{}}
	server.send = func(b []byte) { s.in[wire.ToClient] = append(s.in[wire.ToClient], b...) }
	client := &pgClient{rounds: rounds, wrong: func(format string, args ...any) { t.Helper(); t.Fatalf(format, args...) }}
	greeted := 0
	s.got[wire.ToServer] = func(b []byte) {
		n := min(len(simStartup())-greeted, len(b))
		if greeted += n; n > 0 && greeted == len(simStartup()) {
			server.say('R', "\x00\x00\x00\x00")
			server.say('K', "\x00\x00\x00\x07\x00\x00\x00\x01")
			server.end()
		}
		server.feed(b[n:], server.take)
	}
	s.got[wire.ToClient] = func(b []byte) { client.feed(b, client.take) }
	s.in[wire.ToServer] = out
	s.run()
	if !s.over && client.at != len(rounds) {
		t.Errorf("%d of %d rounds were answered", client.at, len(rounds))
	}
	for _, id := range client.sure {
		if !slices.Contains(server.kept, id) {
			t.Errorf("the client was told that %s is there, and it isn't", id)
		}
	}
	if !lying {
		for _, id := range client.gone {
			if slices.Contains(server.kept, id) {
				t.Errorf("the client was told that %s failed, and it's there", id)
			}
		}
	}
	for i := range s.xs {
		if x := &s.xs[i]; x.OK && slices.ContainsFunc(x.Faults, func(f wire.Fault) bool { return f.Effect == "refuse" }) {
			t.Errorf("a refused statement succeeded: %+v", x)
		}
	}
	s.finish()
	return s.hits
}

func TestRules_PostgresStaysInStep(t *testing.T) { playSeeds(t, "abcdefg", playPostgresRules) }

func FuzzPostgresRules(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("in step, whatever is refused"))
	f.Fuzz(func(t *testing.T, script []byte) { playPostgresRules(t, script) })
}
