package lab

import (
	"context"

	"github.com/wirewait/wirewait/internal/lab/mongod"
)

// The MongoDB lab is package mongod; these are its names for those who use both
// labs.
type (
	// Mongo is one server in this process.
	Mongo = mongod.Server
	// MongoOptions say how it behaves.
	MongoOptions = mongod.Options
	// MongoCommand is a command that reached it.
	MongoCommand = mongod.Command
	// MongoSet is a replica set of several.
	MongoSet = mongod.Set
	// MongoSetOptions say what it is like.
	MongoSetOptions = mongod.SetOptions
)

// StartMongo opens one server on a free port of 127.0.0.1: a standalone one, or
// a replica set's only member. It keeps its data in memory.
func StartMongo(o MongoOptions) (*Mongo, error) { return mongod.Start(o) }

// StartMongoSet opens a replica set and returns when its primary takes writes.
func StartMongoSet(ctx context.Context, o MongoSetOptions) (*MongoSet, error) {
	return mongod.StartSet(ctx, o)
}
