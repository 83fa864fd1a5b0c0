package postgres

import "testing"

// The writes of the scenarios, counted by hand: those that the server refused
// are among them, those that it skipped after an error in a pipeline are not.

const psycopgDoes = "statements, errors, transactions, two-phase commit, pipeline mode, COPY both ways, cursors, LISTEN/NOTIFY, cancel, a killed session"

func psycopgClient() client {
	p := python("psycopg")
	return client{
		name: "psycopg", does: psycopgDoes, version: p.version, run: p.scenario(),
		writes: map[string]int{
			"CREATE TABLE": 1, "INSERT": 131, "UPDATE": 4, "DELETE": 2, "COMMIT": 1,
			"PREPARE TRANSACTION": 1, "COMMIT PREPARED": 1, "COPY": 4, "DO": 2,
		},
	}
}

func TestPsycopg(t *testing.T) { startServer(t, machine).compare(t, psycopgClient()) }

func TestAsyncpg(t *testing.T) {
	p := python("asyncpg")
	startServer(t, machine).compare(t, client{
		name: "asyncpg", does: "statements, errors, a time-out, transactions, cursors, COPY both ways, LISTEN/NOTIFY, a pool",
		version: p.version, run: p.scenario(),
		writes: map[string]int{
			"CREATE TABLE": 1, "INSERT": 539, "DELETE": 2, "COMMIT": 21, "COPY": 3, "DO": 1,
		},
	})
}

func TestNodePostgres(t *testing.T) {
	p := program(nodePostgres)
	startServer(t, machine).compare(t, client{
		name: "node-postgres", does: "statements, errors, transactions, COPY streams, a cursor, LISTEN/NOTIFY, a pool, a killed session",
		version: p.version, run: p.scenario(),
		writes: map[string]int{
			"CREATE TABLE": 1, "INSERT": 35, "UPDATE": 1, "DELETE": 3, "COMMIT": 1, "COPY": 2, "DO": 1,
		},
	})
}

func TestJDBC(t *testing.T) {
	p := buildJDBC(t)
	startServer(t, machine).compare(t, client{
		name: "JDBC", does: "statements, batches, errors, a time-out, transactions, portals with row limits, large objects by function calls, COPY both ways, simple mode",
		version: p.version, run: p.scenario(),
		writes: map[string]int{
			"CREATE TABLE": 1, "INSERT": 1027, "UPDATE": 2, "DELETE": 5, "COMMIT": 2, "COPY": 2, "DO": 1, "function_call": 3,
		},
	})
}

func TestLibpqPipeline(t *testing.T) {
	s := startServer(t, machine)
	p := buildLibpq(t)
	s.compare(t, client{
		name: "libpq", does: "pipeline mode with errors and flush requests, 10,000 statements in one pipeline, COPY in, a function call, single rows",
		version: p.version, run: p.scenario(),
		writes: map[string]int{
			"CREATE TABLE": 1, "INSERT": 10008, "COMMIT": 1, "COPY": 2,
		},
	})
}
