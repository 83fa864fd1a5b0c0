package mongo

import "github.com/wirewait/wirewait/wire"

const (
	writeConcernTimeout = 64
	noSuchTransaction   = 251
	// wireLabels is the version from which servers give RetryableWriteError
	// themselves and drivers no longer do (4.4; specifications/source/
	// retryable-writes/retryable-writes.md).
	wireLabels = 9
)

// codeNames are the names of error codes that servers and drivers act on
// (mongo/src/mongo/base/error_codes.yml).
var codeNames = map[int32]string{
	1: "InternalError", 6: "HostUnreachable", 7: "HostNotFound", 9: "FailedToParse", 13: "Unauthorized",
	17: "ProtocolError", 24: "LockTimeout", 43: "CursorNotFound", 50: "MaxTimeMSExpired", 59: "CommandNotFound",
	64: "WriteConcernFailed", 72: "InvalidOptions", 79: "UnknownReplWriteConcern", 89: "NetworkTimeout",
	91: "ShutdownInProgress", 112: "WriteConflict", 135: "StaleTerm", 189: "PrimarySteppedDown",
	225: "TransactionTooOld", 251: "NoSuchTransaction", 256: "TransactionCommitted", 262: "ExceededTimeLimit",
	263: "OperationNotSupportedInTransaction", 279: "ClientDisconnect", 365: "TemporarilyUnavailable",
	9001: "SocketException", 10058: "LegacyNotPrimary", 10107: "NotWritablePrimary", 10334: "BSONObjectTooLarge",
	11000: "DuplicateKey", 11600: "InterruptedAtShutdown", 11601: "Interrupted",
	11602: "InterruptedDueToReplStateChange", 13435: "NotPrimaryNoSecondaryOk", 13436: "NotPrimaryOrSecondary",
}

// messages are the server's own texts for some of them
// (mongo/src/mongo/db/repl/replication_coordinator_impl.cpp).
var messages = map[int32]string{
	64:    "waiting for replication timed out",
	10107: "not primary",
	189:   "Primary stepped down while waiting for replication",
}

// messageOf is the text of an error. It names the rule, so that nobody looks for
// the cause in the server.
func messageOf(f *wire.Failure, code int32) string {
	if f.Message != "" {
		return f.Message
	}
	if m := messages[code]; m != "" {
		return m + " (wirewait rule " + f.Rule + ")"
	}
	return "injected by wirewait rule " + f.Rule
}

// retryable are the codes for which a write may be tried again
// (mongo/src/mongo/db/error_labels.cpp).
var retryable = map[int32]bool{
	6: true, 7: true, 89: true, 91: true, 189: true, 262: true, 317: true, 358: true, 9001: true, 10107: true,
	11600: true, 11602: true, 13435: true, 13436: true, 50915: true,
}

// transient are those for which, beside the retryable ones, a whole transaction
// may be: WriteConflict, LockTimeout, snapshot errors, NoSuchTransaction.
var transient = map[int32]bool{112: true, 24: true, 246: true, 239: true, noSuchTransaction: true}

// labels are the error labels that a server would give: RetryableWriteError only
// from 4.4 on, before which the driver adds it itself.
func (s *session) labels(x *wire.Exchange, code int32, concern bool) []string {
	m := &x.Mongo
	ends := x.Operation == "commitTransaction" || x.Operation == "abortTransaction"
	switch {
	case m.InTransaction && !ends:
		if transient[code] || retryable[code] {
			return []string{"TransientTransactionError"}
		}
	case ends && code == noSuchTransaction && !concern:
		return []string{"TransientTransactionError"}
	case (m.HasTxnNumber || ends) && retryable[code] && (s.maxWire == 0 || s.maxWire >= wireLabels):
		return []string{"RetryableWriteError"}
	}
	return nil
}
