package proxy

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy/pump"
	"github.com/wirewait/wirewait/wire"
)

// sim is a connection through a pump with rules, between a client and a server
// that are models: what passes is cut, delayed and interleaved by dice.
type sim struct {
	t *testing.T
	*dice
	pump *pump.Conn
	now  wire.Stamp
	in   [2][]byte // sent, and not read yet
	// got takes what arrives at the server and at the client. What the server
	// has to say to it goes to in[ToClient].
	got   [2]func([]byte)
	stage [2]func()
	set   *inject.Settings
	rules []inject.Rule // those that may be in force
	hits  map[string]*ruleCount
	xs    []wire.Exchange
	over  bool // a rule ended the connection
}

func newSim(t *testing.T, d *dice, protocol wire.Protocol, rules []inject.Rule) *sim {
	t.Helper()
	session, err := NewSession(protocol, wire.Options{Trouble: func(reason string) {
		if reason != "compressed_cut" { // a large one isn't read to its end
			t.Errorf("trouble: %s", reason)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := &sim{t: t, dice: d, now: 1, set: &inject.Settings{}, rules: rules, hits: map[string]*ruleCount{}}
	session.Open().Emit = func(x *wire.Exchange) bool {
		s.xs = append(s.xs, *x)
		return false
	}
	c := pump.Config{Session: session, Free: poison}
	for dir := range c.Sources {
		c.Sources[dir] = inject.NewSource(1, "sim", 1, wire.Direction(dir))
	}
	s.pump = pump.New(c)
	s.change()
	return s
}

// change puts some of the rules in force.
func (s *sim) change() {
	var rules []inject.Rule
	for _, r := range s.rules {
		if !s.one(3) {
			rules = append(rules, r)
		}
	}
	s.apply(rules)
}

func (s *sim) apply(rules []inject.Rule) {
	s.pump.SetRules(inject.Compile(rules, inject.Place{Seed: 7, Standing: func(r *inject.Rule) (inject.Hits, wire.Stamp) {
		if s.hits[r.Name] == nil {
			s.hits[r.Name] = new(ruleCount)
		}
		return s.hits[r.Name], s.now
	}}), s.now)
}

// run goes on until nothing is left to pass, with the rules changing; then it
// goes on without any.
func (s *sim) run() {
	for range 200_000 {
		s.step()
		if s.over || s.one(50) && s.idle() {
			break
		}
	}
	s.apply(nil)
	for range 200_000 {
		if s.over || s.idle() {
			return
		}
		s.step()
	}
	s.t.Fatalf("it hangs: %d and %d bytes are not read, %d and %d wait", len(s.in[0]), len(s.in[1]),
		s.pump.Live(wire.ToServer), s.pump.Live(wire.ToClient))
}

func (s *sim) idle() bool {
	return s.stage[0] == nil && s.stage[1] == nil && len(s.in[0])+len(s.in[1]) == 0 &&
		s.pump.Live(wire.ToServer)+s.pump.Live(wire.ToClient) == 0 && s.pump.Next(wire.ToClient) == 0
}

func (s *sim) step() {
	dir := wire.Direction(s.n(2))
	switch s.n(8) {
	case 0, 1, 2:
		s.read(dir)
	case 3, 4, 5:
		s.write(dir)
	case 6:
		s.now += wire.Stamp(1 + s.n(20))
	default:
		switch {
		case s.one(10):
			s.change()
		case s.one(10):
			d := inject.Symmetric(time.Duration(s.n(40)), time.Duration(s.n(10)))
			s.set = &d
		}
	}
}

func (s *sim) read(dir wire.Direction) {
	if next := s.stage[dir]; next != nil {
		s.stage[dir] = nil
		next()
		return
	}
	if ok, _ := s.pump.Resume(dir, s.now); !ok || len(s.in[dir]) == 0 {
		return
	}
	n := min(len(s.in[dir]), 1+s.n(1<<(1+s.n(14))))
	b := append(make([]byte, 0, n<<s.n(3)), s.in[dir][:n]...)
	s.in[dir] = s.in[dir][n:]
	r := s.pump.Read(dir, b, s.now, s.set)
	decode := func() {
		s.pump.Decode(dir, b)
		if !r.Kept {
			poison(b[:cap(b)])
		}
	}
	if s.stage[dir] = decode; r.Direct == 0 {
		return
	}
	at, sent := s.now, s.n(r.Direct+1)
	s.got[dir](bytes.Clone(b[:sent]))
	s.stage[dir] = func() {
		s.pump.Sent(dir, b[:r.Direct], sent, at)
		s.stage[dir] = decode
	}
}

func (s *sim) write(dir wire.Direction) {
	vec := s.pump.Due(dir, s.now, 1+s.n(1<<(1+s.n(16))), nil)
	if len(vec) == 0 {
		if e := s.pump.Ended(dir, s.now); e != inject.EndNone {
			s.over = true
		}
		return
	}
	b := bytes.Join(vec, nil)
	n := s.n(len(b) + 1)
	s.got[dir](b[:n])
	s.pump.Wrote(dir, n, s.now)
}

// finish ends the connection and checks what the pump is left with.
func (s *sim) finish() {
	s.t.Helper()
	open := s.pump.Session().Open()
	if err := s.pump.Session().Opaque(); err != nil {
		s.t.Errorf("opaque: %v", err)
	}
	if n := open.Len(); n != 0 && !s.over {
		s.t.Errorf("%d exchanges are open", n)
	}
	if lost := s.pump.Close(); lost != 0 && !s.over {
		s.t.Errorf("%d bytes are lost", lost)
	}
	if n := open.Len(); n != 0 {
		s.t.Errorf("%d exchanges were never emitted", n)
	}
	for i := range s.xs {
		if !s.over {
			checkStamps(s.t, &s.xs[i])
		}
	}
}

// playSeeds plays scripts that seeds make, and checks that all rules of those
// names fired.
func playSeeds(t *testing.T, names string, play func(*testing.T, []byte) map[string]*ruleCount) {
	t.Helper()
	runs := 400
	if testing.Short() {
		runs = 50
	}
	fired := map[string]uint64{}
	for seed := range runs {
		script := make([]byte, seed)
		_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 1}).Read(script)
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) {
			for name, n := range play(t, script) {
				fired[name] += n.hits.Load()
			}
		}) {
			return
		}
	}
	for _, name := range names {
		if fired[string(name)] == 0 {
			t.Errorf("rule %c never fired", name)
		}
	}
}
