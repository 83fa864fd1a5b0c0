package mongod

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func someEntry(t testing.TB, i uint32) *entry {
	t.Helper()
	o, err := bson.Marshal(bson.D{{Key: "_id", Value: int64(i)}})
	if err != nil {
		t.Fatal(err)
	}
	e := &entry{kind: "i", namespace: "d.c", o: o, session: "sixteen bytes id", txnNumber: 3, stmtIDs: []int32{1}}
	e.mark = mark{OpTime{bson.Timestamp{T: 7, I: i}, 2}, time.UnixMilli(1_700_000_000_000)}
	if err := e.encode(); err != nil {
		t.Fatal(err)
	}
	return e
}

// Whatever a crash leaves of the last entry, the whole ones before it are there,
// and the next is written after them.
func TestJournal_DropsWhatACrashCutShort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "oplog")
	write := func(from, n uint32) (size int64) {
		j, log, err := openJournal(path, func(mark) {})
		if err != nil || len(log) != int(from) {
			t.Fatalf("%d entries, %v; want %d", len(log), err, from)
		}
		for i := range n {
			j.append(someEntry(t, from+i+1))
		}
		if err := j.close(false); err != nil {
			t.Fatal(err)
		}
		return j.end
	}
	size := write(0, 3)
	whole, err := os.ReadFile(path)
	if err != nil || int64(len(whole)) != size {
		t.Fatalf("%d bytes, %v; want %d", len(whole), err, size)
	}
	second := size * 2 / 3
	for cut := second; cut < size; cut++ {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if write(2, 1) != size {
			t.Fatalf("cut at %d: the third entry isn't where it was", cut)
		}
	}
	whole[size-1] ^= 1
	if log, end := readJournal(whole); len(log) != 2 || end != second {
		t.Errorf("a changed bit leaves %d entries up to %d, want 2 up to %d", len(log), end, second)
	}
}

// What was lost in a crash is what no sync had covered, and nothing that one had.
func TestJournal_LosesWhatNoSyncCovered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "oplog")
	j, _, err := openJournal(path, func(mark) {})
	if err != nil {
		t.Fatal(err)
	}
	j.append(someEntry(t, 1))
	if err := j.flush(); err != nil {
		t.Fatal(err)
	}
	j.append(someEntry(t, 2))
	if err := j.close(true); err != nil {
		t.Fatal(err)
	}
	if _, log, _ := openJournal(path, nil); len(log) != 1 || log[0].TS.I != 1 || log[0].session != "sixteen bytes id" || log[0].stmtIDs[0] != 1 {
		t.Errorf("entries %+v, want the first", log)
	}
}

// Who asks for a sync while one is under way gets the next, with all others.
func TestJournal_OneSyncForAllWhoWait(t *testing.T) {
	var mu sync.Mutex
	var durable []OpTime
	reached := make(chan OpTime, 100)
	j, _, err := openJournal(filepath.Join(t.TempDir(), "oplog"), func(m mark) {
		mu.Lock()
		durable = append(durable, m.OpTime)
		mu.Unlock()
		reached <- m.OpTime
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = j.run(ctx, &gate{}) })
	const n = 500
	for i := range uint32(n) {
		j.append(someEntry(t, i+1))
		j.flushSoon()
	}
	for o := range reached {
		if o.TS.I == n {
			break
		}
	}
	cancel()
	wg.Wait()
	if err := j.close(false); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if syncs := j.stats.syncs.Load(); syncs != int64(len(durable)) || syncs >= n/2 {
		t.Errorf("%d syncs, %d times durable, for %d entries that were asked for", syncs, len(durable), n)
	}
	for i := 1; i < len(durable); i++ {
		if !durable[i-1].Before(durable[i]) {
			t.Errorf("durable went from %v to %v", durable[i-1], durable[i])
		}
	}
}

func FuzzReadJournal(f *testing.F) {
	j := &journal{}
	for i := range uint32(3) {
		j.append(someEntry(f, i))
		f.Add(j.pending)
	}
	f.Add([]byte("not a journal"))
	f.Fuzz(func(t *testing.T, b []byte) {
		log, end := readJournal(b)
		if end < 0 || end > int64(len(b)) || (end == 0) != (len(log) == 0) {
			t.Fatalf("%d entries up to %d of %d bytes", len(log), end, len(b))
		}
		again, same := readJournal(b[:end])
		if len(again) != len(log) || same != end {
			t.Errorf("%d entries up to %d, read again %d up to %d", len(log), end, len(again), same)
		}
	})
}

// What another member sends as an entry may be anything.
func FuzzApply(f *testing.F) {
	add := func(d bson.D) {
		raw, err := bson.Marshal(d)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(raw))
	}
	f.Add([]byte(someEntry(f, 1).raw))
	head := bson.D{{Key: "ts", Value: bson.Timestamp{T: 1, I: 1}}, {Key: "t", Value: int64(1)}, {Key: "ns", Value: "d.c"}}
	add(append(head[:3:3], bson.E{Key: "op", Value: "u"}, bson.E{Key: "o2", Value: bson.D{{Key: "_id", Value: 1}}},
		bson.E{Key: "o", Value: bson.D{{Key: "$v", Value: 2}, {Key: "diff", Value: bson.D{{Key: "u", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "d", Value: bson.D{{Key: "b", Value: false}}}}}}}))
	add(append(head[:3:3], bson.E{Key: "op", Value: "d"}, bson.E{Key: "o", Value: bson.D{{Key: "_id", Value: 1}}}))
	add(append(head[:3:3], bson.E{Key: "op", Value: "c"}, bson.E{Key: "o", Value: bson.D{{Key: "createIndexes", Value: "c"}, {Key: "spec", Value: bson.D{}}}}))
	add(append(head[:3:3], bson.E{Key: "op", Value: "c"}, bson.E{Key: "o", Value: bson.D{{Key: "dropDatabase", Value: 1}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		raw := bson.Raw(b)
		if raw.Validate() != nil {
			return
		}
		e, err := parseEntry(raw)
		if err != nil {
			return
		}
		doc, _ := bson.Marshal(bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: 0}, {Key: "b", Value: 0}})
		s := &Server{data: store{}, sessions: sessions{}}
		s.data.create("d.c", newUUID()).put(doc)
		s.apply(e)
		s.apply(e)
		for _, c := range s.data {
			for _, doc := range c.find(filter{}, 0) {
				if err := doc.Validate(); err != nil {
					t.Errorf("a document that is none: %v", err)
				}
			}
		}
	})
}
