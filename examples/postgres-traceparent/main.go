// Command postgres-traceparent writes a row whose span has a parent: the
// application's own, sent along in a SQL comment.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "postgres-traceparent:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	url := "postgres://postgres@127.0.0.1:27117/postgres"
	if len(os.Args) > 1 {
		url = os.Args[1]
	}
	db, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect through wirewait: %w", err)
	}
	defer db.Close(ctx)
	if _, err := db.Exec(ctx, "CREATE TABLE IF NOT EXISTS orders (id serial, total int)"); err != nil {
		return err
	}

	// An application has a span of its own and takes its context; here the
	// numbers do. See https://www.w3.org/TR/trace-context/.
	var traceID [16]byte
	var spanID [8]byte
	rand.Read(traceID[:])
	rand.Read(spanID[:])
	parent := fmt.Sprintf("00-%x-%x-01", traceID, spanID)

	begin := time.Now()
	_, err = db.Exec(ctx, "INSERT INTO orders (total) VALUES ($1) /*traceparent='"+parent+"'*/", 42)
	if err != nil {
		return err
	}
	fmt.Printf("the write took %v; its span is a child of %x in trace %x\n", time.Since(begin).Round(100*time.Microsecond), spanID, traceID)
	return nil
}
