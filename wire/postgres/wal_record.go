package postgres

import "encoding/binary"

// Resource managers and operations of the records that matter
// (src/include/access/rmgrlist.h, xact.h, catalog/pg_control.h).
const (
	rmXLog     = 0
	xlogSwitch = 0x40 // the rest of the segment is empty

	rmXact           = 1
	xactCommit       = 0x00
	xactPrepare      = 0x10
	xactAbort        = 0x20
	xactCommitPrep   = 0x30
	xactAbortPrep    = 0x40
	xactOpMask       = 0x70
	xactHasInfo      = 0x80
	xinfoDB          = 1 << 0
	xinfoSubxacts    = 1 << 1
	xinfoRelations   = 1 << 2
	xinfoInvals      = 1 << 3
	xinfoTwoPhase    = 1 << 4
	xinfoStats       = 1 << 8
	xinfoApply       = 1 << 29 // XACT_COMPLETION_APPLY_FEEDBACK: synchronous_commit = remote_apply
	blockShort       = 255
	blockLong        = 254
	blockOrigin      = 253
	blockTopLevelXID = 252
)

// walTransaction is what a transaction's record says: which one, where in the
// log it lies, and what became of it (one of the operations above).
type walTransaction struct {
	op         byte
	xid        uint32
	start, end uint64 // end: what a standby must reach to have it
	info       uint32 // xinfo; 0 if there is none
}

// readTransaction reads a record of the transaction manager, of which the end
// may be missing. Those that neither prepare nor end one are left out. statsItem
// is of walMagic.
func readTransaction(b []byte, statsItem int) (t walTransaction, ok bool) {
	t.xid, t.op = binary.LittleEndian.Uint32(b[4:]), b[16]&xactOpMask
	if t.op > xactAbortPrep {
		return t, false
	}
	r := walBytes{b: b[walRecordHead:]}
	for main := false; !main; {
		switch id := r.u8(); id {
		case blockShort:
			r.skip(1)
			main = true
		case blockLong:
			r.skip(4)
			main = true
		case blockOrigin:
			r.skip(2)
		case blockTopLevelXID:
			r.skip(4)
		default: // a transaction's record refers to no block
			return t, false
		}
		if r.short {
			return t, false
		}
	}
	if t.op == xactPrepare {
		return t, true
	}
	r.skip(8) // when
	if b[16]&xactHasInfo != 0 {
		t.info = r.u32()
	}
	if r.short {
		return t, false
	}
	if t.op == xactCommitPrep || t.op == xactAbortPrep {
		t.xid = r.twoPhase(t.info, statsItem)
	}
	return t, true
}

// walBytes reads little-endian values; short once they don't suffice.
type walBytes struct {
	b     []byte
	short bool
}

func (r *walBytes) skip(n int) {
	if n < 0 || n > len(r.b) {
		r.b, r.short = nil, true
		return
	}
	r.b = r.b[n:]
}

func (r *walBytes) u8() byte {
	if len(r.b) < 1 {
		r.short = true
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *walBytes) u32() uint32 {
	if len(r.b) < 4 {
		r.b, r.short = nil, true
		return 0
	}
	v := binary.LittleEndian.Uint32(r.b)
	r.b = r.b[4:]
	return v
}

// list skips a counted list of items of some size.
func (r *walBytes) list(size int) {
	n := int(r.u32())
	if n > len(r.b) { // before it's multiplied
		r.b, r.short = nil, true
		return
	}
	r.skip(n * size)
}

// twoPhase finds the transaction that a COMMIT PREPARED or ROLLBACK PREPARED
// ends: it isn't in the record's header. The parts before it come in the order
// of src/backend/access/rmgrdesc/xactdesc.c. 0: not found.
func (r *walBytes) twoPhase(info uint32, statsItem int) uint32 {
	if info&xinfoTwoPhase == 0 {
		return 0
	}
	if info&xinfoDB != 0 {
		r.skip(8)
	}
	for _, list := range [...]struct {
		bit  uint32
		item int
	}{{xinfoSubxacts, 4}, {xinfoRelations, 12}, {xinfoStats, statsItem}, {xinfoInvals, 16}} {
		if info&list.bit != 0 {
			r.list(list.item)
		}
	}
	return r.u32()
}
