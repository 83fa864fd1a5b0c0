package mongo

// writes reports whether a command of this name may change data without more
// being known of it: the CRUD, transaction and DDL commands that take a write
// concern (mongo/jstests/libs/write_concern_all_commands.js). Others count as
// writes if they carry one.
func writes(command string) bool {
	switch command {
	case "insert", "update", "delete", "findAndModify", "findandmodify", "bulkWrite",
		"commitTransaction", "abortTransaction", "coordinateCommitTransaction", "prepareTransaction",
		"testInternalTransactions",
		"create", "createIndexes", "drop", "dropDatabase", "dropIndexes", "deleteIndexes", "collMod",
		"convertToCapped", "cloneCollectionAsCapped", "renameCollection", "applyOps", "appendOplogNote":
		return true
	}
	return false
}

// mayOutput reports whether a command writes if it names a place for its
// results: a pipeline's $out or $merge, mapReduce's out.
func mayOutput(command string) bool {
	return command == "aggregate" || isMapReduce(command)
}

func isMapReduce(command string) bool {
	return command == "mapReduce" || command == "mapreduce"
}

// monitors reports whether a command is of the conversation by which drivers
// and members watch each other.
func monitors(command string) bool {
	return isHello(command) || command == "ping" || command == "_isSelf" ||
		command == "replSetHeartbeat" || command == "replSetUpdatePosition"
}

func isHello(command string) bool {
	return command == "hello" || command == "isMaster" || command == "ismaster"
}

// namesCollection reports whether a string as the command's value is the name
// of a collection. Elsewhere it may be a user, a role or a setting.
func namesCollection(command string) bool {
	switch command {
	case "insert", "update", "delete", "find", "findAndModify", "findandmodify", "aggregate",
		"count", "distinct", "mapReduce", "mapreduce", "killCursors", "geoNear", "geoSearch",
		"create", "createIndexes", "drop", "dropIndexes", "deleteIndexes", "listIndexes", "collMod",
		"convertToCapped", "cloneCollectionAsCapped", "collStats", "collstats", "validate", "reIndex",
		"compact", "parallelCollectionScan", "planCacheClear", "planCacheListFilters",
		"planCacheSetFilter", "planCacheClearFilters",
		"createSearchIndexes", "updateSearchIndex", "dropSearchIndex":
		return true
	}
	return false
}
