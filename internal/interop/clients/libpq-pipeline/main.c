/*
 * What a C program does with libpq, most of it in pipeline mode, on an empty
 * database:
 *
 *	gcc main.c -I"$(pg_config --includedir)" -lpq && ./a.out URL
 *
 * Prints what it got, and nothing that differs from run to run. --version
 * prints what it is linked with.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <libpq-fe.h>

static PGconn *conn;

static void die(const char *what)
{
	printf("%s: %s\n", what, PQerrorMessage(conn));
	exit(1);
}

static void say(PGresult *r)
{
	ExecStatusType status = PQresultStatus(r);
	const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);

	printf("%s %s", PQresStatus(status), PQcmdStatus(r));
	if (state != NULL)
		printf(" %s %s", state, PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY));
	if (PQntuples(r) > 0)
		printf(" %d rows, first %s", PQntuples(r), PQgetvalue(r, 0, 0));
	printf("\n");
	PQclear(r);
}

/* Says every result up to the next synchronisation point. */
static void results(const char *title)
{
	int nothing = 0;

	printf("%s\n", title);
	while (nothing < 2) {
		PGresult *r = PQgetResult(conn);

		if (r == NULL) {
			nothing++;
			continue;
		}
		nothing = 0;
		if (PQresultStatus(r) == PGRES_PIPELINE_SYNC) {
			say(r);
			return;
		}
		say(r);
	}
	die("no synchronisation point");
}

static void put(const char *id)
{
	const char *values[1] = {id};

	if (!PQsendQueryPrepared(conn, "put", 1, values, NULL, NULL, 0))
		die("put");
}

static void ask(const char *sql)
{
	if (!PQsendQueryParams(conn, sql, 0, NULL, NULL, NULL, NULL, 0))
		die(sql);
}

static void sync_now(void)
{
	if (!PQpipelineSync(conn))
		die("sync");
}

/* 10,000 inserts in one pipeline, reading while there is more to send. */
static void many(void)
{
	int sent = 0, got = 0, flush = 1;

	while (got <= 10000) {
		struct pollfd p = {PQsocket(conn), POLLIN, 0};

		for (int k = 0; k < 100 && sent < 10000; k++, sent++) {
			char id[16];

			snprintf(id, sizeof id, "%d", 100000 + sent);
			put(id);
			if (sent == 9999)
				sync_now();
		}
		flush = PQflush(conn);
		if (flush < 0)
			die("flush");
		if (flush || sent < 10000)
			p.events |= POLLOUT;
		if (!PQisBusy(conn)) {
			PGresult *r = PQgetResult(conn);

			if (r == NULL)
				r = PQgetResult(conn);
			if (r == NULL)
				continue;
			if (PQresultStatus(r) != PGRES_COMMAND_OK && PQresultStatus(r) != PGRES_PIPELINE_SYNC)
				die("many");
			PQclear(r);
			got++;
			continue;
		}
		if (poll(&p, 1, 60000) <= 0)
			die("poll");
		if ((p.revents & POLLIN) && !PQconsumeInput(conn))
			die("consume");
	}
	printf("many %d results\n", got);
}

static void pipelines(void)
{
	if (!PQenterPipelineMode(conn))
		die("enter");
	if (!PQsendPrepare(conn, "put", "insert into t (id) values ($1)", 1, NULL))
		die("prepare");
	put("1");
	put("2");
	ask("select count(*) from t");
	sync_now();
	results("one after the other");

	put("3");
	put("1");
	put("4");
	ask("select 1");
	sync_now();
	put("5");
	sync_now();
	results("an error, and what follows it");
	results("after the synchronisation point");

	ask("begin");
	put("6");
	ask("commit");
	put("7");
	if (!PQsendDescribePrepared(conn, "put"))
		die("describe");
	if (!PQsendFlushRequest(conn) || PQflush(conn) < 0)
		die("flush request");
	for (int i = 0; i < 4; i++) {
		say(PQgetResult(conn));
		if (PQgetResult(conn) != NULL)
			die("one result each");
	}
	printf("described %d\n", PQnparams(PQgetResult(conn)));
	if (PQgetResult(conn) != NULL)
		die("one result each");
	sync_now();
	results("flushed before the end");

	if (PQsetnonblocking(conn, 1) != 0)
		die("nonblocking");
	many();
	if (PQsetnonblocking(conn, 0) != 0 || !PQexitPipelineMode(conn))
		die("exit");
	printf("pipeline mode left\n");
	say(PQexec(conn, "select count(*) from t"));
}

static void rest(void)
{
	say(PQexec(conn, "insert into t values (8); select 1; select 1/0"));
	say(PQexec(conn, ""));
	say(PQexec(conn, "copy t from stdin"));
	PQputCopyData(conn, "20\n21\n", 6);
	PQputCopyEnd(conn, NULL);
	say(PQgetResult(conn));
	PQclear(PQgetResult(conn));
	say(PQexec(conn, "copy t from stdin"));
	PQputCopyEnd(conn, "given up");
	say(PQgetResult(conn));
	PQclear(PQgetResult(conn));
	/* A fast-path function call: int4pl(20, 22). */
	int answer, len;
	PQArgBlock args[2] = {{4, 1, {.integer = 20}}, {4, 1, {.integer = 22}}};
	say(PQfn(conn, 177, &answer, &len, 1, args, 2));
	printf("function call %d\n", answer);
	/* One row at a time. */
	int rows = 0;
	if (!PQsendQuery(conn, "select generate_series(1, 1000)") || !PQsetSingleRowMode(conn))
		die("single rows");
	for (PGresult *r; (r = PQgetResult(conn)) != NULL; PQclear(r))
		rows += PQntuples(r);
	printf("single rows %d\n", rows);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	if (strcmp(argv[1], "--version") == 0) {
		printf("libpq %d.%d\n", PQlibVersion() / 10000, PQlibVersion() % 10000);
		return 0;
	}
	conn = PQconnectdb(argv[1]);
	if (PQstatus(conn) != CONNECTION_OK)
		die("connect");
	say(PQexec(conn, "create table t (id int primary key)"));
	pipelines();
	rest();
	PQfinish(conn);
	return 0;
}
