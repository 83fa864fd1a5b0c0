package postgres

// action is what a statement does to the state that a session follows.
type action uint8

const (
	actNone action = iota
	actBegin
	actCommit
	actRollback
	actRollbackTo
	actSavepoint
	actRelease
	actSet      // synchronous_commit, for the session
	actSetLocal // for the transaction
	actReset    // to what the session began with
	actObscure  // it may have changed the level, to what can't be read
	actDiscardAll
	actPrepare
	actExecute
	actDeallocate
	actDeallocateAll
	actDeclare
)

// statement is what was read of one SQL statement. It's not changed once its
// script is made, but for used.
type statement struct {
	keyword      string // the first one, upper case; interned
	summary      string // "INSERT orders"; empty if no target was found
	text         string // as Options.Text says
	act          action
	name         string // of a savepoint, a prepared statement, a cursor
	level        string // of actSet and actSetLocal
	writes       bool   // by its words: it may change data
	hides        bool   // it writes, but its command tag is that of a read
	function     bool   // it's a function of large objects that writes
	chain        bool   // COMMIT AND CHAIN
	hold         bool   // DECLARE ... WITH HOLD
	concurrently bool   // an index made, dropped, a partition detached: by itself
	params       bool   // it has parameters
	inner        *statement
	parent       string // its comment's traceparent
	used         bool   // parent was given to an exchange
}

// basis is how it's known that a statement writes whose tag doesn't say so.
func (st *statement) basis() string {
	if st.function {
		return "function"
	}
	return "keyword"
}

// script is the statements of one Query or Parse.
type script struct {
	stmts []statement
}

// at is the statement of the n-th result; nil if there is none.
func (s *script) at(n int) *statement {
	if s == nil || n >= len(s.stmts) {
		return nil
	}
	return &s.stmts[n]
}

// writers are the first words of statements and of command tags that may change
// data. COPY is one when it reads from the client (facts of the reply tell).
// ALTER SYSTEM writes a file and no WAL that a commit waits for.
var writers = map[string]bool{
	"INSERT": true, "UPDATE": true, "DELETE": true, "MERGE": true, "TRUNCATE": true,
	"CREATE": true, "DROP": true, "ALTER": true, "COMMENT": true, "GRANT": true, "REVOKE": true,
	"REINDEX": true, "CLUSTER": true, "REFRESH": true, "IMPORT": true, "SECURITY": true,
	"REASSIGN": true, "CALL": true, "DO": true,
}

// writeTag reports whether a command tag without its numbers is that of a
// write (https://www.postgresql.org/docs/current/protocol-message-formats.html,
// CommandComplete; which of them wait for their commit was measured).
func writeTag(tag string, copyIn bool) bool {
	switch tag {
	case "":
		return false
	case "COPY":
		return copyIn
	case "ALTER SYSTEM":
		return false
	case "PREPARE TRANSACTION", "COMMIT PREPARED", "ROLLBACK PREPARED":
		return true
	}
	return writers[firstWord(tag)]
}

// commitsAlone reports whether what has that tag runs in no transaction block
// and commits at once, even in a pipeline (PreventInTransactionBlock in
// src/backend/access/transam/xact.c).
func commitsAlone(tag string, st *statement) bool {
	switch tag {
	case "CREATE DATABASE", "DROP DATABASE", "CREATE TABLESPACE", "DROP TABLESPACE", "COMMIT PREPARED", "ROLLBACK PREPARED":
		return true
	}
	return st != nil && st.concurrently
}

func firstWord(tag string) string {
	for i := range len(tag) {
		if tag[i] == ' ' {
			return tag[:i]
		}
	}
	return tag
}

// levelOf is the name of a value of synchronous_commit; false if it has none
// (src/backend/access/transam/xact.c, synchronous_commit_options).
func levelOf(v []byte) (string, bool) {
	switch foldASCII(v) {
	case "on", "true", "yes", "1":
		return "on", true
	case "off", "false", "no", "0":
		return "off", true
	case "local":
		return "local", true
	case "remote_write":
		return "remote_write", true
	case "remote_apply":
		return "remote_apply", true
	}
	return "", false
}

func foldASCII(b []byte) string {
	low := make([]byte, len(b))
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		low[i] = c
	}
	return string(low)
}
