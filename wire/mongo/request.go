package mongo

import "github.com/wirewait/wirewait/wire"

// Places in documents: what is looked into, and what is read.
const (
	nowhere node = iota

	inCommand
	inSession
	inComment
	inClient
	inApplication
	inDriver
	inBatch
	inPipeline
	inStage
	inOut
	inTelemetry
	inOtel
	atCollection
	atDatabase
	atConcern
	atSessionID
	atTxnNumber
	atAutocommit
	atComment
	atTelemetry
	atExplain
	atApplication
	atDriver
	atDriverVersion
	atUser
	atMember

	inReply
	inOpTime
	inWriteErrors
	inWriteError
	inConcernError
	inLastError
	atOK
	atCode
	atN
	atNModified
	atNCounted
	atNErrors
	atOpTimeOnly
	atOpTimeTS
	atOpTimeT
	atOperationTime
	atWriteErrorCode
	atConcernCode
	atLastErrorN
	atConnectionID
	atMaxWire
	atSetName
)

// request reads what a command says and puts it into its exchange.
type request struct {
	s     *session
	call  *call
	x     *wire.Exchange
	named bool // the command's name is known
	valid bool // the write concern could be read
	batch int
	query bool // of OP_QUERY: the command may be wrapped

	concern   bool // a writeConcern field
	output    bool // $out, $merge, mapReduce's out
	explain   bool
	commented bool // the traceparent is the comment's

	application, driver, version, user string

	positions // of replSetUpdatePosition and replSetHeartbeat
}

func (r *request) begin(s *session, c *call) {
	*r = request{s: s, call: c, x: c.x, valid: true}
}

// name takes the command's name.
func (r *request) name(v []byte) {
	r.named = true
	r.x.Operation = r.s.strings.text(v)
	r.x.Mongo.Monitor = monitors(r.x.Operation)
}

func (r *request) database(v []byte) { r.x.Database = r.s.strings.text(v) }

// legacy takes a message that is known by its opcode.
func (r *request) legacy(op int32) { r.x.Operation = opName(op) }

// namespace takes the database and collection of a legacy opcode; command: the
// collection stands for the database's commands, and one follows.
func (r *request) namespace(db, coll []byte, command bool) {
	r.database(db)
	if command {
		r.x.Operation, r.query = "", true
		return
	}
	r.x.Collection = r.s.strings.text(coll)
	r.call.plain = r.x.Operation == opName(opQuery) || r.x.Operation == opName(opGetMore)
}

// element implements visitor.
func (r *request) element(at node, nth int, key []byte, typ byte) (node, action) {
	if at >= inOptimes {
		return r.positions.element(at, key, typ)
	}
	switch at {
	case inCommand:
		if nth == 0 {
			return r.first(key, typ)
		}
		return r.argument(key, typ)
	case inBatch:
		r.batch++
	case inPipeline:
		return inStage, descend
	case inStage:
		r.output = r.output || nth == 0 && (string(key) == "$out" || string(key) == "$merge")
	case inOut:
		r.output = r.output || nth == 0 && string(key) != "inline"
	case inSession:
		return want(key, typ, "id", typeBinary, atSessionID)
	case inComment:
		return want(key, typ, "traceparent", typeString, atComment)
	case inTelemetry:
		if string(key) == "otel" {
			return inOtel, descend
		}
	case inOtel:
		return want(key, typ, "traceparent", typeString, atTelemetry)
	default:
		return r.metadata(at, key, typ)
	}
	return nowhere, skip
}

// want collects the one key of this type.
func want(key []byte, typ byte, name string, t byte, n node) (node, action) {
	if typ == t && string(key) == name {
		return n, collect
	}
	return nowhere, skip
}

// first takes a command's first element: its name and, for most, the
// collection. A legacy query may be wrapped, {$query: command, ...}.
func (r *request) first(key []byte, typ byte) (node, action) {
	if r.query && !r.named && typ == typeDocument && (string(key) == "$query" || string(key) == "query") {
		return inCommand, descend
	}
	if !r.named {
		r.name(key)
	}
	if typ == typeString && namesCollection(r.x.Operation) {
		return atCollection, collect
	}
	return nowhere, skip
}

