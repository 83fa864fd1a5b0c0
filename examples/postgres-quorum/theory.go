package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/wirewait/wirewait/trace"
)

// quorum is when a rule is satisfied, if standbys acknowledge after their lags,
// and by whom; nobody in particular if two come at the same time.
//
//	FIRST 1 (s1, s2)   s1's lag
//	ANY 1 (s1, s2)     the smaller one
//	ANY 2 (s1, s2)     the larger one
func quorum(names *trace.StandbyNames, there []standby) (time.Duration, string) {
	var all []string
	for _, s := range there {
		all = append(all, s.name)
	}
	chosen, take := names.Choose(all, nil)
	if take < 1 || take > len(chosen) {
		return 0, ""
	}
	var count []standby
	for _, i := range chosen {
		count = append(count, there[i])
	}
	slices.SortStableFunc(count, func(a, b standby) int { return cmp.Compare(a.lag, b.lag) })
	last := count[take-1]
	for i, s := range count {
		if i != take-1 && s.lag == last.lag {
			return last.lag, ""
		}
	}
	return last.lag, last.name
}

// asItIs commits to a real primary. Theory is its own rule, applied to what it
// says of its standbys' lags (it takes the role pg_monitor).
func (s *quorumStudy) asItIs(ctx context.Context) error {
	observer, err := s.db.Observe(ctx)
	if err != nil {
		return err
	}
	defer observer.Close(ctx)
	var text string
	if err := observer.QueryRow(ctx, "select current_setting('synchronous_standby_names')").Scan(&text); err != nil {
		return err
	}
	names, err := trace.ParseStandbyNames(text)
	if err != nil {
		return err
	}
	lags := "as it is"
	if text == "" {
		text = "nobody is waited for"
	}
	c := newCell(text, lags)
	if err := s.measure(ctx, c); err != nil {
		return err
	}
	// The views are of the last commits, so they are asked at once.
	for i, column := range map[int]string{2: "write_lag", 3: "flush_lag", 4: "replay_lag"} {
		there, err := standbysOf(ctx, observer, column)
		if err != nil {
			return err
		}
		c.theory[i], c.expected[i] = quorum(names, there)
	}
	return nil
}

// standbysOf are those that stream, with one of their lags.
func standbysOf(ctx context.Context, conn *pgx.Conn, column string) ([]standby, error) {
	rows, err := conn.Query(ctx, fmt.Sprintf("select application_name, coalesce(extract(epoch from %s), 0)::float8 from pg_stat_replication where state = 'streaming' order by pid", column))
	if err != nil {
		return nil, fmt.Errorf("ask for standbys (it takes the role pg_monitor): %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s standby, err error) {
		var seconds float64
		err = row.Scan(&s.name, &seconds)
		s.lag = time.Duration(seconds * float64(time.Second))
		return s, err
	})
}
