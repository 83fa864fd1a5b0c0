package mongo

import "bytes"

// The opcodes from before OP_MSG. OP_QUERY is still how drivers say their
// first hello (mongo-go-driver v2, x/mongo/driver/operation.go, isLegacyHandshake).

// OP_REPLY's responseFlags.
const (
	replyCursorNotFound = 1 << 0
	replyQueryFailure   = 1 << 1
)

func (b *body) legacyHead() status {
	if _, st := b.take(4); st != done {
		return st
	}
	b.step = (*body).namespace
	return going
}

func (b *body) namespace() status {
	ns, st := b.name(maxNamespace, b.limit)
	if st != done {
		return st
	}
	db, coll, _ := bytes.Cut(ns, []byte{'.'})
	command := b.op == opQuery && string(coll) == "$cmd"
	b.request.namespace(db, coll, command)
	switch b.op {
	case opQuery:
		if !command {
			break
		}
		if b.limit-b.pos < 8 {
			return failed
		}
		b.discard(8) // numberToSkip, numberToReturn
		b.scan.start(inCommand, b.limit)
		b.step = (*body).lastDocument
		return going
	case opInsert:
		b.counted = true
		b.step = (*body).insertDocument
		return going
	case opUpdate, opDelete:
		b.request.batch = 1
	}
	return done
}

func (b *body) insertDocument() status {
	if b.pos == b.limit {
		return done
	}
	return b.stepOverDocument(b.limit)
}

// replyHead reads flags, cursor, startingFrom and numberReturned of OP_REPLY.
func (b *body) replyHead() status {
	v, st := b.take(20)
	if st != done {
		return st
	}
	flags, n := le32(v), le32(v[16:])
	if !b.reply.legacy(flags) || n < 1 || b.pos == b.limit {
		return done
	}
	b.scan.start(inReply, b.limit)
	b.step = (*body).lastDocument
	return going
}

// OP_COMMAND: database, command, arguments, metadata, documents
// (the order of mongo 3.4's rpc/command_request.cpp).

func (b *body) commandDatabase() status {
	v, st := b.name(maxNamespace, b.limit)
	if st != done {
		return st
	}
	b.request.database(v)
	b.step = (*body).commandName
	return going
}

func (b *body) commandName() status {
	v, st := b.name(maxNamespace, b.limit)
	if st != done {
		return st
	}
	b.request.name(v)
	b.scan.start(inCommand, b.limit)
	b.step = (*body).lastDocument
	return going
}
