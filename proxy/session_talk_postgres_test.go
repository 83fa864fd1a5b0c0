package proxy

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/wirewait/wirewait/wire"
)

// postgresLabel is what a statement and its result say of each other: the text
// comes from the request, the tag or error from the reply.
func postgresLabel(x *wire.Exchange) string {
	return fmt.Sprintf("%s text=%q tag=%q error=%s answered=%v", x.Operation, x.Statement, x.Postgres.Tag, x.ErrorCode, x.Answered)
}

// postgresTalk is a start-up and rounds of all kinds, some of which the client
// sends before the one before is answered.
func postgresTalk(d *dice) *talk {
	k := &talk{dice: d}
	for range k.n(3) {
		code := uint32(codeSSL + k.n(2))
		k.answer(k.ask(binary.BigEndian.AppendUint32([]byte{0, 0, 0, 8}, code)), []byte("N"))
		k.wait()
	}
	ready := k.ask(pgStartup("u"))
	k.answer(ready, k.async(), pgMessage('R', "\x00\x00\x00\x00"), pgMessage('K', "\x00\x00\x00\x01\x00\x00\x00\x02"), pgMessage('Z', "I"))
	k.wait()
	k.expect(`startup text="" tag="" error= answered=true`)
	var named []int
	for range 1 + k.n(16) {
		switch k.n(8) {
		case 0, 1:
			k.simple()
		case 2, 3, 4:
			k.pipeline(named)
		case 5:
			k.copyIn()
		case 6:
			k.functionCall()
		case 7:
			named = append(named, k.prepare())
		}
		if k.one(2) {
			k.wait()
		}
	}
	k.wait()
	k.ask(pgMessage('X', ""))
	return k
}

// async is what a server may send at any time, or nothing.
func (k *talk) async() []byte {
	switch k.n(6) {
	case 0:
		return pgMessage('N', "SNOTICE\x00C00000\x00Mhear\x00\x00")
	case 1:
		return pgMessage('A', "\x00\x00\x00\x07channel\x00"+strings.Repeat("x", k.size(7000))+"\x00")
	case 2:
		return pgMessage('S', "TimeZone\x00UTC\x00")
	}
	return nil
}

// sqlState is an error code that tells its statement.
func sqlState(id int) string { return fmt.Sprintf("X%04d", id) }

func (k *talk) failure(id int) []byte {
	return pgMessage('E', "SERROR\x00C"+sqlState(id)+"\x00Mno\x00\x00")
}

// result is what a statement's execution answers, and the tag.
func (k *talk) result(id int) (messages [][]byte, sql, tag string) {
	switch k.n(3) {
	case 0:
		for range k.n(4) {
			messages = append(messages, pgMessage('D', "\x00\x01\xff\xff\xff\xff"+strings.Repeat("r", k.bulk(90_000))), k.async())
		}
		sql, tag = fmt.Sprintf("SELECT a FROM t%d", id), fmt.Sprint("SELECT ", id)
	case 1:
		sql, tag = fmt.Sprintf("INSERT INTO t%d SELECT '%s'", id, strings.Repeat("v", k.size(20_000))), fmt.Sprint("INSERT 0 ", id)
	case 2:
		sql, tag = fmt.Sprintf("DELETE FROM t%d", id), fmt.Sprint("DELETE ", id)
	}
	return append(messages, pgMessage('C', tag+"\x00")), sql, tag
}

// simple is one Query of one to three statements, of which one may fail.
func (k *talk) simple() {
	if k.one(8) {
		k.answer(k.ask(pgMessage('Q', "\x00")), pgMessage('I', ""), pgMessage('Z', "I"))
		k.expect(` text="" tag="" error= answered=true`)
		return
	}
	var texts []string
	var answer [][]byte
	failed := false
	for range 1 + k.n(3) {
		id := k.id()
		messages, sql, tag := k.result(id)
		texts = append(texts, sql)
		switch {
		case failed: // the rest of the Query is not run
		case k.one(6):
			failed = true
			answer = append(answer, k.failure(id))
			k.expect("%s text=%q tag=%q error=%s answered=true", verb(sql), sql, "", sqlState(id))
		default:
			answer = append(append(answer, k.async()), messages...)
			k.expect("%s text=%q tag=%q error= answered=true", verb(sql), sql, tag)
		}
	}
	end := k.ask(pgMessage('Q', strings.Join(texts, "; ")+"\x00"))
	k.answer(end, append(answer, k.async(), pgMessage('Z', "I"), k.async())...)
}

