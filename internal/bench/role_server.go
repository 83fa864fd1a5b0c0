package main

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
)

// The server answers what a connection's first bytes ask for:
//
//	'E'             an echo, of whatever comes
//	'B' + uint64    a stream of so many bytes, in writes of 1 MiB
//	a start-up      PostgreSQL by script (its first byte is 0)
//	a ping          MongoDB by script (its first byte is its length, 128)
func serve(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go serveOne(c)
	}
}

func serveOne(c net.Conn) {
	defer c.Close()
	first := make([]byte, 1)
	if _, err := io.ReadFull(c, first); err != nil {
		return
	}
	switch first[0] {
	case 'E':
		echo(c)
	case 'B':
		var n [8]byte
		if _, err := io.ReadFull(c, n[:]); err == nil {
			stream(c, int64(binary.BigEndian.Uint64(n[:])), make([]byte, streamWrite))
		}
	case 0:
		servePostgres(c)
	case pingSize:
		serveMongo(c)
	}
}

// streamWrite is the size of one write of a stream.
const streamWrite = 1 << 20

func echo(c net.Conn) {
	b := make([]byte, 4096)
	for {
		n, err := c.Read(b)
		if err != nil {
			return
		}
		if _, err := c.Write(b[:n]); err != nil {
			return
		}
	}
}

func stream(c net.Conn, n int64, block []byte) error {
	for n > 0 {
		w, err := c.Write(block[:min(n, int64(len(block)))])
		if err != nil {
			return err
		}
		n -= int64(w)
	}
	return nil
}

// serveMongo answers pings; the first byte of the first was read.
func serveMongo(c net.Conn) {
	b, reply := make([]byte, pingSize), mongoInsertReply()
	for have := 1; ; have = 0 {
		if _, err := io.ReadFull(c, b[have:]); err != nil {
			return
		}
		copy(reply[8:12], b[4:8]) // responseTo
		if _, err := c.Write(reply); err != nil {
			return
		}
	}
}

func servePostgres(c net.Conn) {
	b := make([]byte, 4096)
	if _, err := io.ReadFull(c, b[:3]); err != nil { // the rest of the length
		return
	}
	if _, err := io.ReadFull(c, b[:int(b[1])<<8+int(b[2])-4]); err != nil {
		return
	}
	if _, err := c.Write(pgWelcome); err != nil {
		return
	}
	reply := pgInsertReply()
	for have := 0; ; {
		n, err := c.Read(b[have:])
		if err != nil {
			return
		}
		have += n
		for have >= 5 {
			size := 1 + int(binary.BigEndian.Uint32(b[1:]))
			if have < size {
				break
			}
			if err := answer(c, b[:size], reply); err != nil {
				return
			}
			have = copy(b, b[size:have])
		}
	}
}

func answer(c net.Conn, query, reply []byte) error {
	if query[0] != 'Q' {
		return io.EOF
	}
	n, ok := strings.CutPrefix(string(query[5:]), streamQuery)
	if !ok {
		_, err := c.Write(reply)
		return err
	}
	rows := make([]byte, 0, streamWrite)
	for len(rows) < cap(rows) {
		rows = append(rows, pgRow(streamRow)...)
	}
	if _, err := c.Write(pgRowDescription); err != nil {
		return err
	}
	if err := stream(c, int64(binary.BigEndian.Uint64([]byte(n))), rows); err != nil {
		return err
	}
	_, err := c.Write(append(message('C', "SELECT 1\x00"), pgReady...))
	return err
}

// streamRow is the size of a DataRow of a stream; a whole number of them is one
// write.
const streamRow = 1 << 10
