package postgres

import "encoding/binary"

// The write-ahead log as a standby receives it, little-endian
// (src/include/access/xlog_internal.h, xlogrecord.h):
//
//	page     0       2      4     8              16          20    24
//	         | magic | info | tli | its own LSN  | remaining | pad |   info & 2: + 16 bytes
//	record   0        4     8      16     17     18    20    24
//	         | length | xid | prev | info | rmid | pad | crc | data, see wal_record.go
//
// A record begins at a multiple of 8 and goes on over pages, behind their
// headers; a page says in remaining how much of it is still to come. So reading
// can begin at any page.
const (
	walPage       = 8192 // XLOG_BLCKSZ by default; a long header says
	walShort      = 24
	walLong       = 40
	walRecordHead = 24
	walMaxRecord  = 1 << 30 // above XLogRecordMaxSize
	// walKeep bounds what is kept of a transaction record, which may list
	// thousands of relations.
	walKeep = 1 << 20

	pageContinues = 1 // XLP_FIRST_IS_CONTRECORD
	pageLong      = 2 // XLP_LONG_HEADER
)

// walMagic are the pages that are known to be laid out as above, and their
// records as in wal_record.go: those of PostgreSQL 15, 16, 17 and 18, each of
// which was read beside the server's own tools (wal_real_test.go). It's the only
// version number in the log, and it changes with every change of the layout
// (XLOG_PAGE_MAGIC). The value is the size of an item in a record's list of
// dropped statistics (xl_xact_stats_item), which alone differs.
var walMagic = map[uint16]int{0xD110: 12, 0xD113: 12, 0xD116: 12, 0xD118: 16}

// WALVersions are the versions of PostgreSQL whose log is read, for people.
const WALVersions = "15, 16, 17 and 18"

// walReader finds the transactions' records in a stream of log. The zero value
// is ready. It joins at the first page, skips what it has no use for, and holds
// one page header and one transaction's record at most.
type walReader struct {
	next   uint64 // LSN of the byte to come
	page   uint64 // size; 0: not fed yet
	joined bool   // what comes is understood

	statsItem int // of walMagic

	head []byte // of a page, while it comes

	begun  bool   // a record is under way
	begin  uint64 // its LSN
	length uint32 // of it; 0: its first 4 bytes have not come
	left   uint32 // of it, still to come
	keep   bool   // what comes of it goes into record
	record []byte
	idle   bool // nothing more on this page

	blind bool   // a page of an unknown version came
	magic uint16 // its magic
	lost  int    // how often the thread was lost
	found func(walTransaction)
}

// feed takes the bytes of the log at lsn.
func (w *walReader) feed(lsn uint64, b []byte) {
	if w.page == 0 {
		w.page = walPage
		w.next = lsn
	}
	if lsn != w.next { // a new start, of this segment again
		w.leave()
		w.head = w.head[:0]
		w.next = lsn
	}
	for len(b) > 0 {
		off := w.next % w.page
		var n int
		switch room := int(w.page - off); {
		case off == 0 || len(w.head) > 0:
			n = w.takeHead(b)
		case !w.joined || w.idle:
			n = min(len(b), room)
		default:
			n = w.takeRecord(b[:min(len(b), room)])
		}
		w.next += uint64(n)
		b = b[n:]
	}
}

// leave forgets what is under way. Reading goes on at the next page.
func (w *walReader) leave() {
	w.joined = false
	w.drop()
}

func (w *walReader) drop() {
	w.begun, w.idle, w.left, w.length = false, false, 0, 0
	w.record = w.record[:0]
	if cap(w.record) > keepBuffer {
		w.record = nil
	}
}

// takeHead takes what b holds of a page's header.
func (w *walReader) takeHead(b []byte) int {
	want := walShort
	if len(w.head) >= walShort { // and it's a long one
		want = walLong
	}
	n := min(want-len(w.head), len(b))
	w.head = append(w.head, b[:n]...)
	if len(w.head) < want {
		return n
	}
	lsn := w.next + uint64(n) - uint64(want)
	if want == walShort && w.plausible(lsn) && binary.LittleEndian.Uint16(w.head[2:])&pageLong != 0 {
		return n // 16 bytes more
	}
	w.beginPage(lsn)
	w.head = w.head[:0]
	return n
}

