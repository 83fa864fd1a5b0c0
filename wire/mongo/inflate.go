package mongo

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// zstdWindow holds what the first maxInflate bytes can refer to, and the block
// that they end in (128 KiB at most), and no more.
const zstdWindow = 512 << 10

// inflateCost is what one inflater uses, and so one message while it is read.
const inflateCost = maxInflate + 2*zstdWindow

// inflater undoes compression, one message at a time.
type inflater struct {
	out  []byte
	zlib io.ReadCloser // of a zlib.Resetter
	zstd *zstd.Decoder
	in   bytes.Reader
	join joined
}

// inflaters is a free list: an inflater's memory outlives a message, but no
// connection keeps one. It is the one thing that sessions share; nothing that
// it holds depends on what went before.
var inflaters = make(chan *inflater, 4)

func borrowInflater() *inflater {
	select {
	case z := <-inflaters:
		return z
	default:
		return &inflater{out: make([]byte, maxInflate+1)}
	}
}

func (z *inflater) giveBack() {
	z.in.Reset(nil)
	z.join = joined{}
	select {
	case inflaters <- z:
	default:
	}
}

// inflate returns the first bytes of what in holds, at most maxInflate, valid
// until giveBack; size is how many there are to be in all. Unless whole, in
// ends early. It returns a reason if in can't be what it says; bytes that came
// out before that was noticed are returned with it.
func (z *inflater) inflate(id byte, in []byte, size int, whole bool) ([]byte, string) {
	switch id {
	case packedNoop:
		return sized(in, size, whole)
	case packedSnappy:
		return z.snappy(in, size, whole)
	case packedZlib:
		if !z.openZlib(in) {
			return nil, troubleCompressed
		}
		return z.stream(z.zlib, size, whole)
	}
	if !z.openZstd(in) {
		return nil, troubleCompressed
	}
	return z.stream(z.zstd, size, whole)
}

// sized checks out, all or the start of what is to be size bytes.
func sized(out []byte, size int, whole bool) ([]byte, string) {
	switch {
	case len(out) > size:
		return nil, troubleBomb
	case len(out) < min(size, maxInflate) && whole:
		return out, troubleCompressed
	}
	return out[:min(len(out), maxInflate)], ""
}

// stream reads one byte more than was declared, if that is not too much, to
// tell a message that holds more than it says.
func (z *inflater) stream(r io.Reader, size int, whole bool) ([]byte, string) {
	n, _ := io.ReadFull(r, z.out[:min(size, maxInflate)+1])
	if size > maxInflate {
		n = min(n, maxInflate)
	}
	return sized(z.out[:n], size, whole)
}

func (z *inflater) snappy(in []byte, size int, whole bool) ([]byte, string) {
	n, err := snappy.DecodedLen(in)
	if err != nil || n != size {
		return nil, troubleSize
	}
	if size > maxInflate || !whole {
		out, ok := snappyPrefix(z.out[:0:maxInflate], in)
		if !ok {
			return out, troubleCompressed
		}
		return sized(out, size, whole)
	}
	out, err := snappy.Decode(z.out, in)
	if err != nil {
		return nil, troubleCompressed
	}
	return out, ""
}

func (z *inflater) openZlib(in []byte) bool {
	z.in.Reset(in)
	if z.zlib != nil {
		return z.zlib.(zlib.Resetter).Reset(&z.in, nil) == nil
	}
	r, err := zlib.NewReader(&z.in)
	if err != nil {
		return false
	}
	z.zlib = r
	return true
}

// openZstd opens a frame as if its window were zstdWindow. A frame says how
// much memory its reader needs, up to its whole content; for the first bytes of
// the content less will do, so the frame's header is replaced
// (RFC 8878 section 3.1.1.1).
func (z *inflater) openZstd(in []byte) bool {
	var h zstd.Header
	if h.Decode(in) != nil || h.Skippable || h.DictionaryID != 0 || h.HeaderSize > len(in) {
		return false
	}
	if z.zstd == nil {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(zstdWindow))
		if err != nil {
			return false
		}
		z.zstd = d
	}
	z.join = joined{in: in[h.HeaderSize:]}
	binary.LittleEndian.PutUint32(z.join.head[:], zstdMagic)
	z.join.head[4] = 0                         // no content size, checksum or dictionary
	z.join.head[5] = (zstdWindowLog - 10) << 3 // its window
	return z.zstd.Reset(&z.join) == nil
}

const (
	zstdMagic     = 0xfd2fb528
	zstdWindowLog = 19
)

// joined reads head, then in.
type joined struct {
	head [6]byte
	read int // of head
	in   []byte
}

func (j *joined) Read(p []byte) (int, error) {
	if j.read < len(j.head) {
		n := copy(p, j.head[j.read:])
		j.read += n
		return n, nil
	}
	if len(j.in) == 0 {
		return 0, io.EOF
	}
	n := copy(p, j.in)
	j.in = j.in[n:]
	return n, nil
}
