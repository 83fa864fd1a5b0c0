package observe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// mongoAsker asks for serverStatus, and a primary for replSetGetStatus besides.
// clusterMonitor is the role for both.
type mongoAsker struct {
	sampler *Sampler
	client  *mongo.Client
	once    once
	alone   bool // it's no member of a set, or may not be asked
}

func newMongoAsker(s *Sampler) (*mongoAsker, error) {
	client, err := connectMongo(s.Server, s.URI, s.Addr)
	if err != nil {
		return nil, err
	}
	return &mongoAsker{sampler: s, client: client, once: once{log: s.Log, name: s.Server}}, nil
}

// connectMongo connects to one server alone, on one connection; addr, where not
// empty, in the place of the URI's hosts. name is for the error.
func connectMongo(name, uri, addr string) (*mongo.Client, error) {
	o := options.Client().ApplyURI(uri).SetDirect(true).SetAppName("wirewait").
		SetServerSelectionTimeout(askTimeout).SetMaxPoolSize(1).SetServerMonitoringMode("poll")
	o.ReplicaSet = nil // one member is asked, whatever set it is of
	if addr != "" {
		o.SetHosts([]string{addr})
	}
	client, err := mongo.Connect(o)
	if err != nil { // which may quote the URI
		return nil, fmt.Errorf("observe of %s is no URI that can be used: write mongodb://USER:PASSWORD@HOST:PORT/, with one host", name)
	}
	return client, nil
}

func (a *mongoAsker) close() { disconnect(a.client) }

// disconnect waits for nothing but the driver's own.
func disconnect(c *mongo.Client) {
	now, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.Disconnect(now)
}

// wanted leaves out of serverStatus what is large or costs the server something
// (https://www.mongodb.com/docs/manual/reference/command/serverStatus/). What a
// version doesn't know of it ignores.
var wanted = bson.D{
	{Key: "serverStatus", Value: 1}, {Key: "repl", Value: 0}, {Key: "locks", Value: 0}, {Key: "tcmalloc", Value: 0}, {Key: "sharding", Value: 0},
	{Key: "network", Value: 0}, {Key: "security", Value: 0}, {Key: "transportSecurity", Value: 0}, {Key: "asserts", Value: 0},
	{Key: "oplogTruncation", Value: 0}, {Key: "indexStats", Value: 0}, {Key: "queryAnalyzers", Value: 0}, {Key: "logicalSessionRecordCache", Value: 0},
}

func (a *mongoAsker) look(ctx context.Context) (*look, error) {
	l := newLook()
	admin := a.client.Database("admin")
	status, err := admin.RunCommand(ctx, wanted).Raw()
	if _, ok := refusal(err); ok {
		a.once.say("serverStatus", err)
	} else if err != nil {
		a.alone = false // it may come back as another
		return nil, withoutPassword(fmt.Errorf("serverStatus: %w", err), a.sampler.URI)
	}
	readStatus(status, l)
	if a.alone {
		return l, nil
	}
	set, err := admin.RunCommand(ctx, bson.D{{Key: "replSetGetStatus", Value: 1}}).Raw()
	code, refused := refusal(err)
	switch {
	case refused:
		switch code {
		case notReplicated:
			a.alone = true
		case notYetInitialized:
		default:
			a.alone = code == unauthorized
			a.once.say("replSetGetStatus", err)
		}
	case err != nil:
		return nil, withoutPassword(fmt.Errorf("replSetGetStatus: %w", err), a.sampler.URI)
	default:
		readSet(set, l, a.sampler.nameOf)
	}
	return l, nil
}

// refusal is the code with which a server refuses a command. The driver has the
// same type of error for a connection that broke, without a code.
func refusal(err error) (code int32, ok bool) {
	var e mongo.CommandError
	if !errors.As(err, &e) || e.Code == 0 || e.HasErrorLabel("NetworkError") {
		return 0, false
	}
	return e.Code, true
}

// Codes of a server that doesn't say how its set is (src/mongo/base/error_codes.yml):
// it's in none, it may not be asked, or the set has no configuration yet.
const (
	notReplicated     = 76
	unauthorized      = 13
	notYetInitialized = 94
)

// nameOf is the file's name of a member that the set knows by host and id.
func (s *Sampler) nameOf(host string, id int) string {
	return (&Set{Members: s.Members}).nameOf(configMember{ID: id, Host: host}, host)
}
