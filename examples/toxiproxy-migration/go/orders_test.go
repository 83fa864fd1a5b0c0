package orders

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"os"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2/client"
	"github.com/jackc/pgx/v5"
)

// The tests of before. They know Toxiproxy only.

// rig is the service behind a proxy, and the database without one.
type rig struct {
	*Service
	proxy    *toxiproxy.Proxy
	database *pgx.Conn
}

func start(t *testing.T) *rig {
	t.Helper()
	database := os.Getenv("DATABASE_URL")
	if database == "" {
		t.Skip("DATABASE_URL is the PostgreSQL to use")
	}
	through, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	api := toxiproxy.NewClient(cmp.Or(os.Getenv("TOXIPROXY_URL"), "localhost:8474"))
	proxy, err := api.CreateProxy("orders-"+t.Name(), "127.0.0.1:0", through.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Delete() })
	through.Host = proxy.Listen
	r := &rig{Service: &Service{URL: through.String(), Attempts: 3, Patience: 5 * time.Second}, proxy: proxy}
	if r.database, err = pgx.Connect(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.database.Close(context.Background()) })
	_, err = r.database.Exec(t.Context(), "DROP TABLE IF EXISTS orders; CREATE TABLE orders (number int PRIMARY KEY, item text)")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) toxic(t *testing.T, name, stream string, attributes toxiproxy.Attributes) {
	t.Helper()
	if _, err := r.proxy.AddToxic("", name, stream, 1, attributes); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) wantStored(t *testing.T, want int) {
	t.Helper()
	var got int
	if err := r.database.QueryRow(t.Context(), "SELECT count(*) FROM orders").Scan(&got); err != nil || got != want {
		t.Errorf("%d orders are stored, %v; want %d", got, err, want)
	}
}

func TestPlace_Slow(t *testing.T) {
	r := start(t)
	r.toxic(t, "latency", "downstream", toxiproxy.Attributes{"latency": 100})
	began := time.Now()
	if err := r.Place(t.Context(), 1, "tea"); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took < 200*time.Millisecond { // connecting, and the insert
		t.Errorf("it took %v only", took)
	}
	r.wantStored(t, 1)
}

func TestPlace_Down(t *testing.T) {
	r := start(t)
	if err := r.proxy.Disable(); err != nil {
		t.Fatal(err)
	}
	if err := r.Place(t.Context(), 1, "tea"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("without a database: %v", err)
	}
	if err := r.proxy.Enable(); err != nil {
		t.Fatal(err)
	}
	if err := r.Place(t.Context(), 1, "tea"); err != nil {
		t.Error(err)
	}
	r.wantStored(t, 1)
}

func TestPlace_Cut(t *testing.T) {
	r := start(t)
	r.Patience = 200 * time.Millisecond
	r.toxic(t, "bandwidth", "downstream", toxiproxy.Attributes{"rate": 0})
	if err := r.Place(t.Context(), 1, "tea"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("with nothing coming back: %v", err)
	}
}

func TestPlace_Reset(t *testing.T) {
	r := start(t)
	r.toxic(t, "reset_peer", "downstream", toxiproxy.Attributes{"timeout": 0})
	if err := r.Place(t.Context(), 1, "tea"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("with every connection reset: %v", err)
	}
	r.wantStored(t, 0)
}