func verb(sql string) string { return sql[:strings.IndexByte(sql, ' ')] }

// pipeline is several statements up to one Sync, answered as they are run; what
// follows an error is skipped.
func (k *talk) pipeline(named []int) {
	failed := false
	for range 1 + k.n(6) {
		id := k.id()
		messages, sql, tag := k.result(id)
		var ask [][]byte
		name, answer := "", [][]byte{pgMessage('1', "")}
		if len(named) > 0 && k.one(3) {
			id = named[k.n(len(named))]
			name, sql, tag = fmt.Sprint("s", id), preparedText(id), fmt.Sprint("UPDATE ", k.id())
			messages, answer = [][]byte{pgMessage('C', tag+"\x00")}, nil
		} else {
			ask = append(ask, pgMessage('P', "\x00"+sql+"\x00\x00\x00"))
		}
		ask = append(ask, pgMessage('B', "\x00"+name+"\x00\x00\x00\x00\x00\x00\x00"))
		answer = append(answer, pgMessage('2', ""))
		if k.one(2) {
			ask, answer = append(ask, pgMessage('D', "P\x00")), append(answer, pgMessage('n', ""))
		}
		end := k.ask(append(ask, pgMessage('E', "\x00\x00\x00\x00\x00"))...)
		switch {
		case failed:
			k.expect("%s text=%q tag=%q error= answered=false", verb(sql), sql, "")
		case k.one(8):
			failed = true
			k.answer(end, k.failure(id))
			k.expect("%s text=%q tag=%q error=%s answered=true", verb(sql), sql, "", sqlState(id))
		default:
			k.answer(end, append(append(answer, k.async()), messages...)...)
			k.expect("%s text=%q tag=%q error= answered=true", verb(sql), sql, tag)
		}
	}
	k.answer(k.ask(pgMessage('S', "")), k.async(), pgMessage('Z', "I"))
}

func preparedText(id int) string { return fmt.Sprintf("UPDATE t%d SET a = 1", id) }

// prepare is a round that executes nothing.
func (k *talk) prepare() (id int) {
	id = k.id()
	end := k.ask(pgMessage('P', fmt.Sprintf("s%d\x00%s\x00\x00\x00", id, preparedText(id))), pgMessage('D', fmt.Sprintf("Ss%d\x00", id)), pgMessage('S', ""))
	k.answer(end, pgMessage('1', ""), pgMessage('t', "\x00\x00"), pgMessage('n', ""), pgMessage('Z', "I"))
	return id
}

// copyIn sends its data once it is asked for it, or gives up.
func (k *talk) copyIn() {
	id := k.id()
	sql := fmt.Sprintf("COPY t%d FROM STDIN", id)
	k.answer(k.ask(pgMessage('Q', sql+"\x00")), pgMessage('G', "\x00\x00\x00"))
	k.wait()
	for range k.n(6) {
		k.ask(pgMessage('d', strings.Repeat("c", 1+k.bulk(70_000))))
	}
	if k.one(4) {
		k.answer(k.ask(pgMessage('f', "no\x00")), k.failure(id), pgMessage('Z', "I"))
		k.expect("COPY text=%q tag=%q error=%s answered=true", sql, "", sqlState(id))
		return
	}
	tag := fmt.Sprint("COPY ", id)
	k.answer(k.ask(pgMessage('c', "")), pgMessage('C', tag+"\x00"), k.async(), pgMessage('Z', "I"))
	k.expect("COPY text=%q tag=%q error= answered=true", sql, tag)
}

func (k *talk) functionCall() {
	end := k.ask(pgMessage('F', "\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00"))
	if id := k.id(); k.one(3) {
		k.answer(end, k.failure(id), pgMessage('Z', "I"))
		k.expect(`function_call text="" tag="" error=%s answered=true`, sqlState(id))
		return
	}
	k.answer(end, pgMessage('V', "\xff\xff\xff\xff"), pgMessage('Z', "I"))
	k.expect(`function_call text="" tag="" error= answered=true`)
}
