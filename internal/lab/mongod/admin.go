package mongod

import (
	"runtime"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// The commands that drivers and mongosh ask to know what they talk to.

func ping(*Server, *request) (bson.D, error) { return bson.D{}, nil }

func buildInfo(*Server, *request) (bson.D, error) {
	return bson.D{
		{Key: "version", Value: version},
		{Key: "gitVersion", Value: "none: a model of the server"},
		{Key: "versionArray", Value: bson.A{int32(8), int32(0), int32(0), int32(0)}},
		{Key: "modules", Value: bson.A{"wirewait lab"}},
		{Key: "bits", Value: int32(64)},
		{Key: "debug", Value: false},
		{Key: "maxBsonObjectSize", Value: int32(maxBSON)},
		{Key: "storageEngines", Value: bson.A{}},
	}, nil
}

func connectionStatus(*Server, *request) (bson.D, error) {
	return bson.D{{Key: "authInfo", Value: bson.D{
		{Key: "authenticatedUsers", Value: bson.A{}}, {Key: "authenticatedUserRoles", Value: bson.A{}},
	}}}, nil
}

func whatsMyURI(_ *Server, q *request) (bson.D, error) {
	return bson.D{{Key: "you", Value: q.connection.RemoteAddr().String()}}, nil
}

func getCmdLineOpts(*Server, *request) (bson.D, error) {
	return bson.D{{Key: "argv", Value: bson.A{"mongod"}}, {Key: "parsed", Value: bson.D{}}}, nil
}

// getParameter knows what shells ask for at their start.
func getParameter(_ *Server, q *request) (bson.D, error) {
	if _, err := q.body.LookupErr("featureCompatibilityVersion"); err == nil {
		return bson.D{{Key: "featureCompatibilityVersion", Value: bson.D{{Key: "version", Value: "8.0"}}}}, nil
	}
	return nil, &commandError{code: 72, name: "InvalidOptions", message: "no option found to get"}
}

func getLog(_ *Server, q *request) (bson.D, error) {
	switch name, _ := q.body.Lookup("getLog").StringValueOK(); name {
	case "*":
		return bson.D{{Key: "names", Value: bson.A{"global", "startupWarnings"}}}, nil
	case "global", "startupWarnings":
		return bson.D{{Key: "totalLinesWritten", Value: int32(0)}, {Key: "log", Value: bson.A{}}}, nil
	}
	return nil, &commandError{code: 96, name: "OperationFailed", message: "No log with that name"}
}

func hostInfo(*Server, *request) (bson.D, error) {
	return bson.D{
		{Key: "system", Value: bson.D{{Key: "currentTime", Value: bson.NewDateTimeFromTime(time.Now())}, {Key: "cpuArch", Value: runtime.GOARCH}, {Key: "numCores", Value: int32(runtime.NumCPU())}}},
		{Key: "os", Value: bson.D{{Key: "type", Value: runtime.GOOS}}}, {Key: "extra", Value: bson.D{}},
	}, nil
}

func getDefaultRWConcern(s *Server, _ *request) (bson.D, error) {
	if s.set == nil {
		return nil, &commandError{code: 51301, name: "Location51301", message: "'getDefaultRWConcern' is not supported on standalone nodes."}
	}
	return bson.D{
		{Key: "defaultReadConcern", Value: bson.D{{Key: "level", Value: "local"}}},
		{Key: "defaultWriteConcern", Value: bson.D{{Key: "w", Value: "majority"}, {Key: "wtimeout", Value: int32(0)}}},
		{Key: "defaultWriteConcernSource", Value: "implicit"}, {Key: "defaultReadConcernSource", Value: "implicit"},
		{Key: "localUpdateWallClockTime", Value: bson.NewDateTimeFromTime(s.started)},
	}, nil
}

func isSelf(s *Server, _ *request) (bson.D, error) { return bson.D{{Key: "id", Value: s.process}}, nil }

func replSetGetRBID(s *Server, _ *request) (bson.D, error) {
	if s.set == nil {
		return nil, notReplicated()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return bson.D{{Key: "rbid", Value: s.set.rollbacks}}, nil
}

func replSetGetConfig(s *Server, _ *request) (bson.D, error) {
	if s.set == nil {
		return nil, notReplicated()
	}
	return bson.D{{Key: "config", Value: s.set.config.document()}}, nil
}
