package mongo

import "encoding/binary"

// OP_MSG: flags, then sections to the end
// (specifications/source/message/OP_MSG.md, mongo/src/mongo/rpc/op_msg.cpp).

func (b *body) msgFlags() status {
	if b.limit < flagsLen {
		b.fail(troubleShort)
		return done
	}
	v, st := b.take(flagsLen)
	if st == done {
		b.setFlags(binary.LittleEndian.Uint32(v))
		return going
	}
	return st
}

// feedFlags gives the flags that framing has read already.
func (b *body) feedFlags(flags uint32) {
	b.pos += flagsLen
	b.setFlags(flags)
}

func (b *body) setFlags(flags uint32) {
	b.flags = flags
	b.step = (*body).section
	if flags&flagsUnknown != 0 {
		b.note(troubleFlags)
	}
	if flags&flagChecksum == 0 {
		return
	}
	if b.limit -= 4; b.limit <= b.pos {
		b.fail(troubleChecksum)
	}
}

func (b *body) section() status {
	if b.pos == b.limit {
		if !b.whole {
			b.fail(troubleSections)
		}
		return done
	}
	kind, st := b.take(1)
	if st != done {
		return st
	}
	switch kind[0] {
	case 0:
		if b.whole {
			b.fail(troubleSections)
			return done
		}
		b.scan.start(b.root(), b.limit)
		b.step = (*body).commandSection
	case 1:
		b.step = (*body).sequenceSize
	case 3:
		b.scan.start(inTelemetry, min(b.limit, b.pos+maxTelemetry))
		b.step = (*body).telemetrySection
	default:
		// Kind 2 (a security token) has had two forms; a kind that is not
		// known has no length that could be stepped over.
		b.fail(troubleKind)
		return done
	}
	return going
}

func (b *body) commandSection() status {
	st := b.scan.run(&b.source, b.visitor)
	if st != done {
		return st
	}
	b.whole = true
	b.step = (*body).section
	return going
}

func (b *body) telemetrySection() status {
	st := b.scan.run(&b.source, b.visitor)
	if st != done {
		return st
	}
	b.step = (*body).section
	return going
}

// A document sequence: its documents are counted and stepped over.

func (b *body) sequenceSize() status {
	start := b.pos
	v, st := b.take(4)
	if st != done {
		return st
	}
	n := le32(v)
	if n < 4 || n > b.limit-start {
		return failed
	}
	b.seqEnd = start + n
	b.step = (*body).sequenceName
	return going
}

func (b *body) sequenceName() status {
	v, st := b.name(maxIdentifier, b.seqEnd)
	if st != done {
		return st
	}
	b.counted = b.request != nil && isBatch(v)
	b.step = (*body).sequenceDocument
	return going
}

func (b *body) sequenceDocument() status {
	if b.pos == b.seqEnd {
		b.step = (*body).section
		return going
	}
	return b.stepOverDocument(b.seqEnd)
}

// stepOverDocument counts a document that ends by position end.
func (b *body) stepOverDocument(end int) status {
	if end-b.pos < minDocument {
		return failed
	}
	v, st := b.take(4)
	if st != done {
		return st
	}
	n := le32(v)
	if n < minDocument || n-4 > end-b.pos {
		return failed
	}
	b.discard(n - 4)
	if b.counted {
		b.request.batch++
	}
	return going
}

// isBatch reports whether documents of this name are the statements of a write.
func isBatch(name []byte) bool {
	switch string(name) {
	case "documents", "updates", "deletes", "ops":
		return true
	}
	return false
}
