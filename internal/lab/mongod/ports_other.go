//go:build !linux

package mongod

import (
	"io"
	"net"
	"strings"
)

// reserve finds a port that is free now. Nothing keeps it free.
func reserve() (addr string, h hold, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	defer l.Close()
	return l.Addr().String(), io.NopCloser(strings.NewReader("")), nil
}
