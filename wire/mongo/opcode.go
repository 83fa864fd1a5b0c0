package mongo

import "strconv"

// Opcodes (mongo/src/mongo/rpc/message.h; the legacy ones left the server in
// 5.1, OP_COMMAND in 4.2).
const (
	opReply          = 1
	opMsgLegacy      = 1000 // a plain string
	opUpdate         = 2001
	opInsert         = 2002
	opReserved       = 2003
	opQuery          = 2004
	opGetMore        = 2005
	opDelete         = 2006
	opKillCursors    = 2007
	opCommand        = 2010
	opCommandReply   = 2011
	opCompressed     = 2012
	opMsg            = 2013
	opSessionHandoff = 2014 // between a server's front process and the server
)

func opName(op int32) string {
	switch op {
	case opReply:
		return "OP_REPLY"
	case opMsgLegacy:
		return "OP_MSG_LEGACY"
	case opUpdate:
		return "OP_UPDATE"
	case opInsert:
		return "OP_INSERT"
	case opReserved:
		return "OP_RESERVED"
	case opQuery:
		return "OP_QUERY"
	case opGetMore:
		return "OP_GET_MORE"
	case opDelete:
		return "OP_DELETE"
	case opKillCursors:
		return "OP_KILL_CURSORS"
	case opCommand:
		return "OP_COMMAND"
	case opCommandReply:
		return "OP_COMMANDREPLY"
	case opCompressed:
		return "OP_COMPRESSED"
	case opMsg:
		return "OP_MSG"
	case opSessionHandoff:
		return "dbSessionHandoff"
	}
	return strconv.Itoa(int(op))
}

func knownOp(op int32) bool {
	return op == opReply || op == opMsgLegacy ||
		op >= opUpdate && op <= opKillCursors ||
		op >= opCommand && op <= opSessionHandoff
}

// answered reports whether the server replies to a request with this opcode,
// flags allowing.
func answered(op int32) bool {
	switch op {
	case opQuery, opGetMore, opCommand, opMsg, opCompressed:
		return true
	}
	return false
}

// OP_MSG flags (specifications/source/message/OP_MSG.md). The low 16 bits are
// required: a bit that is not known there changes what the message means.
const (
	flagChecksum   = 1 << 0
	flagMoreToCome = 1 << 1
	flagsUnknown   = 0xffff &^ (flagChecksum | flagMoreToCome)
)

// moreToCome reports the flag, unless the flags as a whole cannot be trusted.
func moreToCome(flags uint32) bool {
	return flags&flagMoreToCome != 0 && flags&flagsUnknown == 0
}
