package mongod

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// tap is a relay in front of one member that keeps what passes.
type tap struct {
	net.Listener
	upstream string
	delay    time.Duration // of each read, each way
	wg       sync.WaitGroup
	mu       sync.Mutex
	talks    []*talk
	sockets  []net.Conn
}

// talk is what one connection has said, each way.
type talk struct {
	mu               sync.Mutex
	toServer, toPeer bytes.Buffer
}

func newTap(t *testing.T, upstream string, delay time.Duration) *tap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tap{Listener: l, upstream: upstream, delay: delay}
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.relay(c)
		}
	})
	return p
}

func (p *tap) relay(c net.Conn) {
	u, err := net.Dial("tcp", p.upstream)
	if err != nil {
		c.Close()
		return
	}
	k := &talk{}
	p.mu.Lock()
	p.talks, p.sockets = append(p.talks, k), append(p.sockets, c, u)
	p.mu.Unlock()
	for _, way := range []struct {
		from, to net.Conn
		keep     *bytes.Buffer
	}{{c, u, &k.toServer}, {u, c, &k.toPeer}} {
		p.wg.Go(func() {
			_, _ = io.Copy(io.MultiWriter(&locked{k, way.keep}, late{way.to, p.delay}), way.from)
			c.Close()
			u.Close()
		})
	}
}

// late writes after a while.
type late struct {
	io.Writer
	delay time.Duration
}

func (l late) Write(p []byte) (int, error) {
	time.Sleep(l.delay)
	return l.Writer.Write(p)
}

type locked struct {
	k *talk
	b *bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.k.mu.Lock()
	defer l.k.mu.Unlock()
	return l.b.Write(p)
}

func (p *tap) close() {
	p.Close()
	p.mu.Lock()
	for _, c := range p.sockets {
		c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

// messages decodes one way of a talk; what is cut at its end is left out.
func (k *talk) messages(t *testing.T, b *bytes.Buffer) (all []*message) {
	t.Helper()
	codec, err := newCodec()
	if err != nil {
		t.Fatal(err)
	}
	defer codec.close()
	k.mu.Lock()
	defer k.mu.Unlock()
	r := bufio.NewReader(bytes.NewReader(b.Bytes()))
	for {
		m, err := codec.read(r)
		if err != nil {
			return all
		}
		all = append(all, m)
	}
}

func name(m *message) string { e, _ := m.body.IndexErr(0); return e.Key() }

func keys(d bson.Raw) (all []string) {
	elements, _ := d.Elements()
	for _, e := range elements {
		all = append(all, e.Key())
	}
	return all
}

// tapped starts a set whose members reach each other through taps: one for each
// member, or one for each pair. It writes, and returns what was said.
func tapped(t *testing.T, pairs bool, o SetOptions) (taps map[string]*tap) {
	t.Helper()
	ports, err := ReservePorts(3)
	if err != nil {
		t.Fatal(err)
	}
	taps = map[string]*tap{}
	if pairs {
		for from := range 3 {
			for to := range 3 {
				taps[fmt.Sprint(from, to)] = newTap(t, ports.Addr(to), 0)
			}
		}
		o.DialPair = func(from, to int) string { return taps[fmt.Sprint(from, to)].Addr().String() }
	} else {
		o.Members = make([]MemberOptions, 3)
		for i := range 3 {
			p := newTap(t, ports.Addr(i), 0)
			taps[fmt.Sprint(i)] = p
			o.Members[i].Host = p.Addr().String()
		}
	}
	t.Cleanup(func() {
		for _, p := range taps {
			p.close()
		}
	})
	o.Ports, o.HeartbeatInterval = ports, 50*time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	set, err := StartSet(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	client, err := mongo.Connect(options.Client().ApplyURI(set.Members()[0].URI()).SetHeartbeatInterval(500 * time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Disconnect(context.Background())
	for i := range 20 {
		reply := client.Database("d").RunCommand(ctx, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: i}}}},
			{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 3}}}})
		if err := reply.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return taps
}

