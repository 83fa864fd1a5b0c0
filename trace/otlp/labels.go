package otlp

import (
	"strings"

	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// Labels of metrics come from fixed lists, whatever a client sends: each new
// value would be a new time series, for ever.

const mongoCommands = `
	abortTransaction aggregate bulkWrite collMod collStats commitTransaction compact
	convertToCapped count create createIndexes createRole createSearchIndexes createUser
	dbStats delete distinct drop dropAllUsersFromDatabase dropDatabase dropIndexes dropRole
	dropSearchIndex dropUser enableSharding endSessions explain find findAndModify
	findandmodify fsync getMore getParameter grantPrivilegesToRole grantRolesToUser insert
	killCursors killSessions listCollections listDatabases listIndexes mapReduce
	moveCollection ping reIndex refineCollectionShardKey refreshSessions renameCollection
	replSetGetStatus replSetInitiate replSetReconfig replSetStepDown revokeRolesFromUser
	serverStatus setDefaultRWConcern setFeatureCompatibilityVersion setParameter
	shardCollection startSession update updateRole updateSearchIndex updateUser validate
	OP_INSERT OP_UPDATE OP_DELETE OP_QUERY OP_GET_MORE OP_KILL_CURSORS`

// The command tags of src/include/tcop/cmdtaglist.h that clients meet.
var postgresTags = []string{
	"ALTER DATABASE", "ALTER DEFAULT PRIVILEGES", "ALTER DOMAIN", "ALTER EXTENSION",
	"ALTER FUNCTION", "ALTER INDEX", "ALTER MATERIALIZED VIEW", "ALTER POLICY",
	"ALTER PUBLICATION", "ALTER ROLE", "ALTER SCHEMA", "ALTER SEQUENCE", "ALTER SUBSCRIPTION",
	"ALTER SYSTEM", "ALTER TABLE", "ALTER TYPE", "ALTER VIEW", "ANALYZE", "BEGIN", "CALL",
	"CHECKPOINT", "CLOSE CURSOR", "CLUSTER", "COMMENT", "COMMIT", "COMMIT PREPARED", "COPY",
	"CREATE DATABASE", "CREATE DOMAIN", "CREATE EXTENSION", "CREATE FUNCTION", "CREATE INDEX",
	"CREATE MATERIALIZED VIEW", "CREATE POLICY", "CREATE PROCEDURE", "CREATE PUBLICATION",
	"CREATE ROLE", "CREATE SCHEMA", "CREATE SEQUENCE", "CREATE STATISTICS",
	"CREATE SUBSCRIPTION", "CREATE TABLE", "CREATE TABLE AS", "CREATE TRIGGER", "CREATE TYPE",
	"CREATE VIEW", "DEALLOCATE", "DECLARE CURSOR", "DELETE", "DISCARD ALL", "DO",
	"DROP DATABASE", "DROP EXTENSION", "DROP FUNCTION", "DROP INDEX", "DROP MATERIALIZED VIEW",
	"DROP POLICY", "DROP PROCEDURE", "DROP PUBLICATION", "DROP ROLE", "DROP SCHEMA",
	"DROP SEQUENCE", "DROP SUBSCRIPTION", "DROP TABLE", "DROP TRIGGER", "DROP TYPE",
	"DROP VIEW", "EXECUTE", "EXPLAIN", "FETCH", "GRANT", "GRANT ROLE", "INSERT", "LISTEN",
	"LOCK TABLE", "MERGE", "MOVE", "NOTIFY", "PREPARE", "PREPARE TRANSACTION",
	"REFRESH MATERIALIZED VIEW", "REINDEX", "RELEASE", "RESET", "REVOKE", "REVOKE ROLE",
	"ROLLBACK", "ROLLBACK PREPARED", "SAVEPOINT", "SELECT", "SELECT INTO", "SET", "SHOW",
	"START TRANSACTION", "TRUNCATE TABLE", "UNLISTEN", "UPDATE", "VACUUM",
	// First keywords, where no tag came.
	"ALTER", "CREATE", "DROP", "TRUNCATE", "END", "ABORT", "DISCARD", "WITH", "VALUES", "TABLE",
	// Ours.
	"startup", "function_call",
}

func knownOperations() map[string]bool {
	known := make(map[string]bool)
	for name := range strings.FieldsSeq(mongoCommands) {
		known[name] = true
	}
	for _, tag := range postgresTags {
		known[tag] = true
	}
	return known
}

const inTransaction = "in_transaction"

// concernLabel is what a write waited for: MongoDB's w (majority, 0 to 3, n for
// more, tag, default if none was sent), PostgreSQL's commit level, unknown, or
// in_transaction. Empty for reads.
func concernLabel(f *trace.Finished) string {
	switch {
	case !f.Write:
		return ""
	case f.Deferred():
		return inTransaction
	case f.Mongo.WriteConcern.Source == wire.UnknownConcern:
		return wire.UnknownConcern
	case f.Protocol == wire.MongoDB:
		return wLabel(f.Mongo.WriteConcern.W)
	}
	switch level := f.Postgres.SynchronousCommit; level {
	case "on", "off", "local", "remote_write", "remote_apply":
		return level
	}
	return "unknown"
}

func wLabel(w string) string {
	switch w {
	case "":
		return "default"
	case "majority", "0", "1", "2", "3":
		return w
	}
	for _, c := range w {
		if c < '0' || c > '9' {
			return "tag"
		}
	}
	return "n"
}

func outcomeLabel(f *trace.Finished) string {
	switch {
	case f.Missing():
		return errorNoReply
	case f.Failed():
		return "error"
	case f.Unreplicated():
		return "committed_not_replicated"
	case f.NoReply:
		return "unacknowledged"
	}
	return "ok"
}
