package wire

// Inspector is a Session whose messages can be judged before they are forwarded,
// and that can make up messages of its protocol. Whoever inspects calls, for each
// direction's bytes, FrameOne and Decode of that piece, and decides what becomes
// of a message once its last piece is decoded. The other direction is followed
// in the same way, for what is left out or put in must keep both in step:
//
//	request --> Asked, CanRefuse, Refuse --> forwarded, replaced or left out
//	                                   |
//	reply made up <-- Turn? -----------+     fed to FrameOne and Decode like the
//	                                         server's own, when its turn has come
//	reply ----> Acknowledged, CanFail, Fail --> forwarded, replaced, or the end
//
// The two modes may alternate: Frame is FrameOne until no bytes are left.
type Inspector interface {
	Session
	// FrameOne is Frame of one piece at most: of the bytes b it takes the first
	// Piece.Len.
	FrameOne(dir Direction, b []byte, now Stamp) Piece
	// Monitors reports whether the protocol has connections that do nothing but
	// watch the server.
	Monitors() bool
	// Asked is what the message to the server asks for that Decode was given last,
	// whole or not. It's valid until the next call of Decode.
	Asked() Asked
	// CanRefuse says what keeps that request from being refused; Applies: nothing.
	CanRefuse(f *Failure) Reason
	// Refuse says what to do to refuse that request, for which CanRefuse found no
	// obstacle. The session expects that it's done.
	Refuse(f *Failure) Refusal
	// Turn reports whether what was made up to answer an exchange may go into the
	// stream to the client now, which stands between two messages.
	Turn(x *Exchange) bool
	// Acknowledged are the exchanges that the message to the client, of which
	// Decode was given the last piece, says the success or failure of. They're
	// valid until its bytes have departed.
	Acknowledged() []Acknowledgement
	// CanFail says what keeps that message from being replaced by an error.
	CanFail(x *Exchange, f *Failure) Reason
	// Fail appends to out what to send instead of the message, of which bytes is
	// the whole.
	Fail(x *Exchange, f *Failure, bytes, out []byte) []byte
	// Removing reports that messages are still to come from the server of which
	// the pieces will say Remove.
	Removing() bool
}

// Rewriter is an Inspector that changes messages to the client by itself,
// whatever rules there are (a hello reply's names).
type Rewriter interface {
	Inspector
	// Rewriting reports whether any message may have to be changed.
	Rewriting() bool
	// Rewrites reports whether the messages that answer x may have to be: they are
	// kept back until they are whole.
	Rewrites(x *Exchange) bool
	// Rewrite appends to out what to send instead of a whole message that answers
	// x. False: it's to pass as it is.
	Rewrite(x *Exchange, bytes, out []byte) ([]byte, bool)
}

// Asked is a request at the moment at which it's known what it asks for.
type Asked struct {
	// Exchange is nil if the message asks for nothing by itself.
	Exchange *Exchange
	// Known: nothing that is still to come of the message changes what it's
	// matched by.
	Known bool
	// Keywords are the first words of the statements of a PostgreSQL Query with
	// more than one; of others the Exchange has the one.
	Keywords []string
}

// Acknowledgement is an exchange of which a message tells how it went.
type Acknowledgement struct {
	Exchange *Exchange
	// Obstacle is why the message is no acknowledgement that can be lost or
	// replaced; Applies: it is one.
	Obstacle Reason
}

// Refusal is what is done to refuse a request.
type Refusal struct {
	// Forward goes to the server in the request's place; empty: nothing does.
	Forward []byte
	// Answer goes to the client when it's the exchange's turn; empty: the server
	// answers what was forwarded, or nobody does.
	Answer []byte
	// Cut: the connection ends behind Answer, and nothing more goes to the server.
	Cut bool
}

// Failure is an error that is told to a client as if by its server.
type Failure struct {
	Code    string // MongoDB's number, or a SQLSTATE
	Message string // empty: the server's own, if it's known
	// Rule is named in the message where there's no other.
	Rule string
	// ConcernError (MongoDB): a writeConcernError beside the server's own reply.
	ConcernError bool
	// Labels (MongoDB); nil: as a server would.
	Labels []string
	// Fatal (PostgreSQL).
	Fatal bool
}

// Reason is why something that was asked for can't be done to a message, which
// then passes as it is.
type Reason uint8

// The reasons. Applies is none.
const (
	Applies Reason = iota
	// TooLarge: too much of the message had passed before it was known what it
	// asks for, or whether it succeeded.
	TooLarge
	// ReplyFailed: the server's own answer is an error, so nothing was done.
	ReplyFailed
	// InBlock: a statement inside a transaction block isn't acknowledged before
	// its COMMIT.
	InBlock
	// InCopy: COPY data are under way.
	InCopy
	// NoSuchReply: this kind of message has no such reply, or not such a code.
	NoSuchReply
	// Unread: the message could not be read.
	Unread
	// NoReplyDue: none is expected (w: 0).
	NoReplyDue
	NumReasons
)

var reasonNames = [NumReasons]string{
	"", "too_large", "reply_failed", "in_block", "in_copy", "no_such_reply", "unread", "no_reply",
}

// String is the reason's name, as it's counted: "in_block".
func (r Reason) String() string {
	if r < NumReasons {
		return reasonNames[r]
	}
	return "other"
}
