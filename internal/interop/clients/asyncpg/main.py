"""What people do with asyncpg, on an empty database: python main.py URL

Prints what it got, and nothing that differs from run to run. --version prints
what it is made of.
"""
import asyncio
import io
import sys

import asyncpg


def say(*what):
    print(*what, flush=True)


def error(what, e):
    say(what, "->", type(e).__name__, e.sqlstate, str(e).splitlines()[0])


async def statements(conn):
    await conn.execute("create table t (id int primary key, s text, b bytea, j jsonb, a int[])")
    say("insert", await conn.execute("insert into t values ($1, $2, $3, $4, $5)", 1, "one", b"\0\xff", '{"k": 1}', [1, 2]))
    put = await conn.prepare("insert into t (id, s) values ($1, $2) returning id")
    say("prepared", [await put.fetchval(i, "x" * i) for i in range(2, 12)])
    await conn.executemany("insert into t (id) values ($1)", [(i,) for i in range(100, 600)])
    say("executemany", await conn.fetchval("select count(*) from t where id >= 100"))
    say("row", dict(await conn.fetchrow("select * from t where id = 1")))
    say("script", await conn.execute("insert into t values (50); delete from t where id = 50; select 1"))
    big = bytes(range(256)) * 20_000
    say("big", await conn.fetchval("select $1::bytea", big) == big)
    say("many", sum(r[0] for r in await conn.fetch("select generate_series(1, 20000)")))


async def errors(conn):
    for what in ("insert into t (id) values (1)", "select 1/0", "select nothing from nowhere", "syntax"):
        try:
            await conn.fetch(what)
        except asyncpg.PostgresError as e:
            error(what, e)
    try:
        await conn.executemany("insert into t (id) values ($1)", [(601,), (602,), (601,), (603,)])
    except asyncpg.PostgresError as e:
        error("executemany", e)
    try:
        await conn.fetch("select pg_sleep(600)", timeout=1)
    except asyncio.TimeoutError:
        say("timed out, which cancels")
    say("goes on", await conn.fetchval("select count(*) from t where id > 600"))


async def transactions(conn):
    async with conn.transaction():
        await conn.execute("insert into t (id) values (701)")
        try:
            async with conn.transaction():
                await conn.execute("insert into t (id) values (702)")
                await conn.execute("insert into t (id) values (701)")
        except asyncpg.PostgresError as e:
            error("savepoint", e)
        cursor = await conn.cursor("select id from t order by id")
        say("cursor", [r[0] for r in await cursor.fetch(3)], await cursor.forward(10), (await cursor.fetchrow())[0])
        say("iterated", sum([r[0] async for r in conn.cursor("select id from t", prefetch=90)]))
    try:
        async with conn.transaction(isolation="serializable"):
            await conn.execute("delete from t")
            raise KeyError
    except KeyError:
        pass
    say("after", await conn.fetchval("select count(*) from t where id > 700"))


async def copies(conn):
    rows = [(i, "row %d" % i) for i in range(1000, 6000)]
    say("records", await conn.copy_records_to_table("t", records=rows, columns=("id", "s")))
    say("csv", await conn.copy_to_table("t", source=io.BytesIO(b"7000,a\n7001,b\n"), columns=("id", "s"), format="csv"))
    out = io.BytesIO()
    say("out", await conn.copy_from_query("select id, s from t where id >= $1 order by id", 1000, output=out))
    say(len(out.getvalue()), out.getvalue()[-14:])
    try:
        await conn.copy_records_to_table("t", records=[(8000, "a"), (1000, "b")], columns=("id", "s"))
    except asyncpg.PostgresError as e:
        error("copy", e)


async def asynchronous(conn, url):
    heard = asyncio.get_running_loop().create_future()
    said = asyncio.get_running_loop().create_future()
    await conn.add_listener("news", lambda c, pid, channel, payload: heard.set_result((channel, payload)))
    conn.add_log_listener(lambda c, m: said.set_result((m.severity, m.message)))
    await conn.execute("do $$ begin raise notice 'said'; end $$")
    say("notice", await asyncio.wait_for(said, 60))
    other = await asyncpg.connect(url)
    await other.execute("notify news, 'paper'")
    say("notified", await asyncio.wait_for(heard, 60))
    await other.close()


async def pool(url):
    async with asyncpg.create_pool(url, min_size=4, max_size=4) as p:

        async def one(i):
            async with p.acquire() as conn, conn.transaction():
                await conn.execute("insert into t (id) values ($1)", 9000 + i)
                return await conn.fetchval("select count(*) from t where id = $1", 9000 + i)

        say("pool", set(await asyncio.gather(*(one(i) for i in range(20)))))


async def main(url):
    conn = await asyncpg.connect(url)
    for part in (statements, errors, transactions, copies):
        await part(conn)
    await asynchronous(conn, url)
    await pool(url)
    await conn.close()
    try:
        await asyncpg.connect(url + "_missing")
    except asyncpg.PostgresError as e:
        say("no such database", e.sqlstate)


if sys.argv[1] == "--version":
    say("asyncpg", asyncpg.__version__)
else:
    asyncio.run(main(sys.argv[1]))
