package mongo

import "encoding/binary"

// snappyPrefix inflates a snappy block (github.com/google/snappy,
// format_description.txt) into dst until its capacity is full or in ends. The
// libraries inflate blocks whole or not at all, and a block may be 48 MB. False:
// in is not a snappy block; what was inflated before is returned.
//
//	varint length | elements: a tag byte whose low two bits are its type
//	    00 literal   length-1 in the high six bits, or in 1 to 4 bytes behind
//	    01 copy      length-4 in three bits, offset in three and a byte behind
//	    10, 11 copy  length-1 in six bits, offset in 2 or 4 bytes behind
func snappyPrefix(dst, in []byte) ([]byte, bool) {
	_, n := binary.Uvarint(in)
	if n <= 0 {
		return dst, false
	}
	in = in[n:]
	for len(in) > 0 && len(dst) < cap(dst) {
		tag := in[0]
		in = in[1:]
		extra := snappyExtra(tag)
		if extra > len(in) {
			return dst, true
		}
		length, offset := snappyElement(tag, in[:extra])
		in = in[extra:]
		if length <= 0 {
			return dst, false
		}
		if tag&3 == 0 {
			k := min(length, len(in), cap(dst)-len(dst))
			dst = append(dst, in[:k]...)
			in = in[k:]
			continue
		}
		if offset <= 0 || offset > len(dst) {
			return dst, false
		}
		for i := 0; i < length && len(dst) < cap(dst); i++ {
			dst = append(dst, dst[len(dst)-offset])
		}
	}
	return dst, true
}

// snappyExtra is how many bytes of length or offset follow a tag.
func snappyExtra(tag byte) int {
	switch tag & 3 {
	case 0:
		return max(0, int(tag>>2)-59)
	case 1:
		return 1
	case 2:
		return 2
	}
	return 4
}

func snappyElement(tag byte, extra []byte) (length, offset int) {
	n := 0
	for i, b := range extra {
		n |= int(b) << (8 * i)
	}
	high := int(tag >> 2)
	switch tag & 3 {
	case 0:
		if len(extra) == 0 {
			n = high
		}
		return n + 1, 0
	case 1:
		return high&7 + 4, high>>3<<8 | n
	}
	return high + 1, n
}
