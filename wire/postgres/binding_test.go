package postgres

import (
	"testing"

	"github.com/wirewait/wirewait/wire"
)

func TestStartup_ChannelBindingIsTold(t *testing.T) {
	sasl := func(mechanisms ...string) []byte {
		return msg('R', append([]byte{0, 0, 0, 10}, append(z(mechanisms...), 0)...)...)
	}
	for _, tc := range []struct {
		name string
		r    []byte
		want int
	}{
		{"both", sasl("SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"), 1},
		{"second", sasl("SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"), 1},
		{"without", sasl("SCRAM-SHA-256"), 0},
		{"longer name", sasl("SCRAM-SHA-256-PLUS-ONE"), 0},
		{"another request", msg('R', append([]byte{0, 0, 0, 11}, z("SCRAM-SHA-256-PLUS")...)...), 0},
		{"short", msg('R', 0, 0, 10), 0},
	} {
		told := 0
		p := newPlayer(t, wire.Options{ChannelBinding: func() { told++ }})
		p.play(c(startupPacket(version30, "user", "ann")), s(tc.r))
		if told != tc.want {
			t.Errorf("%s: told %d times, want %d", tc.name, told, tc.want)
		}
	}
	p := newPlayer(t, wire.Options{}) // nobody asks
	p.play(c(startupPacket(version30, "user", "ann")), s(sasl("SCRAM-SHA-256-PLUS")))
	if err := p.s.Opaque(); err != nil {
		t.Error(err)
	}
}
