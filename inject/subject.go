package inject

import (
	"strings"

	"github.com/wirewait/wirewait/wire"
)

// Subject is what a rule's match is held against.
type Subject struct {
	From                        string // the end that dialled
	Command                     string // MongoDB, in lower case
	Collection                  string
	Statement                   string // PostgreSQL, in upper case
	Database, User, Application string
	W, J                        string // as in wire.WriteConcern
	Level                       string // of synchronous_commit
	// Monitor: it's of the conversation by which peers watch each other.
	Monitor bool
}

// SubjectOf is what an exchange is matched by, on a connection from that end.
func SubjectOf(x *wire.Exchange, from string) Subject {
	s := Subject{From: from, Database: x.Database, Collection: x.Collection, Monitor: x.Mongo.Monitor}
	if x.Protocol == wire.Postgres {
		s.Statement, s.Level = x.Postgres.Keyword, x.Postgres.SynchronousCommit
	} else {
		s.Command = strings.ToLower(x.Operation)
		s.W, s.J = x.Mongo.WriteConcern.W, x.Mongo.WriteConcern.J
	}
	if p := x.Peer; p != nil {
		s.User, s.Application = p.User, p.Application
		if s.Database == "" {
			s.Database = p.Database
		}
	}
	return s
}

// fields is a set of a subject's fields.
type fields uint16

const (
	ofFrom fields = 1 << iota
	ofCommand
	ofCollection
	ofStatement
	ofDatabase
	ofUser
	ofApplication
	ofW
	ofJ
	ofLevel
)

// set gives some fields a value.
func (s *Subject) set(f fields, v string) {
	switch f {
	case ofFrom:
		s.From = v
	case ofCommand:
		s.Command = strings.ToLower(v)
	case ofCollection:
		s.Collection = v
	case ofStatement:
		s.Statement = strings.ToUpper(v)
	case ofDatabase:
		s.Database = v
	case ofUser:
		s.User = v
	case ofApplication:
		s.Application = v
	case ofLevel:
		s.Level = v
	}
}

// only is the subject with no more than some fields.
func (s *Subject) only(f fields) (o Subject) {
	if f&ofFrom != 0 {
		o.From = s.From
	}
	if f&ofCommand != 0 {
		o.Command = s.Command
	}
	if f&ofCollection != 0 {
		o.Collection = s.Collection
	}
	if f&ofStatement != 0 {
		o.Statement = s.Statement
	}
	if f&ofDatabase != 0 {
		o.Database = s.Database
	}
	if f&ofUser != 0 {
		o.User = s.User
	}
	if f&ofApplication != 0 {
		o.Application = s.Application
	}
	if f&ofW != 0 {
		o.W = s.W
	}
	if f&ofJ != 0 {
		o.J = s.J
	}
	if f&ofLevel != 0 {
		o.Level = s.Level
	}
	return o
}

// forms are what a match looks for: subjects that have no more than the fields
// that it names, one for each combination of values, by their fields.
func (w *When) forms() map[fields][]Subject {
	all := map[fields][]Subject{0: {{}}}
	for _, p := range []struct {
		f      fields
		values []string
	}{
		{ofFrom, w.From}, {ofCommand, w.Command}, {ofCollection, w.Collection}, {ofStatement, w.Statement},
		{ofDatabase, w.Database}, {ofUser, w.User}, {ofApplication, w.Application}, {ofLevel, w.SynchronousCommit},
	} {
		if len(p.values) == 0 {
			continue
		}
		next := map[fields][]Subject{}
		for f, subjects := range all {
			for _, s := range subjects {
				for _, v := range p.values {
					s.set(p.f, v)
					next[f|p.f] = append(next[f|p.f], s)
				}
			}
		}
		all = next
	}
	if len(w.WriteConcern) == 0 {
		return all
	}
	next := map[fields][]Subject{}
	for f, subjects := range all {
		for _, s := range subjects {
			for _, k := range w.WriteConcern {
				g := f
				if s.W = k.W; k.W != "" {
					g |= ofW
				}
				if s.J = k.J; k.J != "" {
					g |= ofJ
				}
				next[g] = append(next[g], s)
			}
		}
	}
	return next
}
