package mongo

import (
	"encoding/binary"
	"math"
)

// BSON element types (https://bsonspec.org/spec.html).
const (
	typeDouble     = 0x01
	typeString     = 0x02
	typeDocument   = 0x03
	typeArray      = 0x04
	typeBinary     = 0x05
	typeUndefined  = 0x06
	typeObjectID   = 0x07
	typeBool       = 0x08
	typeDate       = 0x09
	typeNull       = 0x0a
	typeRegex      = 0x0b
	typeDBPointer  = 0x0c
	typeCode       = 0x0d
	typeSymbol     = 0x0e
	typeCodeScope  = 0x0f
	typeInt32      = 0x10
	typeTimestamp  = 0x11
	typeInt64      = 0x12
	typeDecimal128 = 0x13
	typeMaxKey     = 0x7f
	typeMinKey     = 0xff
)

const (
	minDocument = 5    // an empty one: length and terminator
	maxKey      = 1024 // longest key that the scanner reads
	maxCollect  = 4096 // longest value that a visitor gets; longer ones are stepped over
	maxDepth    = 6    // deepest nesting that a visitor may ask for
)

// node names a place in a document that a visitor knows: a document or array
// to look into, or a value to read.
type node uint8

// action is what becomes of an element's value.
type action uint8

const (
	skip    action = iota // step over it by its length
	collect               // give it to visitor.value
	descend               // look into it (documents and arrays)
)

// visitor says what it wants of a document.
type visitor interface {
	// element is told of the nth element (from 0) of the document or array at.
	// The key is valid during the call.
	element(at node, nth int, key []byte, typ byte) (node, action)
	// value gets what was to be collected, valid during the call. A document
	// is whole, a string is without its length and NUL, a binary starts with
	// its subtype.
	value(n node, typ byte, v []byte)
}

// scanner walks one BSON document as its bytes arrive. Big values are stepped
// over by their length, so that a 48 MB document needs as little memory as a
// small one, and whatever stands behind it is found.
//
//	int32 length | elements: type byte, key, NUL, value | 0x00
//
// Lengths are checked against what encloses them wherever the scanner looks;
// what it steps over is taken at its length.
type scanner struct {
	levels [maxDepth]level
	depth  int
	root   node
	limit  int // where the document must end at the latest
	step   func(*scanner, *source, visitor) status
	typ    byte
	node   node
	action action
	size   int
}

// level is a document or array that the scanner is in.
type level struct {
	end int // position one past its terminator
	nth int // elements seen
	at  node
}

// start makes ready for a document that begins at the source's position and
// ends by position limit.
func (sc *scanner) start(root node, limit int) {
	sc.depth, sc.root, sc.limit = 0, root, limit
	sc.step = (*scanner).rootLength
}

// run goes as far as the bytes reach: hungry, done or failed.
func (sc *scanner) run(src *source, v visitor) status {
	for {
		if st := sc.step(sc, src, v); st != going {
			return st
		}
	}
}

func (sc *scanner) top() *level { return &sc.levels[sc.depth-1] }

func (sc *scanner) push(at node, end int) {
	sc.levels[sc.depth] = level{end: end, at: at}
	sc.depth++
	sc.step = (*scanner).elementType
}

func (sc *scanner) rootLength(src *source, _ visitor) status {
	h, ok := src.need(4)
	if !ok {
		return hungry
	}
	n := le32(h)
	start := src.pos
	src.consume(4)
	if n < minDocument || n > sc.limit-start {
		return failed
	}
	sc.push(sc.root, start+n)
	return going
}

func (sc *scanner) elementType(src *source, _ visitor) status {
	t, ok := src.need(1)
	if !ok {
		return hungry
	}
	sc.typ = t[0]
	src.consume(1)
	end := sc.top().end
	if sc.typ != 0 {
		sc.step = (*scanner).key
		if src.pos >= end {
			return failed
		}
		return going
	}
	if src.pos != end {
		return failed
	}
	if sc.depth--; sc.depth == 0 {
		return done
	}
	return going
}

func (sc *scanner) key(src *source, v visitor) status {
	l := sc.top()
	// The level's own terminator stands behind whatever the key belongs to.
	room := l.end - 2 - src.pos
	if room < 0 {
		return failed
	}
	key, st := src.cstring(min(room, maxKey))
	if st != done {
		return st
	}
	sc.node, sc.action = v.element(l.at, l.nth, key, sc.typ)
	l.nth++
	return sc.chooseStep(src)
}

