package proxy

import (
	"net"

	"golang.org/x/sys/unix"
)

// closed is TCP_CLOSE of include/net/tcp_states.h: nothing goes on here.
const closed = 7

// undelivered is the number of bytes written to a TCP socket that its peer has
// not acknowledged; 0 for any other, and for one that is gone (tcp(7), SIOCOUTQ).
func undelivered(c net.Conn) (n int) {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return 0
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { n = undeliveredBy(int(fd)) })
	return n
}

// undeliveredBy is undelivered for a descriptor.
func undeliveredBy(fd int) int {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil || info.State == closed {
		return 0
	}
	n, _ := unix.IoctlGetInt(fd, unix.SIOCOUTQ)
	return n
}
