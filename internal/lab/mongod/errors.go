package mongod

import (
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// commandError is an error reply: numbers and names as in the server's
// src/mongo/base/error_codes.yml.
type commandError struct {
	code    int32
	name    string
	message string
	details bson.D // further fields: keyPattern, keyValue
}

func (e *commandError) Error() string { return e.message }

func badValue(format string, args ...any) error {
	return &commandError{code: 2, name: "BadValue", message: fmt.Sprintf(format, args...)}
}

func failedToParse(format string, args ...any) error {
	return &commandError{code: 9, name: "FailedToParse", message: fmt.Sprintf(format, args...)}
}

// notImplemented refuses what a server could do and this one can't, so that
// nobody takes a wrong answer for a server's.
func notImplemented(what string) error {
	return &commandError{code: 238, name: "NotImplemented", message: what + " isn't part of this lab"}
}

func commandNotFound(name string) error {
	return &commandError{code: 59, name: "CommandNotFound", message: fmt.Sprintf("no such command: '%s'", name)}
}

// Codes that say that a member's state is in the way. Drivers look for another
// primary (server-discovery-and-monitoring.md, "Not writable primary" and "Node
// is recovering").
const (
	codePrimarySteppedDown = 189
	codeNotWritablePrimary = 10107
	codeNotSecondaryOk     = 13435
)

func notWritablePrimary() *commandError {
	return &commandError{code: codeNotWritablePrimary, name: "NotWritablePrimary", message: "not primary"}
}

// retriable are the codes after which a retryable write may be sent again
// (src/mongo/base/error_codes.yml, category RetriableError).
var retriable = []int32{6, 7, 89, 91, codePrimarySteppedDown, 262, 9001, codeNotWritablePrimary,
	11600, 11602, codeNotSecondaryOk, 13436}

func isRetriable(code int32) bool { return slices.Contains(retriable, code) }

func asCommandError(err error) *commandError {
	var c *commandError
	if errors.As(err, &c) {
		return c
	}
	return &commandError{code: 1, name: "InternalError", message: err.Error()}
}

func errorReply(c *commandError) bson.D {
	d := bson.D{{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: c.message}, {Key: "code", Value: c.code}, {Key: "codeName", Value: c.name}}
	return append(d, c.details...)
}
