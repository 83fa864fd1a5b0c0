package main

import (
	"io"
	"net"
	"strings"
	"time"
)

// Relays are what wirewait is measured against: they move bytes and look at
// none of them.
//
//	copy32   two goroutines a connection, 32 KiB each, read and write
//	copy64   the same with 64 KiB, which is what wirewait reads at once
//	splice   io.Copy between two sockets: the kernel moves the bytes
//	timer:D  copy64, but what goes to the server waits for D on a time.Timer
func relay(ln net.Listener, mode, upstream string) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go relayOne(c.(*net.TCPConn), mode, upstream)
	}
}

func relayOne(client *net.TCPConn, mode, upstream string) {
	defer client.Close()
	nc, err := net.Dial("tcp", upstream)
	if err != nil {
		return
	}
	server := nc.(*net.TCPConn)
	defer server.Close()
	back := make(chan struct{})
	go func() {
		defer close(back)
		copyBack, _, _ := strings.Cut(mode, ":")
		relayWay(client, server, copyBack)
	}()
	relayWay(server, client, mode)
	<-back
}

// relayWay copies one way and passes the end on.
func relayWay(dst, src *net.TCPConn, mode string) {
	defer dst.CloseWrite()
	// The wrappers hide the sockets' ReadFrom and WriteTo, with which io.Copy
	// would leave the copying to the kernel.
	type reader struct{ io.Reader }
	type writer struct{ io.Writer }
	mode, delay, _ := strings.Cut(mode, ":")
	switch {
	case delay != "":
		d, _ := time.ParseDuration(delay)
		sleepyCopy(dst, src, d)
	case mode == "splice":
		_, _ = io.Copy(dst, src)
	case mode == "copy32":
		_, _ = io.CopyBuffer(writer{dst}, reader{src}, make([]byte, 32<<10))
	default:
		_, _ = io.CopyBuffer(writer{dst}, reader{src}, make([]byte, 64<<10))
	}
}

// sleepyCopy delays with Go's own timer, as a proxy would that is written the
// obvious way: stamp on arrival, sleep until due, write.
func sleepyCopy(dst, src *net.TCPConn, d time.Duration) {
	type late struct {
		due time.Time
		b   []byte
	}
	queue := make(chan late, 1024)
	go func() {
		defer close(queue)
		b := make([]byte, 64<<10)
		for {
			n, err := src.Read(b)
			if err != nil {
				return
			}
			queue <- late{time.Now().Add(d), append([]byte(nil), b[:n]...)}
		}
	}()
	timer := time.NewTimer(d)
	for l := range queue {
		timer.Reset(time.Until(l.due))
		<-timer.C
		if _, err := dst.Write(l.b); err != nil {
			return
		}
	}
}
