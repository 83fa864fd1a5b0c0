package mongo

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// A zstd reader's window holds what the bytes that are wanted can refer to, and
// the block that they end in (128 KiB at most), and not much more. It's said in
// eighths of a power of two (RFC 8878 section 3.1.1.1.2).
const (
	zstdWindow     = 512 << 10
	zstdWindowByte = (19 - 10) << 3
	lateWindow     = lateInflate + lateInflate/8
	lateWindowByte = (22-10)<<3 | 1
)

// inflateCost is what one inflater of that limit uses, and so one message while
// it is read.
func inflateCost(limit int) int {
	if limit <= maxInflate {
		return maxInflate + 2*zstdWindow
	}
	return limit + 2*lateWindow
}

// inflater undoes compression, one message at a time.
type inflater struct {
	limit int           // bytes that are wanted
	out   []byte        // one more
	zlib  io.ReadCloser // of a zlib.Resetter
	zstd  *zstd.Decoder
	in    bytes.Reader
	join  joined
}

// inflaters is a free list: an inflater's memory outlives a message, but no
// connection keeps one. It is the one thing that sessions share; nothing that
// it holds depends on what went before. Those with a higher limit than
// maxInflate are few, and not kept.
var inflaters = make(chan *inflater, 4)

func borrowInflater(limit int) *inflater {
	if limit <= maxInflate {
		select {
		case z := <-inflaters:
			return z
		default:
		}
	}
	return &inflater{limit: limit, out: make([]byte, limit+1)}
}

func (z *inflater) giveBack() {
	z.in.Reset(nil)
	z.join = joined{}
	if z.limit > maxInflate {
		if z.zstd != nil {
			z.zstd.Close()
		}
		return
	}
	select {
	case inflaters <- z:
	default:
	}
}

// inflate returns the first bytes of what in holds, at most z.limit, valid until
// giveBack; size is how many there are to be in all. Unless whole, in
// ends early. It returns a reason if in can't be what it says; bytes that came
// out before that was noticed are returned with it.
func (z *inflater) inflate(id byte, in []byte, size int, whole bool) ([]byte, string) {
	switch id {
	case packedNoop:
		return z.sized(in, size, whole)
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
func (z *inflater) sized(out []byte, size int, whole bool) ([]byte, string) {
	switch {
	case len(out) > size:
		return nil, troubleBomb
	case len(out) < min(size, z.limit) && whole:
		return out, troubleCompressed
	}
	return out[:min(len(out), z.limit)], ""
}

// stream reads one byte more than was declared, if that is not too much, to
// tell a message that holds more than it says.
func (z *inflater) stream(r io.Reader, size int, whole bool) ([]byte, string) {
	n, _ := io.ReadFull(r, z.out[:min(size, z.limit)+1])
	if size > z.limit {
		n = min(n, z.limit)
	}
	return z.sized(z.out[:n], size, whole)
}

func (z *inflater) snappy(in []byte, size int, whole bool) ([]byte, string) {
	n, err := snappy.DecodedLen(in)
	if err != nil || n != size {
		return nil, troubleSize
	}
	if size > z.limit || !whole {
		out, ok := snappyPrefix(z.out[:0:z.limit], in)
		if !ok {
			return out, troubleCompressed
		}
		return z.sized(out, size, whole)
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

// openZstd opens a frame as if its window were ours. A frame says how much memory
// its reader needs, up to its whole content; for the first bytes of the content
// less will do, so the frame's header is replaced (RFC 8878 section 3.1.1.1).
func (z *inflater) openZstd(in []byte) bool {
	var h zstd.Header
	if h.Decode(in) != nil || h.Skippable || h.DictionaryID != 0 || h.HeaderSize > len(in) {
		return false
	}
	window, windowByte := uint64(zstdWindow), byte(zstdWindowByte)
	if z.limit > maxInflate {
		window, windowByte = lateWindow, lateWindowByte
	}
	if z.zstd == nil {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(window))
		if err != nil {
			return false
		}
		z.zstd = d
	}
	z.join = joined{in: in[h.HeaderSize:]}
	binary.LittleEndian.PutUint32(z.join.head[:], zstdMagic)
	z.join.head[4] = 0 // no content size, checksum or dictionary
	z.join.head[5] = windowByte
	return z.zstd.Reset(&z.join) == nil
}

const zstdMagic = 0xfd2fb528

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
