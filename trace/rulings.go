package trace

import (
	"maps"
	"reflect"
	"slices"
	"sync/atomic"
	"time"
)

// ruling is a rule with the time from which it was in force. What was between
// doubt and that, nobody knows: the change lies somewhere in there.
//
//	... the former rule ...| doubt      from |... this rule ...
type ruling struct {
	rule        Rule
	doubt, from time.Time
}

// maxRulings are of a server; writes wait a tenth of a second to be judged.
const maxRulings = 16

// perServer is a setting of each server, read far more often than changed. The
// zero value is empty. It's safe for concurrent use.
type perServer[T any] struct{ all atomic.Pointer[map[string]T] }

func (s *perServer[T]) of(server string) (v T) {
	if all := s.all.Load(); all != nil {
		v = (*all)[server]
	}
	return v
}

// none reports whether no server has any.
func (s *perServer[T]) none() bool { return s.all.Load() == nil }

// change replaces a server's by what f makes of it.
func (s *perServer[T]) change(server string, f func(T) T) {
	for {
		old := s.all.Load()
		all := map[string]T{}
		if old != nil {
			all = maps.Clone(*old)
		}
		all[server] = f(all[server])
		if s.all.CompareAndSwap(old, &all) {
			return
		}
	}
}

// setRule replaces all that was known of a server's rules.
func (a *attribution) setRule(server string, r Rule) {
	a.rules.change(server, func([]ruling) []ruling { return []ruling{{rule: r}} })
}

// changeRule adds a rule that replaced the one before between since and now.
func (a *attribution) changeRule(server string, r Rule, since, now time.Time) {
	a.rules.change(server, func(list []ruling) []ruling {
		if n := len(list); n > 0 && reflect.DeepEqual(list[n-1].rule, r) {
			return list
		}
		list = append(slices.Clone(list), ruling{r, since, now})
		return list[max(len(list)-maxRulings, 0):]
	})
}

// rule is a server's latest; nil: none is known.
func (a *attribution) rule(server string) Rule {
	if list := a.rules.of(server); len(list) > 0 {
		return list[len(list)-1].rule
	}
	return nil
}

// ruleFor is the one that was in force for a write from its beginning to its end;
// nil: none is known, or it changed meanwhile.
func (a *attribution) ruleFor(server string, f *Finished) Rule {
	began, ended := f.Conn.Time(Start(f.Exchange)), f.Conn.Time(End(f.Exchange))
	for _, r := range slices.Backward(a.rules.of(server)) {
		if !began.Before(r.from) {
			return r.rule
		}
		if ended.After(r.doubt) {
			return nil
		}
	}
	return nil
}

// CommitDefaults are what synchronous_commit is in a PostgreSQL server's sessions
// that don't say it themselves.
type CommitDefaults struct {
	// Server is that of postgresql.conf; "": not known.
	Server string
	// Own are those that ALTER ROLE and ALTER DATABASE have set.
	Own []CommitDefault
}

// CommitDefault is one of a database, a role, or a role in a database; an empty
// name is any (pg_db_role_setting).
type CommitDefault struct{ Database, Role, Level string }

// Level is the one for a session; "": not known. Later ones of these go before
// earlier ones: for all, the database's, the role's, the role's in the database
// (process_settings in src/backend/utils/init/postinit.c).
func (d *CommitDefaults) Level(database, role string) string {
	level, best := d.Server, -1
	for _, o := range d.Own {
		if o.Database != "" && o.Database != database || o.Role != "" && o.Role != role {
			continue
		}
		rank := 0
		if o.Database != "" {
			rank = 1
		}
		if o.Role != "" {
			rank += 2
		}
		if rank > best {
			level, best = o.Level, rank
		}
	}
	return level
}

// SourceObserved is the source of a commit level that the session didn't say and
// the server was asked for.
const SourceObserved = "observed"

// believe fills in the level of a session that has the server's default.
func (a *attribution) believe(f *Finished) {
	p := &f.Postgres
	if p.SyncSource != "default" || p.SynchronousCommit != "" || f.Peer == nil || a.defaults.none() {
		return
	}
	if d := a.defaults.of(serverOf(f.Conn)); d != nil {
		if level := d.Level(f.Peer.Database, f.Peer.User); level != "" {
			p.SynchronousCommit, p.SyncSource = level, SourceObserved
		}
	}
}
