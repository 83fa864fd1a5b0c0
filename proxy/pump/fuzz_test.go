package pump

import (
	"bytes"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// FuzzConn drives a pump by a script of steps, as a driver with any socket and
// any clock might: the bytes come out as they went in, never before their time.
func FuzzConn(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add(bytes.Repeat([]byte{0, 40, 3, 2, 9, 1, 250, 5}, 20))
	f.Add(bytes.Repeat([]byte{4, 3, 0, 40, 3, 200, 1, 250, 2, 9}, 20))
	f.Fuzz(func(t *testing.T, script []byte) {
		c := newConn(newLineSession(), &budget{left: 1 << 20})
		settings := []inject.Settings{{}, inject.Symmetric(20, 0), {Delay: [2]inject.Delay{{Base: 30, Jitter: 30}, {}}},
			{Delay: [2]inject.Delay{{Base: 30, Jitter: 9, Distribution: inject.Normal, Bandwidth: 1e12, Window: 900, Loss: inject.RandomLoss(0.1)}, {Base: 7}}}}
		set := &settings[0]
		now := wire.Stamp(1)
		var in, out bytes.Buffer
		var earliest []wire.Stamp // of each byte: when it came in
		take := func(b []byte) {
			for range b {
				if earliest[0] > now {
					t.Fatal("left before it came")
				}
				earliest = earliest[1:]
			}
			out.Write(b)
		}
		for i := 0; i+1 < len(script); i += 2 {
			op, arg := script[i], int(script[i+1])
			switch op % 5 {
			case 0, 1: // read, with a socket that takes arg bytes
				b := make([]byte, 1+int(op)*7, 4096)
				for j := range b {
					b[j] = byte('a' + (j+arg)%20)
				}
				if op%2 == 0 {
					b[len(b)-1] = '\n'
				}
				in.Write(b)
				for range b {
					earliest = append(earliest, now)
				}
				r := c.Read(wire.ToServer, b, now, set)
				if r.Direct > 0 {
					n := min(arg, r.Direct)
					take(b[:n])
					c.Sent(wire.ToServer, b[:r.Direct], n, now)
				}
				c.Decode(wire.ToServer, b)
			case 2: // write what is due, as far as a socket takes it
				v := bytes.Join(c.Due(wire.ToServer, now, 1+arg*16, nil), nil)
				v = v[:min(len(v), 1+arg*8)]
				if len(v) > 0 {
					take(v)
					c.Wrote(wire.ToServer, len(v), now)
				}
			case 3:
				now += wire.Stamp(arg)
			case 4:
				set = &settings[arg%len(settings)]
			}
			if next := c.Next(wire.ToServer); (next != 0) != (c.Live(wire.ToServer) > 0) {
				t.Fatalf("%d bytes wait and next is %d", c.Live(wire.ToServer), next)
			}
		}
		now = now.Add(time.Hour)
		v := bytes.Join(c.Due(wire.ToServer, now, 1<<30, nil), nil)
		take(v)
		if !bytes.Equal(in.Bytes(), out.Bytes()) {
			t.Fatalf("%d bytes in, %d out, or others", in.Len(), out.Len())
		}
	})
}
