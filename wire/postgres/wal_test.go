package postgres

import (
	"encoding/binary"
	"testing"

	"github.com/wirewait/wirewait/wire"
)

// logAt is a log that begins with a page at lsn and holds one record after the
// other.
type logAt struct {
	lsn   uint64
	b     []byte
	magic uint16
}

func (l *logAt) end() uint64 { return l.lsn + uint64(len(l.b)) }

// put writes a record's bytes, over as many pages as it takes.
func (l *logAt) put(b []byte) {
	for len(l.b)%8 != 0 {
		l.b = append(l.b, 0)
	}
	for begun := false; len(b) > 0; begun = true {
		if l.end()%walPage == 0 {
			l.page(len(b), begun)
		}
		n := min(len(b), int(walPage-l.end()%walPage))
		l.b = append(l.b, b[:n]...)
		b = b[n:]
	}
}

func (l *logAt) page(left int, continues bool) {
	at := l.end()
	l.b = binary.LittleEndian.AppendUint16(l.b, l.magic)
	var info uint16
	if continues {
		info |= pageContinues
	} else {
		left = 0
	}
	if at%(1<<20) == 0 {
		info |= pageLong
	}
	l.b = binary.LittleEndian.AppendUint16(l.b, info)
	l.b = binary.LittleEndian.AppendUint32(l.b, 1)
	l.b = binary.LittleEndian.AppendUint64(l.b, at)
	l.b = binary.LittleEndian.AppendUint32(l.b, uint32(left))
	l.b = binary.LittleEndian.AppendUint32(l.b, 0)
	if info&pageLong != 0 {
		l.b = binary.LittleEndian.AppendUint64(l.b, 42)
		l.b = binary.LittleEndian.AppendUint32(l.b, 1<<20)
		l.b = binary.LittleEndian.AppendUint32(l.b, walPage)
	}
}

// walRecord is a record with main data.
func walRecord(rmid, info byte, xid uint32, data []byte) []byte {
	head := []byte{blockShort, byte(len(data))}
	if len(data) > 255 {
		head = binary.LittleEndian.AppendUint32([]byte{blockLong}, uint32(len(data)))
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(walRecordHead+len(head)+len(data)))
	b = binary.LittleEndian.AppendUint32(b, xid)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0, info, rmid, 0, 0, 0, 0, 0, 0)
	return append(append(b, head...), data...)
}

func commitRecord(xid, xinfo uint32) []byte {
	data := make([]byte, 8)
	info := byte(xactCommit)
	if xinfo != 0 {
		info |= xactHasInfo
		data = binary.LittleEndian.AppendUint32(data, xinfo)
	}
	return walRecord(rmXact, info, xid, data)
}

func feedAll(l *logAt, cut int) (w walReader, found []walTransaction) {
	w.found = func(x walTransaction) { found = append(found, x) }
	lsn := l.lsn
	for b := l.b; len(b) > 0; {
		n := min(cut, len(b))
		w.feed(lsn, b[:n])
		lsn += uint64(n)
		b = b[n:]
	}
	return w, found
}

func TestWAL_RecordsOverPagesInAnyCut(t *testing.T) {
	l := &logAt{lsn: 0x1000000, magic: 0xD118}
	for xid := uint32(1); xid <= 300; xid++ {
		l.put(walRecord(10, 0, xid, make([]byte, int(xid*37)%300)))
		l.put(commitRecord(xid, xinfoApply*(xid%2)))
		if xid%100 == 0 {
			l.put(walRecord(10, 0, xid, make([]byte, 3*walPage)))
		}
	}
	for _, cut := range []int{1, 2, 7, 24, 8191, 8192, 1 << 20} {
		w, found := feedAll(l, cut)
		if len(found) != 300 || w.lost > 0 || w.blind {
			t.Fatalf("cut in %d: %d found, lost %d times, blind %v", cut, len(found), w.lost, w.blind)
		}
		for i, x := range found {
			if x.xid != uint32(i+1) || x.end%8 != 0 || x.end <= x.start || (x.info&xinfoApply != 0) != (x.xid%2 == 1) {
				t.Fatalf("cut in %d: transaction %d is %+v", cut, i, x)
			}
		}
	}
}

