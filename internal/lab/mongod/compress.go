package mongod

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// compressorNames by their number on the wire; 0 is "noop", which nobody
// negotiates (mongodb/specifications, source/compression/OP_COMPRESSED.md).
var compressorNames = [...]string{1: "snappy", 2: "zlib", 3: "zstd"}

// compression holds what is costly to make. Safe for concurrent use.
type compression struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

func (c *compression) open() (err error) {
	if c.encoder, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)); err != nil {
		return err
	}
	c.decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxMessage))
	return err
}

func (c *compression) close() {
	c.encoder.Close()
	c.decoder.Close()
}

// inflate undoes an OP_COMPRESSED's body and refuses what a server refuses: an
// unknown compressor, or bytes that aren't as many as declared.
func (c *compression) inflate(b []byte) (op int32, compressor byte, body []byte, err error) {
	if len(b) < 9 {
		return 0, 0, nil, fmt.Errorf("%w: short OP_COMPRESSED", errProtocol)
	}
	op = int32(binary.LittleEndian.Uint32(b))
	size := int32(binary.LittleEndian.Uint32(b[4:]))
	compressor = b[8]
	if size < 0 || size > maxMessage-headerLen {
		return 0, 0, nil, fmt.Errorf("%w: %d uncompressed bytes", errProtocol, size)
	}
	switch b = b[9:]; compressor {
	case 1:
		if n, lenErr := snappy.DecodedLen(b); lenErr != nil || n != int(size) {
			return 0, 0, nil, fmt.Errorf("%w: snappy length", errProtocol)
		}
		body, err = snappy.Decode(nil, b)
	case 2:
		body, err = inflateZlib(b, int64(size))
	case 3:
		body, err = c.decoder.DecodeAll(b, nil)
	default:
		err = fmt.Errorf("compressor %d", compressor)
	}
	if err == nil && len(body) != int(size) {
		err = fmt.Errorf("%d bytes, declared %d", len(body), size)
	}
	if err != nil {
		err = fmt.Errorf("%w: inflate: %w", errProtocol, err)
	}
	return op, compressor, body, err
}

func inflateZlib(b []byte, size int64) ([]byte, error) {
	r, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, size+1))
}

// deflate makes the body of an OP_COMPRESSED.
func (c *compression) deflate(compressor byte, op int32, body []byte) ([]byte, error) {
	var head [9]byte
	binary.LittleEndian.PutUint32(head[:], uint32(op))
	binary.LittleEndian.PutUint32(head[4:], uint32(len(body)))
	head[8] = compressor
	switch compressor {
	case 1:
		return append(head[:], snappy.Encode(nil, body)...), nil
	case 2:
		out := bytes.NewBuffer(head[:])
		w := zlib.NewWriter(out)
		if _, err := w.Write(body); err != nil {
			return nil, err
		}
		if err := w.Close(); err != nil {
			return nil, err
		}
		return out.Bytes(), nil
	case 3:
		return c.encoder.EncodeAll(body, head[:]), nil
	}
	return nil, fmt.Errorf("compressor %d", compressor)
}
