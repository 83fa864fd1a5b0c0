package mongo

import (
	"bytes"
	"compress/zlib"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

var allCompressors = []byte{packedNoop, packedSnappy, packedZlib, packedZstd}

func squeeze(t testing.TB, id byte, b []byte) []byte {
	t.Helper()
	switch id {
	case packedNoop:
		return b
	case packedSnappy:
		return snappy.Encode(nil, b)
	case packedZlib:
		var out bytes.Buffer
		w, err := zlib.NewWriterLevel(&out, zlib.BestSpeed)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(b, nil)
}

// packedMessage is an OP_COMPRESSED with this declared size.
func packedMessage(id, to, op, size int, compressor byte, data []byte) []byte {
	return message(id, to, opCompressed, u32(op), u32(size), []byte{compressor}, data)
}

// compress puts a plain message into an OP_COMPRESSED.
func compress(t testing.TB, compressor byte, m []byte) []byte {
	t.Helper()
	body := m[headerLen:]
	return packedMessage(le32(m[4:]), le32(m[8:]), le32(m[12:]), len(body), compressor, squeeze(t, compressor, body))
}
