package mongo

// Reasons that Options.Trouble is given.
const (
	troubleShort      = "short"             // the message ends before its contents do
	troubleBSON       = "bson"              // a length inside lies, or a type is unknown
	troubleFlags      = "flags"             // a required flag bit that nobody has defined
	troubleChecksum   = "checksum"          // no room for the checksum that is announced
	troubleSections   = "sections"          // none of kind 0, or two
	troubleKind       = "section_kind"      // not known: its length can't be either
	troubleDirection  = "direction"         // a reply's opcode from the client, or the reverse
	troubleCompressor = "compressor"        // its id is not known
	troubleSize       = "compressed_size"   // the declared size can't be
	troubleBomb       = "compressed_bomb"   // more comes out than was declared
	troubleCompressed = "compressed"        // can't be inflated
	troubleCut        = "compressed_cut"    // what matters lies behind what we inflate
	troubleBudget     = "compressed_budget" // Options.Inflate has no room
)

const (
	maxNamespace  = 1024
	maxIdentifier = 64
	maxTelemetry  = 4096 // telemetry_context_section.idl
)

// body walks a message's body as it comes: what lies between the header and
// the documents. The documents are the scanner's.
type body struct {
	source
	scan    scanner
	visitor visitor
	request *request // nil if it's a reply
	reply   *reply   // nil if it's a request
	op      int32    // 0 while not known (compressed, and not inflated)
	flags   uint32   // OP_MSG
	limit   int      // where sections must end
	step    func(*body) status
	over    bool // nothing more is to be read
	whole   bool // the command or the reply was read to its end
	cut     bool // only the start of the body will come
	trouble string

	seqEnd  int  // of the document sequence
	counted bool // its documents are the batch
}

// begin makes ready for a body of n bytes.
func (b *body) begin(op int32, n int, req *request, rep *reply) {
	b.op, b.limit, b.request, b.reply = op, n, req, rep
	b.over = false
	if req != nil {
		b.visitor = req
		b.beginRequest()
	} else {
		b.visitor = rep
		b.beginReply()
	}
}

func (b *body) beginRequest() {
	switch b.op {
	case opMsg:
		b.step = (*body).msgFlags
	case opQuery, opInsert, opUpdate, opDelete, opGetMore:
		b.request.legacy(b.op)
		b.step = (*body).legacyHead
	case opCommand:
		b.step = (*body).commandDatabase
	case opReply, opCommandReply:
		b.request.legacy(b.op)
		b.fail(troubleDirection)
	default:
		b.request.legacy(b.op)
		b.over = true
	}
}

func (b *body) beginReply() {
	switch b.op {
	case opMsg:
		b.step = (*body).msgFlags
	case opReply:
		b.step = (*body).replyHead
	case opCommandReply:
		b.scan.start(inReply, b.limit)
		b.step = (*body).lastDocument
	default:
		b.fail(troubleDirection)
	}
}

// feed reads on in the bytes that follow.
func (b *body) feed(in []byte) {
	b.in = in
	for !b.over {
		st := b.step(b)
		if st == hungry {
			break
		}
		switch st {
		case done:
			b.over = true
		case failed:
			b.fail(troubleBSON)
		}
	}
	b.in = nil
}

// end says that no more bytes will come; cut: though there should be.
func (b *body) end(cut bool) {
	switch {
	case b.over || cut || b.op == 0:
	case !b.cut:
		b.fail(troubleShort)
	case !b.whole:
		b.fail(troubleCut)
	}
}

// complete reports whether all that was to be read was.
func (b *body) complete() bool { return b.over && b.trouble == "" }

func (b *body) reset() {
	src := b.source
	src.reset()
	*b = body{source: src, over: true}
}

func (b *body) note(reason string) {
	if b.trouble == "" {
		b.trouble = reason
	}
}

func (b *body) fail(reason string) {
	b.note(reason)
	b.over = true
}

// take takes n bytes, valid until the next call.
func (b *body) take(n int) ([]byte, status) {
	if n > b.limit-b.pos {
		return nil, failed
	}
	v, ok := b.need(n)
	if !ok {
		return nil, hungry
	}
	b.consume(n)
	return v, done
}

// name takes a NUL-terminated string that ends by position end.
func (b *body) name(limit, end int) ([]byte, status) {
	room := end - 1 - b.pos
	if room < 0 {
		return nil, failed
	}
	return b.cstring(min(room, limit))
}

func (b *body) root() node {
	if b.request != nil {
		return inCommand
	}
	return inReply
}

// lastDocument scans the document after which nothing is of interest.
func (b *body) lastDocument() status {
	st := b.scan.run(&b.source, b.visitor)
	b.whole = st == done
	return st
}
