package trace

import (
	"math"
	"math/bits"
	"time"
)

// A histogram counts durations in buckets whose width grows with their value:
// every power of two of nanoseconds (an octave) has 64 buckets of equal width,
// so the middle of a bucket is off by less than 1 % whatever the value.
//
//	octave   values (ns)     bucket width
//	0        0 .. 63         1
//	1        64 .. 127       1
//	2        128 .. 255      2
//	n        2^(n+5) ..      2^(n-1)
//
// An octave's buckets are allocated when it's first used. Real waits touch
// about five octaves, and all of them together are 19 KiB.
type histogram struct {
	octaves [octaves]*[perOctave]uint64
	count   uint64
	sum     float64 // seconds: it can't overflow
	most    time.Duration
}

const (
	perOctave = 64
	octaves   = 38 // the last ends at 2^43 ns, 2 h 26 min; longer is counted there
)

func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	h.count++
	h.sum += d.Seconds()
	h.most = max(h.most, d)
	o, b := bucket(d)
	if h.octaves[o] == nil {
		h.octaves[o] = new([perOctave]uint64)
	}
	h.octaves[o][b]++
}

// merge adds what o counted.
func (h *histogram) merge(o *histogram) {
	h.count += o.count
	h.sum += o.sum
	h.most = max(h.most, o.most)
	for i, buckets := range o.octaves {
		if buckets == nil {
			continue
		}
		if h.octaves[i] == nil {
			h.octaves[i] = new([perOctave]uint64)
		}
		for b, n := range buckets {
			h.octaves[i][b] += n
		}
	}
}

func bucket(d time.Duration) (octave, index int) {
	v := uint64(d)
	if v < perOctave {
		return 0, int(v)
	}
	octave = bits.Len64(v) - 6
	if octave >= octaves {
		return octaves - 1, perOctave - 1
	}
	return octave, int(v>>(octave-1)) & (perOctave - 1)
}

// middle is the value that stands for a bucket.
func middle(octave, index int) time.Duration {
	if octave == 0 {
		return time.Duration(index)
	}
	width := uint64(1) << (octave - 1)
	return time.Duration(uint64(perOctave+index)*width + width/2)
}

// quantile is the smallest value that a share q of all durations don't exceed.
func (h *histogram) quantile(q float64) time.Duration {
	rank := max(uint64(math.Ceil(q*float64(h.count))), 1)
	var seen uint64
	for o, buckets := range h.octaves {
		if buckets == nil {
			continue
		}
		for b, n := range buckets {
			if seen += n; seen >= rank {
				return min(middle(o, b), h.most)
			}
		}
	}
	return h.most
}

// buckets lists those that aren't empty.
func (h *histogram) buckets() (list []Bucket) {
	for o, counts := range h.octaves {
		if counts == nil {
			continue
		}
		for b, n := range counts {
			if n > 0 {
				list = append(list, Bucket{middle(o, b), n})
			}
		}
	}
	return list
}

func (h *histogram) quantiles() Quantiles {
	if h.count == 0 {
		return Quantiles{}
	}
	return Quantiles{
		P50:  h.quantile(0.50),
		P95:  h.quantile(0.95),
		P99:  h.quantile(0.99),
		Mean: time.Duration(h.sum / float64(h.count) * float64(time.Second)),
	}
}
