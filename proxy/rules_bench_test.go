//go:build unix

package proxy

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/internal/testenv"
	"github.com/wirewait/wirewait/proxy/pump"
	"github.com/wirewait/wirewait/wire"
)

// BenchmarkRules is one exchange through a pump, without sockets: without rules,
// and with rules that match none of it but need what messages say.
func BenchmarkRules(b *testing.B) {
	for name, s := range shuttles() {
		for _, n := range []int{0, 1, 10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				exchange := s.pumped(b, n)
				b.ReportAllocs()
				for b.Loop() {
					exchange()
				}
			})
		}
	}
}

// Looking into messages before they pass costs no memory.
func TestRules_LookingAllocatesNothing(t *testing.T) {
	for name, s := range shuttles() {
		exchange := s.pumped(t, 100)
		for range 100 {
			exchange()
		}
		if n := testing.AllocsPerRun(200, exchange); n >= 1 && !testenv.Race {
			t.Errorf("%s: %v allocations an exchange", name, n)
		}
	}
}

// pumped is one exchange through a pump with so many rules.
func (s shuttle) pumped(tb testing.TB, rules int) func() {
	c := ruledPump(tb, s.protocol, rules)
	set := &inject.Settings{}
	move := func(dir wire.Direction, m []byte) {
		r := c.Read(dir, m, 1, set)
		c.Sent(dir, m[:r.Direct], r.Direct, 1)
		c.Decode(dir, m)
	}
	move(wire.ToServer, bytes.Clone(s.hello))
	move(wire.ToClient, bytes.Clone(s.welcome))
	request, response := bytes.Clone(s.request), bytes.Clone(s.response)
	return func() {
		move(wire.ToServer, request)
		move(wire.ToClient, response)
	}
}

func ruledPump(b testing.TB, protocol wire.Protocol, n int) *pump.Conn {
	b.Helper()
	session, err := NewSession(protocol, wire.Options{})
	if err != nil {
		b.Fatal(err)
	}
	c := pump.New(pump.Config{Session: session, Sources: [2]*inject.Source{
		inject.NewSource(1, "b", 1, wire.ToServer), inject.NewSource(1, "b", 1, wire.ToClient),
	}})
	rules := make([]inject.Rule, n)
	for i := range rules {
		rules[i] = inject.Rule{
			Name: fmt.Sprint("r", i), Effect: inject.EffectRefuse, With: inject.With{Code: "57014"},
			When: inject.When{Application: []string{fmt.Sprint("a", i)}, User: []string{"nobody"}},
		}
	}
	c.SetRules(inject.Compile(rules, inject.Place{Standing: func(*inject.Rule) (inject.Hits, wire.Stamp) { return new(ruleCount), 0 }}), 1)
	return c
}
