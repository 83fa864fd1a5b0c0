// Package orders is a small service with retry logic, and a test of that logic
// against a network that fails where it hurts: orders_test.go.
package orders

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// Service places orders. Placing one twice places it once: its number is the
// document's _id.
type Service struct {
	Orders *mongo.Collection
	// Attempts bounds how often an order is tried, Patience how long each may
	// take.
	Attempts int
	Patience time.Duration
}

// ErrUnavailable says that the order may have been placed or not.
var ErrUnavailable = errors.New("the database can't be reached: ask again with the same number")

// Place stores an order, and returns once it's certain that it's there.
func (s *Service) Place(ctx context.Context, number int, item string) error {
	var err error
	for range s.Attempts {
		if err = s.try(ctx, number, item); err == nil {
			return nil
		}
		// An attempt whose acknowledgement was lost may have stored it.
		if mongo.IsDuplicateKeyError(err) {
			return nil
		}
		if !mongo.IsNetworkError(err) && !mongo.IsTimeout(err) && !retryable(err) {
			return err
		}
	}
	return fmt.Errorf("%w (%w)", ErrUnavailable, err)
}

func (s *Service) try(ctx context.Context, number int, item string) error {
	ctx, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	_, err := s.Orders.InsertOne(ctx, bson.D{{Key: "_id", Value: number}, {Key: "item", Value: item}})
	return err
}

// retryable are the errors of a primary that is going or gone, and of one that
// is stopping. https://github.com/mongodb/specifications, Retryable Writes.
func retryable(err error) bool {
	var e mongo.ServerError
	if !errors.As(err, &e) {
		return false
	}
	for _, code := range []int{91, 189, 10107, 11600, 11602, 13435, 13436} {
		if e.HasErrorCode(code) {
			return true
		}
	}
	return e.HasErrorLabel("RetryableWriteError")
}
