//go:build unix

package proxy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

func sasl(mechanisms ...string) []byte {
	m := []byte{'R', 0, 0, 0, 0, 0, 0, 0, authenticationSASL}
	for _, s := range mechanisms {
		m = append(append(m, s...), 0)
	}
	m = append(m, 0)
	binary.BigEndian.PutUint32(m[1:], uint32(len(m)-1))
	return m
}

func TestOffer_LosesOnlyTheBoundMechanism(t *testing.T) {
	const plain, bound = "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"
	negotiate := []byte{'v', 0, 0, 0, 12, 0, 3, 0, 0, 0, 0, 0, 0}
	ok := []byte{'R', 0, 0, 0, 8, 0, 0, 0, 0}
	rest := append(bytes.Clone(sasl(bound, plain)), "Z and what follows"...)
	for name, tc := range map[string][2][]byte{
		"both":                  {sasl(bound, plain), sasl(plain)},
		"the other way round":   {sasl(plain, bound), sasl(plain)},
		"none bound":            {sasl(plain), sasl(plain)},
		"only the bound one":    {sasl(bound), sasl(bound)},
		"a name that ends so":   {sasl("X"+bound, plain), sasl("X"+bound, plain)},
		"no list":               {ok, ok},
		"after a negotiation":   {append(bytes.Clone(negotiate), sasl(bound, plain)...), append(bytes.Clone(negotiate), sasl(plain)...)},
		"the first one alone":   {append(sasl(bound, plain), rest...), append(sasl(plain), rest...)},
		"something else":        {[]byte("not a server"), []byte("not a server")},
		"an error first":        {append([]byte{'E', 0, 0, 0, 4}, sasl(bound, plain)...), append([]byte{'E', 0, 0, 0, 4}, sasl(bound, plain)...)},
		"a cut":                 {sasl(bound, plain)[:20], sasl(bound, plain)[:20]},
		"a length that is long": {[]byte{'R', 1, 2, 3, 4, 5}, []byte{'R', 1, 2, 3, 4, 5}},
		"a length of nothing":   {[]byte{'R', 0, 0, 0, 0, 5}, []byte{'R', 0, 0, 0, 0, 5}},
	} {
		for cut, r := range map[string]io.Reader{
			"whole": bytes.NewReader(tc[0]), "bytes": iotest.OneByteReader(bytes.NewReader(tc[0])),
			"with its end": iotest.DataErrReader(bytes.NewReader(tc[0])),
		} {
			var o offer
			got, err := io.ReadAll(readerFunc(func(b []byte) (int, error) { return o.read(b, r.Read) }))
			if err != nil || !bytes.Equal(got, tc[1]) {
				t.Errorf("%s, %s: %q, %v; want %q", name, cut, got, err, tc[1])
			}
		}
	}
	var o offer
	broken := errors.New("broken")
	if _, err := o.read(make([]byte, 9), iotest.ErrReader(broken).Read); err != broken {
		t.Errorf("an error became %v", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }
