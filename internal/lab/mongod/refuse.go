package mongod

import (
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func appendInt64(b []byte, n int64) []byte { return binary.LittleEndian.AppendUint64(b, uint64(n)) }

// refuse says no to options that a server would obey and the peer doesn't know.
func refuse(doc bson.Raw, options ...string) error {
	for _, name := range options {
		v, err := doc.LookupErr(name)
		if err != nil {
			continue
		}
		d, isDoc := v.DocumentOK()
		on, isBool := v.BooleanOK()
		if isDoc && len(d) <= len(emptyDoc) || isBool && !on {
			continue
		}
		return notImplemented("the option " + name)
	}
	return nil
}
