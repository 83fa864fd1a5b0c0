// Package orders is a small service with retry logic. Its tests have a Toxiproxy
// between it and its database.
package orders

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrUnavailable says that the order may have been placed or not.
var ErrUnavailable = errors.New("the database can't be reached: ask again with the same number")

// Service places orders. Placing one twice places it once: its number is the key.
type Service struct {
	URL      string // of the database
	Attempts int
	Patience time.Duration // with each attempt
}

// Place stores an order, and returns once it's certain that it's there.
func (s *Service) Place(ctx context.Context, number int, item string) error {
	var err error
	for range s.Attempts {
		err = s.try(ctx, number, item)
		if err == nil || !retryable(err) {
			return err
		}
	}
	return fmt.Errorf("%w (%w)", ErrUnavailable, err)
}

func (s *Service) try(ctx context.Context, number int, item string) error {
	ctx, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	c, err := pgx.Connect(ctx, s.URL)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, "INSERT INTO orders VALUES ($1, $2) ON CONFLICT DO NOTHING", number, item)
	return err
}

// retryable are the network's errors, and of the server's own those that another
// attempt may not meet: the transaction was rolled back, or the server is going.
// https://www.postgresql.org/docs/current/errcodes-appendix.html
func retryable(err error) bool {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return true
	}
	class := e.Code[:2]
	return class == "40" || class == "57"
}