// plausible reports whether the header is that of the page at lsn, of a version
// that is known.
func (w *walReader) plausible(lsn uint64) bool {
	return walMagic[binary.LittleEndian.Uint16(w.head)] > 0 && binary.LittleEndian.Uint64(w.head[8:]) == lsn
}

// beginPage reads the header of the page at lsn.
func (w *walReader) beginPage(lsn uint64) {
	w.idle = false
	if !w.plausible(lsn) {
		w.strangePage(lsn)
		return
	}
	w.statsItem = walMagic[binary.LittleEndian.Uint16(w.head)]
	if len(w.head) == walLong {
		if size := binary.LittleEndian.Uint32(w.head[36:]); size >= 1024 && size <= 65536 && size&(size-1) == 0 {
			w.page = uint64(size)
		}
	}
	remaining := binary.LittleEndian.Uint32(w.head[16:])
	if binary.LittleEndian.Uint16(w.head[2:])&pageContinues == 0 {
		remaining = 0
	}
	if w.joined && w.begun && remaining == w.left {
		return
	}
	// Joined here, or the record was given up after a crash
	// (XLP_FIRST_IS_OVERWRITE_CONTRECORD).
	w.drop()
	w.joined = true
	if remaining > 0 {
		w.begun, w.keep, w.left, w.length = true, false, remaining, remaining
	}
}

// strangePage is for one that isn't as expected: empty, behind a switch to the
// next segment; of an unknown version; or not what the stream says it is.
func (w *walReader) strangePage(lsn uint64) {
	magic := binary.LittleEndian.Uint16(w.head)
	switch {
	case magic == 0:
	case binary.LittleEndian.Uint64(w.head[8:]) == lsn:
		w.blind, w.magic = true, magic
	default:
		w.lost++
	}
	w.leave()
}

// takeRecord takes what b, which lies within a page, holds of the record at
// hand, or of the next one.
func (w *walReader) takeRecord(b []byte) int {
	if !w.begun {
		if pad := int(-w.next & 7); pad > 0 {
			return min(pad, len(b))
		}
		w.begun, w.begin, w.keep = true, w.next, true
	}
	if w.length == 0 { // never cut by a page: it's aligned
		n := min(4-len(w.record), len(b))
		w.record = append(w.record, b[:n]...)
		if len(w.record) == 4 {
			w.beginRecord()
		}
		return n
	}
	n := min(int(w.left), len(b))
	if w.keep {
		if len(w.record) < walRecordHead {
			n = min(n, walRecordHead-len(w.record))
		}
		w.record = append(w.record, b[:min(n, walKeep-len(w.record))]...)
	}
	w.left -= uint32(n)
	if w.keep && len(w.record) == walRecordHead {
		w.keep = w.record[17] == rmXact
	}
	if w.left == 0 {
		w.endRecord(w.next + uint64(n))
	}
	return n
}

// beginRecord reads a record's length.
func (w *walReader) beginRecord() {
	w.length = binary.LittleEndian.Uint32(w.record)
	switch {
	case w.length == 0: // the rest of the page is empty
		w.drop()
		w.idle = true
	case w.length < walRecordHead || w.length > walMaxRecord:
		w.lost++
		w.leave()
	default:
		w.left = w.length - 4
	}
}

// endRecord ends the record at hand, whose last byte came before end.
func (w *walReader) endRecord(end uint64) {
	last := len(w.record) >= walRecordHead && w.record[17] == rmXLog && w.record[16]&0xf0 == xlogSwitch
	if w.keep && w.found != nil {
		if t, ok := readTransaction(w.record, w.statsItem); ok {
			t.start, t.end = w.begin, (end+7)&^7
			w.found(t)
		}
	}
	w.drop()
	w.idle = last
}
