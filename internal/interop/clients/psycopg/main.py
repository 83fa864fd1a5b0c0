"""What people do with psycopg 3, on an empty database: python main.py URL

Prints what it got, and nothing that differs from run to run. --version prints
what it is made of.
"""
import asyncio
import logging
import sys
import threading

import psycopg
from psycopg.rows import dict_row

# Versions of the protocol that are to be asked for; libpq before 18 has no such
# parameter.
PROTOCOL = sys.argv[2] if len(sys.argv) > 2 else ""

# It warns of a pipeline that ends with an error, or not: that depends on when
# the error arrives.
logging.getLogger("psycopg").setLevel(logging.ERROR)


def say(*what):
    print(*what, flush=True)


def error(what, e):
    say(what, "->", type(e).__name__, e.sqlstate, str(e).splitlines()[0])


def dial(url, **more):
    if PROTOCOL:
        more["max_protocol_version"] = PROTOCOL
    return psycopg.connect(url, autocommit=True, **more)


def statements(conn):
    conn.execute("create table t (id int primary key, s text, b bytea, j jsonb, a int[])")
    cur = conn.execute("insert into t values (%s, %s, %s, %s, %s)", (1, "one", b"\0\xff", '{"k": [1, null]}', [1, 2]))
    say("insert", cur.statusmessage)
    for i in range(2, 12):  # prepared by the server from the sixth on
        cur = conn.execute("insert into t (id, s) values (%s, %s)", (i, "x" * i))
    say("prepared", cur.statusmessage, conn.execute("select count(*) from pg_prepared_statements").fetchone())
    cur = conn.cursor(row_factory=dict_row)
    say("row", cur.execute("select * from t where id = 1").fetchone())
    cur = conn.execute("select id, b from t where id = %b", (1,))
    say("binary", cur.fetchone(), conn.cursor(binary=True).execute("select 1.5::numeric, now() > '2020-01-01'").fetchone())
    cur = conn.cursor()
    cur.executemany("update t set s = %s where id = %s", [("a", 1), ("b", 2), ("c", 99)])
    say("executemany", cur.rowcount)
    cur.executemany("insert into t (id) values (%s) returning id", [(21,), (22,)], returning=True)
    got = []
    while True:
        got.append(cur.fetchone())
        if not cur.nextset():
            break
    say("returning", got)
    say("simple", conn.execute("select 1; delete from t where id = 22; select 2").nextset())
    big = conn.execute("select %s::bytea", (bytes(range(256)) * 20_000,)).fetchone()[0]
    say("big", len(big), big == bytes(range(256)) * 20_000)
    say("empty", conn.execute("").statusmessage)


def errors(conn):
    for what in (
        "insert into t (id) values (1)",
        "select 1/0",
        "select nothing from nowhere",
        "syntax",
        "do $$ begin raise exception 'own' using errcode = 'WW001', detail = 'more'; end $$",
    ):
        try:
            conn.execute(what)
        except psycopg.Error as e:
            error(what, e)
    say("goes on", conn.execute("select 'yes'").fetchone())


def transactions(conn):
    with conn.transaction():
        conn.execute("insert into t (id) values (31)")
        try:
            with conn.transaction():
                conn.execute("insert into t (id) values (32)")
                conn.execute("insert into t (id) values (31)")
        except psycopg.errors.UniqueViolation as e:
            error("savepoint", e)
        conn.execute("insert into t (id) values (33)")
    try:
        with conn.transaction():
            conn.execute("delete from t")
            raise KeyError
    except KeyError:
        pass
    say("after", conn.execute("select count(*), sum(id) from t where id > 30").fetchone())
    with conn.transaction():
        conn.execute("set transaction isolation level serializable read only")
        try:
            conn.execute("update t set s = 'z'")
        except psycopg.Error as e:
            error("read only", e)
            raise psycopg.Rollback
    conn.autocommit = False
    conn.tpc_begin("two-phase")
    conn.execute("insert into t (id) values (41)")
    conn.tpc_prepare()
    conn.tpc_commit()
    conn.autocommit = True
    say("two-phase", conn.execute("select id from t where id = 41").fetchone())