// What members say to each other, by what their connections are for.
func TestSet_SpeaksAsMembersDo(t *testing.T) {
	for _, tt := range []struct{ pairs, noHostInfo, noCompression bool }{{false, false, false}, {true, true, true}} {
		taps := tapped(t, tt.pairs, SetOptions{NoHostInfo: tt.noHostInfo, NoCompression: tt.noCompression, NoChaining: true})
		seen := map[string]int{}
		for link, p := range taps {
			p.mu.Lock()
			talks := slices.Clone(p.talks)
			p.mu.Unlock()
			for _, k := range talks {
				requests := k.messages(t, &k.toServer)
				if len(requests) < 2 {
					continue
				}
				hello := requests[0]
				_, err := hello.body.LookupErr("hostInfo")
				if name(hello) != "hello" || (err == nil) == tt.noHostInfo {
					t.Errorf("link %s: first message %v", link, hello.body)
				}
				for _, m := range append(requests[1:], k.messages(t, &k.toPeer)[1:]...) {
					if tt.noCompression && !m.checksum || !tt.noCompression && m.compressor != 1 {
						t.Errorf("link %s: checksum %v, compressor %d: %v", link, m.checksum, m.compressor, m.body)
					}
				}
				driver, _ := hello.body.Lookup("client", "driver", "name").StringValueOK()
				app, _ := hello.body.Lookup("client", "application", "name").StringValueOK()
				seen[driver+app]++
				checkTalk(t, driver, requests[1:], k.messages(t, &k.toPeer)[1:])
			}
		}
		if seen[driverFetcher+appFetcher] != 2 || seen[driverReports] < 2 || seen[driverHeartbeats] < 6 {
			t.Errorf("connections %v: want two fetchers, two that report, and heartbeats both ways", seen)
		}
	}
}

func checkTalk(t *testing.T, driver string, requests, replies []*message) {
	t.Helper()
	switch driver {
	case driverFetcher:
		if len(requests) != 2 || name(requests[0]) != "find" || name(requests[1]) != "getMore" || requests[1].flags&flagExhaust == 0 {
			t.Errorf("a fetcher sent %d requests, want a find and one exhaust getMore", len(requests))
		}
		var entries int
		for _, r := range replies {
			if r.flags&flagMoreToCome == 0 && r != replies[0] {
				t.Error("a batch of an exhaust getMore doesn't say moreToCome")
			}
			for _, batch := range []string{"firstBatch", "nextBatch"} {
				array, _ := r.body.Lookup("cursor", batch).ArrayOK()
				values, _ := array.Values()
				entries += len(values)
			}
			if _, err := r.body.LookupErr("$oplogQueryData", "lastOpCommitted", "ts"); err != nil {
				t.Errorf("a batch without $oplogQueryData: %v", r.body)
			}
		}
		if entries < 20 || len(replies) <= entries/20 {
			t.Errorf("%d entries in %d replies, want all writes", entries, len(replies))
		}
	case driverReports:
		for _, m := range requests {
			optimes, _ := m.body.Lookup("optimes").ArrayOK()
			values, _ := optimes.Values()
			if name(m) != "replSetUpdatePosition" || len(values) == 0 {
				t.Fatalf("a report is %v", m.body)
			}
			first, _ := values[0].DocumentOK()
			want := []string{"durableOpTime", "durableWallTime", "appliedOpTime", "appliedWallTime", "writtenOpTime", "writtenWallTime", "memberId", "cfgver"}
			if !slices.Equal(keys(first), want) {
				t.Errorf("a position has %v, want %v", keys(first), want)
			}
			if _, ok := m.body.Lookup("$replData").DocumentOK(); !ok {
				t.Error("a report without $replData")
			}
		}
	case driverHeartbeats:
		for i, m := range requests {
			if name(m) != "replSetHeartbeat" {
				t.Errorf("a heartbeat is %v", m.body)
			}
			if i >= len(replies) {
				break
			}
			for _, field := range []string{"durableOpTime", "durableWallTime", "opTime", "wallTime", "v", "state", "term", "$replData"} {
				if _, err := replies[i].body.LookupErr(field); err != nil {
					t.Errorf("a heartbeat's reply without %s", field)
				}
			}
		}
	}
}
