package main

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// The PostgreSQL bytes of the ping-pong: a simple Query whose text pads it to
// 128 bytes, and what a server answers to it, 128 bytes as well.
//
//	client  Q "INSERT INTO notes (body) VALUES ('xxx...') RETURNING body"
//	server  T body | D "xxx..." | C "INSERT 0 1" | Z idle
//
// Every ping is a write with one statement, so that a span is due for each.
// https://www.postgresql.org/docs/current/protocol-message-formats.html

// pingSize is the size of a request and of its reply.
const pingSize = 128

// message is a typed message: type, Int32 length of itself and the body, body.
func message(kind byte, body string) []byte {
	b := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4))
	return append(b, body...)
}

func pgStartup() []byte {
	body := "\x00\x03\x00\x00user\x00bench\x00database\x00bench\x00\x00"
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body)+4)), body...)
}

// pgWelcome accepts a client without asking for a password.
var pgWelcome = bytes.Join([][]byte{
	message('R', "\x00\x00\x00\x00"),
	message('S', "server_version\x0015.0\x00"),
	message('S', "client_encoding\x00UTF8\x00"),
	message('K', "\x00\x00\x00\x2a\x00\x00\x00\x2a"),
	pgReady,
}, nil)

var pgReady = message('Z', "I")

func pgInsert() []byte {
	sql := "INSERT INTO notes (body) VALUES ('') RETURNING body\x00"
	sql = strings.Replace(sql, "''", "'"+strings.Repeat("x", pingSize-5-len(sql))+"'", 1)
	return message('Q', sql)
}

var pgRowDescription = message('T', "\x00\x01body\x00"+
	"\x00\x00\x00\x00\x00\x00"+ // of no table
	"\x00\x00\x00\x19\xff\xff\xff\xff\xff\xff\x00\x00") // text

// pgRow is a DataRow of one column, n bytes in all.
func pgRow(n int) []byte {
	value := strings.Repeat("x", n-11)
	return message('D', "\x00\x01"+string(binary.BigEndian.AppendUint32(nil, uint32(len(value))))+value)
}

func pgInsertReply() []byte {
	done := append(message('C', "INSERT 0 1\x00"), pgReady...)
	row := pgRow(pingSize - len(pgRowDescription) - len(done))
	return bytes.Join([][]byte{pgRowDescription, row, done}, nil)
}

// pgSelect asks the scripted server for a stream of n bytes.
func pgSelect(n int64) []byte {
	return message('Q', streamQuery+string(binary.BigEndian.AppendUint64(nil, uint64(n)))+"\x00")
}

// streamQuery begins the text of a Query to which the answer is a stream of
// rows; its length follows. A real server would call it nonsense.
const streamQuery = "SELECT stream "
