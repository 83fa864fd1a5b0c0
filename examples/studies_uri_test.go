package examples_test

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/internal/study/cluster"
	"github.com/wirewait/wirewait/internal/testenv"
)

// onCluster runs a study on somebody's cluster, as it is.
func onCluster(t *testing.T, name, uri string) []map[string]string {
	t.Helper()
	bin, err := buildStudies()
	if err != nil {
		t.Fatalf("build the examples: %v", err)
	}
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), filepath.Join(bin, name), "--quick", "--uri", uri, "--out", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return readCSV(t, filepath.Join(dir, name+".csv"))
}

func TestStudies_OnASetOfYours(t *testing.T) {
	set, err := lab.StartMongoSet(t.Context(), lab.MongoSetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	if rows := onCluster(t, "journal-group-commit", set.URI()); len(rows) != 8 {
		t.Errorf("%v", rows)
	}
	if rows := onCluster(t, "majority-lag", set.URI()); len(rows) != 3 || rows[2]["w"] != "3" || rows[0]["theory_ms"] != "" {
		t.Errorf("%v", rows)
	}
	if rows := onCluster(t, "delayed-member", set.URI()); len(rows) != 2 || rows[1]["theory_ms"] != "0" {
		t.Errorf("%v", rows)
	}
	for _, name := range []string{"tickets", "flow-control", "mongodb-checkpoint"} {
		if rows := onCluster(t, name, set.URI()); len(rows) == 0 {
			t.Errorf("%s found nothing", name)
		}
	}
	client, err := mongo.Connect(options.Client().ApplyURI(set.URI()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	if names, err := client.ListDatabaseNames(t.Context(), bson.D{{Key: "name", Value: cluster.Database}}); err != nil || len(names) > 0 {
		t.Errorf("%v is left, %v", names, err)
	}
}

func TestStudies_OnAPrimaryOfYours(t *testing.T) {
	db, err := lab.StartPostgresCluster(t.Context(), lab.PostgresClusterOptions{Standbys: []string{"s1"}, SyncNames: "s1"})
	if errors.Is(err, lab.ErrNoPostgres) {
		testenv.Missing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Stop() })
	url := db.URL(db.Primary.Addr())
	if rows := onCluster(t, "postgres-quorum", url); len(rows) != 1 || rows[0]["names"] != "s1" {
		t.Errorf("%v", rows)
	}
	if rows := onCluster(t, "checkpoint-spikes", url); len(rows) != 1 || rows[0]["updates"] != "400" {
		t.Errorf("%v", rows)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	var left bool
	if err := conn.QueryRow(t.Context(), "select to_regclass($1) is not null", cluster.Table).Scan(&left); err != nil || left {
		t.Errorf("the table is left: %v, %v", left, err)
	}
}
