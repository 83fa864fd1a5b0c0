package observe

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// PrimarySettings are what a PostgreSQL server says of its commits.
type PrimarySettings struct {
	// Version is the server's ("15.20").
	Version string
	// Recovering: it's a standby itself, and takes no writes.
	Recovering bool
	// StandbyNames is synchronous_standby_names.
	StandbyNames string
	// Commit is what synchronous_commit is by default.
	Commit trace.CommitDefaults
	// SenderTimeout is wal_sender_timeout, after which the server ends the
	// connection of a standby from which it hears nothing; 0: never.
	SenderTimeout time.Duration
	// Standbys are the names of those that receive its log, Synchronous of those
	// among them that synchronous_standby_names lists. Empty if the role may not
	// see them (pg_read_all_stats).
	Standbys, Synchronous []string
	// SeesAll: the role sees others' sessions.
	SeesAll bool
}

// sameRule reports whether commits wait for the same standbys.
func (s *PrimarySettings) sameRule(other *PrimarySettings) bool {
	return s.StandbyNames == other.StandbyNames && s.Recovering == other.Recovering
}

// settingsSQL are the questions, in the order in which readSettings reads the
// answers. A setting's source tells the server's from one of this role or
// database (GucSource_Names in src/backend/utils/misc/guc_tables.c).
const settingsSQL = `SELECT current_setting('server_version'), pg_is_in_recovery(), current_setting('synchronous_standby_names'), pg_has_role('pg_read_all_stats', 'USAGE');
SELECT name, setting, source IN ('database', 'user', 'database user', 'client', 'session') FROM pg_settings WHERE name IN ('synchronous_commit', 'wal_sender_timeout');
SELECT coalesce(d.datname, ''), coalesce(r.rolname, ''), c FROM pg_db_role_setting s CROSS JOIN unnest(s.setconfig) c
LEFT JOIN pg_database d ON d.oid = s.setdatabase LEFT JOIN pg_roles r ON r.oid = s.setrole WHERE c LIKE 'synchronous\_commit=%' ORDER BY 1, 2;
SELECT DISTINCT application_name, sync_state <> 'async' FROM pg_stat_replication WHERE state = 'streaming' AND application_name IS NOT NULL ORDER BY 1`

func readSettings(answers []*pgconn.Result) (*PrimarySettings, error) {
	if len(answers) != 4 || len(answers[0].Rows) != 1 {
		return nil, errors.New("the server answers something else than it was asked")
	}
	first := answers[0].Rows[0]
	version, _, _ := strings.Cut(string(first[0]), " ") // the packager
	s := &PrimarySettings{
		Version: version, Recovering: isTrue(first[1]), StandbyNames: string(first[2]), SeesAll: isTrue(first[3]),
	}
	for _, r := range answers[1].Rows {
		switch own := isTrue(r[2]); {
		case string(r[0]) == "wal_sender_timeout":
			ms, _ := strconv.Atoi(string(r[1]))
			s.SenderTimeout = time.Duration(ms) * time.Millisecond
		case !own: // else this role or database has it, and hides the server's
			s.Commit.Server = string(r[1])
		}
	}
	for _, r := range answers[2].Rows {
		_, level, _ := strings.Cut(string(r[2]), "=")
		s.Commit.Own = append(s.Commit.Own, trace.CommitDefault{Database: string(r[0]), Role: string(r[1]), Level: level})
	}
	for _, r := range answers[3].Rows {
		name := string(r[0])
		s.Standbys = append(s.Standbys, name)
		if isTrue(r[1]) {
			s.Synchronous = append(s.Synchronous, name)
		}
	}
	s.Standbys = slices.Compact(s.Standbys) // two may have one name
	return s, nil
}

func isTrue(b []byte) bool { return string(b) == "t" }

// waitingSQL asks who waits for standbys. The view's own function is without its
// joins. A session's wait has the type IPC; the lock of the same name, LWLock
// (src/backend/utils/activity/wait_event_names.txt).
const waitingSQL = `SELECT current_setting('synchronous_standby_names'), pg_is_in_recovery();
SELECT pid, backend_xid FROM pg_stat_get_activity(NULL) WHERE wait_event_type = 'IPC' AND wait_event = 'SyncRep' AND backend_xid IS NOT NULL`

func readWaiting(answers []*pgconn.Result) (names string, recovering bool, waiting []wire.Backend) {
	if len(answers) != 2 || len(answers[0].Rows) != 1 {
		return "", false, nil // the settings' question will say what is wrong
	}
	names, recovering = string(answers[0].Rows[0][0]), isTrue(answers[0].Rows[0][1])
	for _, r := range answers[1].Rows {
		pid, err1 := strconv.ParseInt(string(r[0]), 10, 32)
		xid, err2 := strconv.ParseUint(string(r[1]), 10, 32)
		if err1 == nil && err2 == nil {
			waiting = append(waiting, wire.Backend{PID: int32(pid), XID: uint32(xid)})
		}
	}
	return names, recovering, waiting
}
