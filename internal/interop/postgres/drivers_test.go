package postgres

import "testing"

const psycopgDoes = "statements, errors, transactions, two-phase commit, pipeline mode, COPY both ways, cursors, LISTEN/NOTIFY, cancel, a killed session"

func psycopgClient() client {
	p := python("psycopg")
	return client{
		name: "psycopg", does: psycopgDoes, version: p.version, run: p.scenario(),
		writes: map[string]int{},
	}
}

func TestPsycopg(t *testing.T) { startServer(t, machine).compare(t, psycopgClient()) }

func TestAsyncpg(t *testing.T) {
	p := python("asyncpg")
	startServer(t, machine).compare(t, client{
		name: "asyncpg", does: "statements, errors, a time-out, transactions, cursors, COPY both ways, LISTEN/NOTIFY, a pool",
		version: p.version, run: p.scenario(),
		writes: map[string]int{},
	})
}

func TestNodePostgres(t *testing.T) {
	p := program(nodePostgres)
	startServer(t, machine).compare(t, client{
		name: "node-postgres", does: "statements, errors, transactions, COPY streams, a cursor, LISTEN/NOTIFY, a pool, a killed session",
		version: p.version, run: p.scenario(),
		writes: map[string]int{},
	})
}

func TestJDBC(t *testing.T) {
	p := buildJDBC(t)
	startServer(t, machine).compare(t, client{
		name: "JDBC", does: "statements, batches, errors, a time-out, transactions, portals with row limits, large objects by function calls, COPY both ways, simple mode",
		version: p.version, run: p.scenario(),
		writes: map[string]int{},
	})
}

func TestLibpqPipeline(t *testing.T) {
	s := startServer(t, machine)
	p := buildLibpq(t)
	s.compare(t, client{
		name: "libpq", does: "pipeline mode with errors and flush requests, 10,000 statements in one pipeline, COPY in, a function call, single rows",
		version: p.version, run: p.scenario(),
		writes: map[string]int{},
	})
}