// argument takes a field of the command.
func (r *request) argument(key []byte, typ byte) (node, action) {
	switch string(key) {
	case "$db":
		return want(key, typ, "$db", typeString, atDatabase)
	case "writeConcern":
		r.concern = r.concern || typ == typeDocument
		return want(key, typ, "writeConcern", typeDocument, atConcern)
	case "lsid":
		return inSession, descend
	case "txnNumber":
		return atTxnNumber, collect
	case "autocommit":
		return want(key, typ, "autocommit", typeBool, atAutocommit)
	case "comment":
		if typ == typeString {
			return atComment, collect
		}
		return inComment, descend
	case "documents", "updates", "deletes", "ops":
		return inBatch, descend
	}
	return r.special(key, typ)
}

// special takes what means something in some commands only.
func (r *request) special(key []byte, typ byte) (node, action) {
	op := r.x.Operation
	switch string(key) {
	case "collection":
		if op == "getMore" {
			return want(key, typ, "collection", typeString, atCollection)
		}
	case "pipeline":
		if op == "aggregate" {
			return inPipeline, descend
		}
	case "explain":
		return want(key, typ, "explain", typeBool, atExplain)
	case "out":
		if isMapReduce(op) {
			r.output = r.output || typ == typeString
			return inOut, descend
		}
	case "client":
		if isHello(op) {
			return inClient, descend
		}
	case "hostInfo":
		if isHello(op) {
			return r.member(key, typ, "hostInfo")
		}
	case "from":
		if op == "replSetHeartbeat" {
			return r.member(key, typ, "from")
		}
	case "saslSupportedMechs":
		if isHello(op) {
			return want(key, typ, "saslSupportedMechs", typeString, atUser)
		}
	case "internalClient":
		r.s.between = r.s.between || isHello(op)
	case "optimes", "fromId", "primaryId", "configVersion":
		return r.standing(op, key, typ)
	}
	return nowhere, skip
}

// member takes what a member of a replica set calls itself, if anybody asks:
// hostInfo of its hello (src/mongo/client/async_client.cpp), from of its
// heartbeats (src/mongo/db/repl/repl_set_heartbeat_args_v1.cpp).
func (r *request) member(key []byte, typ byte, name string) (node, action) {
	if r.s.options.Member == nil && !r.s.open.WantsReports() {
		return nowhere, skip
	}
	return want(key, typ, name, typeString, atMember)
}

func (r *request) tellMember(name string) {
	if !isHello(r.x.Operation) {
		r.host = name
	}
	switch {
	case r.s.options.Member == nil:
	case name == "": // a member that has no configuration yet
	case isHello(r.x.Operation):
		r.s.options.Member(name, "host_info")
	default:
		r.s.options.Member(name, "heartbeat")
	}
}

// metadata takes what a client says of itself in its first hello.
func (r *request) metadata(at node, key []byte, typ byte) (node, action) {
	switch at {
	case inClient:
		switch string(key) {
		case "application":
			return inApplication, descend
		case "driver":
			return inDriver, descend
		}
	case inApplication:
		return want(key, typ, "name", typeString, atApplication)
	case inDriver:
		if string(key) == "version" {
			return want(key, typ, "version", typeString, atDriverVersion)
		}
		return want(key, typ, "name", typeString, atDriver)
	}
	return nowhere, skip
}

// value implements visitor.
func (r *request) value(n node, typ byte, v []byte) {
	text := &r.s.strings
	if n >= inOptimes {
		r.positions.value(n, typ, v, text)
		return
	}
	switch n {
	case atCollection:
		r.x.Collection = text.text(v)
	case atDatabase:
		r.x.Database = text.text(v)
	case atConcern:
		r.valid = readConcern(&r.x.Mongo.WriteConcern, v, text)
	case atSessionID:
		r.x.Mongo.LSID = r.s.lsid.text(v)
	case atTxnNumber:
		r.x.Mongo.TxnNumber, r.x.Mongo.HasTxnNumber = number(typ, v)
	case atAutocommit:
		r.x.Mongo.InTransaction = v[0] == 0
	case atExplain:
		r.explain = v[0] != 0
	case atComment:
		if validTraceparent(v) {
			r.x.Traceparent, r.commented = string(v), true
		}
	case atTelemetry:
		// The application's own word goes before the driver's.
		if validTraceparent(v) && !r.commented {
			r.x.Traceparent = string(v)
		}
	case atApplication:
		r.application = metadataText(v)
	case atDriver:
		r.driver = metadataText(v)
	case atDriverVersion:
		r.version = metadataText(v)
	case atUser:
		r.user = afterDot(v)
	case atMember:
		r.tellMember(metadataText(v))
	}
}
