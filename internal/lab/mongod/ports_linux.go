package mongod

import (
	"fmt"
	"os"
	"syscall"
)

// reserve binds a socket and never listens on it. While it's open the kernel
// gives its port to no other program and no outgoing connection, refuses
// connections to it, and lets a second socket that has SO_REUSEADDR too, as all
// of package net's have, listen on it (socket(7)). The option comes after bind,
// which with it might choose a port that is reserved like this already.
func reserve() (addr string, h hold, err error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", nil, os.NewSyscallError("socket", err)
	}
	f := os.NewFile(uintptr(fd), "reserved port")
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return "", nil, os.NewSyscallError("bind", err)
	}
	if err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return "", nil, os.NewSyscallError("setsockopt", err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		return "", nil, os.NewSyscallError("getsockname", err)
	}
	in, ok := bound.(*syscall.SockaddrInet4)
	if !ok {
		return "", nil, fmt.Errorf("bound to a %T", bound)
	}
	return fmt.Sprintf("127.0.0.1:%d", in.Port), f, nil
}
