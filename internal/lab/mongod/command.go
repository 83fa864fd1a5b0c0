package mongod

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// handler runs a command and returns its reply without ok.
type handler func(*Server, *request) (bson.D, error)

// commands by name. What isn't here the server doesn't know.
var commands = map[string]handler{
	"hello": (*Server).hello, "isMaster": (*Server).hello, "ismaster": (*Server).hello, "_isSelf": isSelf,
	"ping": ping, "buildInfo": buildInfo, "buildinfo": buildInfo, "connectionStatus": connectionStatus,
	"getCmdLineOpts": getCmdLineOpts, "getParameter": getParameter, "getLog": getLog, "hostInfo": hostInfo,
	"whatsmyuri": whatsMyURI, "endSessions": (*Server).endSessions, "serverStatus": serverStatus,
	"getDefaultRWConcern": getDefaultRWConcern,

	"insert": writing(insertCommand), "update": writing(updateCommand), "delete": writing(deleteCommand),
	"findAndModify": writing(findAndModify), "findandmodify": writing(findAndModify), "bulkWrite": writing(bulkWrite),
	"find": (*Server).find, "getMore": (*Server).getMore, "killCursors": (*Server).killCursors,
	"aggregate": (*Server).aggregate, "count": (*Server).count,

	"create": writing(createCommand), "drop": writing(dropCommand), "dropDatabase": writing(dropDatabaseCommand),
	"createIndexes": writing(createIndexes), "listIndexes": (*Server).listIndexes,
	"listCollections": (*Server).listCollections, "listDatabases": (*Server).listDatabases,

	"replSetGetStatus": replSetGetStatus, "replSetGetConfig": replSetGetConfig, "replSetGetRBID": replSetGetRBID,
	"replSetHeartbeat": (*Server).replSetHeartbeat, "replSetUpdatePosition": (*Server).updatePosition,
	"replSetRequestVotes": (*Server).replSetRequestVotes,
	"replSetStepDown":     (*Server).replSetStepDown, "replSetStepUp": (*Server).replSetStepUp,
}

// legacyAllowed are the commands that a server still takes as OP_QUERY
// (src/mongo/rpc/check_allowed_op_query_cmd.cpp).
func legacyAllowed(name string) bool {
	switch name {
	case "hello", "isMaster", "ismaster", "buildInfo", "buildinfo", "_isSelf":
		return true
	}
	return false
}

// dispatch checks what holds for every command and runs it.
func (s *Server) dispatch(q *request) (bson.D, error) {
	s.counters.count(q.Name)
	run := commands[q.Name]
	if run == nil {
		return nil, commandNotFound(q.Name)
	}
	if q.Database == "" {
		return nil, &commandError{code: 40571, name: "Location40571", message: "OP_MSG requests require a $db argument"}
	}
	if q.legacy && !legacyAllowed(q.Name) {
		return nil, &commandError{code: 352, name: "UnsupportedOpQueryCommand",
			message: fmt.Sprintf("Unsupported OP_QUERY command: %s", q.Name)}
	}
	if _, err := q.body.LookupErr("autocommit"); err == nil {
		return nil, notImplemented("a transaction")
	}
	return run(s, q)
}

// checkWritable refuses a write on a member that isn't primary. Server.mu is
// held.
func (s *Server) checkWritable(q *request) error {
	switch {
	case s.set == nil:
		return nil
	case q.Database == "local":
		return notImplemented("a write to the database local")
	case !s.set.writable:
		return notWritablePrimary()
	}
	return nil
}