func TestWAL_OfAnUnknownVersionIsBlindAndSaidOnce(t *testing.T) {
	for name, magic := range map[string]uint16{"newer": 0xD1FF, "swapped bytes": 0x18D1} {
		l := &logAt{lsn: 0x1000000, magic: magic}
		for range 1000 {
			l.put(commitRecord(1, 0))
		}
		if w, found := feedAll(l, 1000); !w.blind || len(found) > 0 {
			t.Errorf("%s: blind %v, %d found", name, w.blind, len(found))
		}
		troubles := 0
		x := newStream(t, wire.Options{Trouble: func(reason string) {
			if reason == "wal_version" {
				troubles++
			}
		}})
		for lsn, b := l.lsn, l.b; len(b) > 0; {
			n := min(30_000, len(b))
			x.log(lsn, b[:n])
			lsn, b = lsn+uint64(n), b[n:]
		}
		x.status(1, 2, 3)
		last := x.told[len(x.told)-1]
		if troubles != 1 || !x.told[1].Blind || x.told[1].Magic != magic || x.told[2].Magic != 0 || last.Kind != wire.ReportReached {
			t.Errorf("%s: said %d times, told %+v", name, troubles, x.told)
		}
	}
}

func TestWAL_ThreadsThatAreLostAreFoundAgain(t *testing.T) {
	l := &logAt{lsn: 0x1000000, magic: 0xD110}
	for xid := range uint32(2000) {
		l.put(commitRecord(xid+1, 0))
	}
	pages := uint64(len(l.b)) / walPage
	// A length that can't be, in the middle of the second page.
	broken := &logAt{lsn: l.lsn, b: append([]byte(nil), l.b...)}
	for i := walPage + walShort; i < walPage+4000; i++ {
		broken.b[i] = 0xff
	}
	w, found := feedAll(broken, 5000)
	if w.lost == 0 || len(found) < 1000 || found[len(found)-1].xid != 2000 {
		t.Errorf("%d found, lost %d times", len(found), w.lost)
	}
	// The segment again, as after a reconnect.
	var again []walTransaction
	w.found = func(x walTransaction) { again = append(again, x) }
	w.feed(l.lsn, l.b)
	if len(again) != 2000 {
		t.Errorf("%d found after a new start, want 2000", len(again))
	}
	// A jump to the middle of some page.
	again = nil
	mid := (pages / 2 * walPage) + 100
	w.feed(l.lsn+mid, l.b[mid:])
	if len(again) == 0 || again[len(again)-1].xid != 2000 || again[0].start < l.lsn+mid {
		t.Errorf("%d found after a jump", len(again))
	}
}

func TestWAL_MemoryIsBounded(t *testing.T) {
	// A commit that lists relations without end, and one of which only the
	// beginning is kept.
	data := make([]byte, walKeep+walKeep/2)
	binary.LittleEndian.PutUint32(data[8:], xinfoRelations)
	l := &logAt{lsn: 0x1000000, magic: 0xD110}
	l.put(walRecord(rmXact, xactCommit|xactHasInfo, 7, data))
	l.put(commitRecord(8, 0))
	var w walReader
	most := 0
	var found []walTransaction
	w.found = func(x walTransaction) { found = append(found, x) }
	for i := range l.b {
		w.feed(l.lsn+uint64(i), l.b[i:i+1])
		most = max(most, len(w.record))
	}
	if len(found) != 2 || found[0].xid != 7 || found[0].info != xinfoRelations || most > walKeep || cap(w.record) > keepBuffer {
		t.Errorf("found %+v; kept %d bytes at most, %d now", found, most, cap(w.record))
	}
}

// FuzzWAL feeds any bytes at any place: nothing panics or is read beyond what
// was fed, and what is found doesn't depend on the cuts.
func FuzzWAL(f *testing.F) {
	l := &logAt{lsn: 0x1000000, magic: 0xD116}
	l.put(commitRecord(1, xinfoApply))
	l.put(walRecord(rmXact, xactCommitPrep|xactHasInfo, 0, append(make([]byte, 8), 0x13, 1, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 5, 0, 0, 0)))
	l.put(walRecord(rmXLog, xlogSwitch, 0, nil))
	f.Add(uint64(0x1000000), l.b, 100)
	f.Add(uint64(0x1000000), l.b[:50], 1)
	f.Add(uint64(0x1001fe0), l.b, 7)
	f.Fuzz(func(t *testing.T, lsn uint64, b []byte, cut int) {
		if len(b) > 64<<10 || lsn > 1<<62 {
			return
		}
		whole, one := feedAll(&logAt{lsn: lsn, b: b}, len(b)+1)
		cuts, many := feedAll(&logAt{lsn: lsn, b: b}, 1+max(cut, 0)%10_000)
		if len(one) != len(many) || whole.lost != cuts.lost || whole.blind != cuts.blind || whole.next != cuts.next {
			t.Fatalf("%d found, lost %d; in cuts %d, %d", len(one), whole.lost, len(many), cuts.lost)
		}
		for i := range one {
			if one[i] != many[i] || one[i].end > lsn+uint64(len(b))+8 {
				t.Fatalf("transaction %d is %+v, in cuts %+v", i, one[i], many[i])
			}
		}
	})
}