// chooseStep goes by the type of the value that follows.
func (sc *scanner) chooseStep(src *source) status {
	n, kind := fixedSize(sc.typ)
	switch kind {
	case sizeFixed:
		return sc.sized(src, n)
	case sizeLed:
		sc.step = (*scanner).valueHead
	case sizeRegex:
		sc.step = (*scanner).regexPattern
	default:
		return failed
	}
	return going
}

// sized steps over or collects a value of n bytes.
func (sc *scanner) sized(src *source, n int) status {
	if n > sc.top().end-1-src.pos {
		return failed
	}
	if sc.action == collect && n > 0 && n <= maxCollect {
		sc.size = n
		sc.step = (*scanner).wholeValue
		return going
	}
	src.discard(n)
	sc.step = (*scanner).elementType
	return going
}

// valueHead reads the length that leads a value.
func (sc *scanner) valueHead(src *source, _ visitor) status {
	h, ok := src.need(4)
	if !ok {
		return hungry
	}
	n, ok := ledSize(sc.typ, le32(h))
	if !ok || n > sc.top().end-1-src.pos {
		return failed
	}
	isDoc := sc.typ == typeDocument || sc.typ == typeArray
	if isDoc && sc.action == descend && sc.depth < maxDepth {
		end := src.pos + n
		src.consume(4)
		sc.push(sc.node, end)
		return going
	}
	if sc.action == collect && n <= maxCollect {
		sc.size = n
		sc.step = (*scanner).wholeValue
		return going
	}
	src.consume(4)
	src.discard(n - 4)
	sc.step = (*scanner).elementType
	return going
}

func (sc *scanner) wholeValue(src *source, v visitor) status {
	b, ok := src.need(sc.size)
	if !ok {
		return hungry
	}
	src.consume(sc.size)
	sc.step = (*scanner).elementType
	switch sc.typ {
	case typeString, typeSymbol, typeCode:
		if b[len(b)-1] != 0 {
			return failed
		}
		b = b[4 : len(b)-1]
	case typeBinary:
		b = b[4:]
	}
	v.value(sc.node, sc.typ, b)
	return going
}

func (sc *scanner) regexPattern(src *source, _ visitor) status {
	st := src.pastNUL(sc.top().end - 2)
	if st == done {
		sc.step = (*scanner).regexOptions
		return going
	}
	return st
}

func (sc *scanner) regexOptions(src *source, _ visitor) status {
	st := src.pastNUL(sc.top().end - 1)
	if st == done {
		sc.step = (*scanner).elementType
		return going
	}
	return st
}

type sizeKind uint8

const (
	sizeUnknown sizeKind = iota
	sizeFixed
	sizeLed   // an int32 length leads the value
	sizeRegex // two NUL-terminated strings
)

func fixedSize(typ byte) (int, sizeKind) {
	switch typ {
	case typeUndefined, typeNull, typeMinKey, typeMaxKey:
		return 0, sizeFixed
	case typeBool:
		return 1, sizeFixed
	case typeInt32:
		return 4, sizeFixed
	case typeDouble, typeDate, typeTimestamp, typeInt64:
		return 8, sizeFixed
	case typeObjectID:
		return 12, sizeFixed
	case typeDecimal128:
		return 16, sizeFixed
	case typeString, typeDocument, typeArray, typeBinary, typeDBPointer, typeCode, typeSymbol, typeCodeScope:
		return 0, sizeLed
	case typeRegex:
		return 0, sizeRegex
	}
	return 0, sizeUnknown
}

// ledSize is the size of a value with the length that leads it, from that
// length; false if the type doesn't allow it.
func ledSize(typ byte, n int) (int, bool) {
	if n > maxMessage {
		return 0, false
	}
	switch typ {
	case typeString, typeCode, typeSymbol: // counts the NUL
		return n + 4, n >= 1
	case typeBinary: // the subtype byte is not counted
		return n + 5, n >= 0
	case typeDBPointer: // a string and an ObjectID
		return n + 16, n >= 1
	case typeCodeScope: // counts itself: length, string, document
		return n, n >= 14
	}
	return n, n >= minDocument
}

func le32(b []byte) int { return int(int32(binary.LittleEndian.Uint32(b))) }

// number reads a numeric or boolean value as an integer. A number that does
// not fit is not read. v is as long as its type says.
func number(typ byte, v []byte) (int64, bool) {
	switch typ {
	case typeInt32:
		return int64(le32(v)), true
	case typeInt64:
		return int64(binary.LittleEndian.Uint64(v)), true
	case typeBool:
		return int64(v[0] & 1), true
	case typeDouble:
		f := math.Float64frombits(binary.LittleEndian.Uint64(v))
		if f > -1<<62 && f < 1<<62 {
			return int64(f), true
		}
	}
	return 0, false
}
