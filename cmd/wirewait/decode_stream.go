package main

import (
	"bytes"
	"io"
	"os"
)

// stream is one direction's bytes. It can be read more than once.
type stream struct {
	io.ReadSeeker
	// size is all bytes, use those that shall be read.
	size, use int64
	closer    io.Closer
}

func bytesStream(b []byte) stream {
	n := int64(len(b))
	return stream{ReadSeeker: bytes.NewReader(b), size: n, use: n}
}

// openStream opens a file; "" is an empty one and "-" is stdin. What isn't a
// regular file is read whole; if that fails half-way, what came is there beside
// the error. Otherwise the stream is empty after an error.
func openStream(name string, stdin io.Reader) (stream, error) {
	switch name {
	case "":
		return bytesStream(nil), nil
	case "-":
		b, err := io.ReadAll(stdin)
		return bytesStream(b), err
	}
	f, err := os.Open(name)
	if err != nil {
		return bytesStream(nil), err
	}
	if fi, err := f.Stat(); err == nil && fi.Mode().IsRegular() {
		return stream{ReadSeeker: f, size: fi.Size(), use: fi.Size(), closer: f}, nil
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	return bytesStream(b), err
}

func (s *stream) trailing() int64 { return s.size - s.use }

func (s *stream) close() {
	if s.closer != nil {
		s.closer.Close()
	}
}