def pipelines(conn):
    with conn.pipeline() as p:
        curs = [conn.execute("insert into t (id) values (%s)", (i,)) for i in range(100, 200)]
        p.sync()
        last = conn.execute("select count(*) from t where id between 100 and 199")
    say("pipeline", {c.statusmessage for c in curs}, last.fetchone())
    try:
        with conn.pipeline() as p:
            conn.execute("insert into t (id) values (201)")
            conn.execute("insert into t (id) values (100)")
            conn.execute("insert into t (id) values (202)")
            p.sync()
    except psycopg.Error as e:
        error("pipeline", e)
    with conn.pipeline() as p:
        conn.execute("insert into t (id) values (203)")
        p.sync()
        try:
            conn.execute("select 1/0").fetchone()
        except psycopg.Error as e:
            error("in between", e)
        p.sync()
        conn.execute("insert into t (id) values (204)")
    say("kept", conn.execute("select array_agg(id order by id) from t where id > 200").fetchone())


def copies(conn):
    cur = conn.cursor()
    with cur.copy("copy t (id, s) from stdin") as copy:
        for i in range(1000, 6000):
            copy.write_row((i, "row %d" % i))
    say("copy in", cur.statusmessage)
    with cur.copy("copy t (id, s) from stdin (format binary)") as copy:
        copy.set_types(["int4", "text"])
        copy.write_row((7000, "binary"))
    say("copy in binary", cur.statusmessage)
    with cur.copy("copy (select id, s from t where id >= 1000 order by id) to stdout") as copy:
        rows = [bytes(data) for data in copy]
    say("copy out", cur.statusmessage, len(rows), rows[0], rows[-1])
    try:
        with cur.copy("copy t (id) from stdin") as copy:
            copy.write("8000\n")
            raise KeyError("given up")
    except KeyError as e:
        say("copy given up", e)
    try:
        with cur.copy("copy t (id) from stdin") as copy:
            copy.write("8001\nbad\n8002\n")
    except psycopg.Error as e:
        error("copy", e)
    say("nothing of it", conn.execute("select count(*) from t where id between 8000 and 8999").fetchone())


def cursors(conn):
    with conn.transaction(), conn.cursor("named") as cur:
        cur.itersize = 700
        cur.execute("select id from t where id >= 1000 order by id")
        say("server cursor", sum(r[0] for r in cur))
        cur.scroll(-10)
        say("scrolled", cur.fetchone())
    say("stream", sum(r[0] for r in conn.cursor().stream("select generate_series(1, 2000)")))


def asynchronous(conn, url):
    notices = []
    conn.add_notice_handler(lambda d: notices.append((d.severity, d.message_primary)))
    conn.execute("do $$ begin raise notice 'said'; raise warning 'warned'; end $$")
    say("notices", notices)
    conn.execute("listen news")
    with dial(url) as other:
        other.execute("select pg_notify('news', repeat('y', 3000))")
    say("notified", [(n.channel, len(n.payload)) for n in conn.notifies(timeout=60, stop_after=1)])
    with dial(url) as sleeper:
        (pid,) = sleeper.execute("select pg_backend_pid()").fetchone()

        # Who is to be cancelled has begun: the other session sees it.
        def cancel():
            q = "select count(*) from pg_stat_activity where pid = %s and wait_event = 'PgSleep'"
            while conn.execute(q, (pid,)).fetchone() == (0,):
                pass
            sleeper.cancel_safe()

        thread = threading.Thread(target=cancel)
        thread.start()
        try:
            sleeper.execute("select pg_sleep(600)")
        except psycopg.Error as e:
            error("cancelled", e)
        thread.join()
        say("and goes on", sleeper.execute("select 'yes'").fetchone())


async def in_parallel(url):
    async def one(i):
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as conn:
            await conn.execute("insert into t (id) values (%s)", (9000 + i,))
            return await (await conn.execute("select count(*) from t where id = %s", (9000 + i,))).fetchone()

    say("in parallel", set(await asyncio.gather(*(one(i) for i in range(8)))))


def killed(conn, url):
    with dial(url) as victim:
        (pid,) = victim.execute("select pg_backend_pid()").fetchone()
        say("killed", conn.execute("select pg_terminate_backend(%s, 60000)", (pid,)).fetchone())
        try:
            victim.execute("select 1")
        except psycopg.Error as e:
            error("killed", e)


def main(url):
    with dial(url, application_name="matrix") as conn:
        say("protocol", conn.info.full_protocol_version, conn.info.parameter_status("application_name"))
        for part in (statements, errors, transactions, pipelines, copies, cursors):
            part(conn)
        asynchronous(conn, url)
        asyncio.run(in_parallel(url))
        killed(conn, url)
    try:
        dial(url + "_missing")
    except psycopg.OperationalError as e:
        say("no such database", "does not exist" in str(e))


if sys.argv[1] == "--version":
    say("psycopg %s (libpq %d.%d)" % (psycopg.__version__, *divmod(psycopg.pq.version(), 10000)))
else:
    main(sys.argv[1])
