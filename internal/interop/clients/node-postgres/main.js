// What people do with node-postgres, on an empty database: node main.js URL
//
// Prints what it got, and nothing that differs from run to run. --version
// prints what it is made of. NODE_PATH leads to the modules; NODE_NO_WARNINGS
// keeps Node from warning of what pg does, with its process id.
'use strict'

const { pipeline } = require('node:stream/promises')
const { Readable } = require('node:stream')
const { once } = require('node:events')
const { Client, Pool } = require('pg')
const Cursor = require('pg-cursor')
const { from: copyFrom, to: copyTo } = require('pg-copy-streams')

const say = (...what) => console.log(...what.map((w) => (typeof w === 'string' ? w : JSON.stringify(w))))
const fails = async (what, promise) => {
  try {
    await promise
    say(what, 'should have failed')
  } catch (e) {
    say(what, '->', e.code, e.message, e.constraint ?? '')
  }
}

async function statements(c) {
  await c.query('create table t (id int primary key, s text, b bytea, j jsonb, a int[])')
  const put = await c.query('insert into t values ($1, $2, $3, $4, $5)', [1, 'one', Buffer.from([0, 255]), { k: [1, null] }, [1, 2]])
  say('insert', put.command, put.rowCount)
  for (let i = 2; i < 12; i++) {
    await c.query({ name: 'put', text: 'insert into t (id, s) values ($1, $2)', values: [i, 'x'.repeat(i)] })
  }
  say('prepared', (await c.query('select count(*) from pg_prepared_statements')).rows)
  say('row', (await c.query('select * from t where id = $1', [1])).rows)
  const both = await c.query('insert into t (id) values (50); delete from t where id = 50 returning id; select 2 as two')
  say('simple', both.map((r) => [r.command, r.rowCount, r.rows]))
  // Queued at once: node-postgres sends the next when the one before is done.
  const queued = await Promise.all([1, 2, 3].map((i) => c.query('select $1::int as i', [i])))
  say('queued', queued.map((r) => r.rows[0].i))
  const big = Buffer.alloc(5_000_000, 'wirewait')
  say('big', (await c.query('select $1::bytea as b', [big])).rows[0].b.equals(big))
  say('many', (await c.query('select generate_series(1, 20000) as i')).rows.reduce((sum, r) => sum + r.i, 0))
}

async function errors(c) {
  await fails('duplicate', c.query('insert into t (id) values ($1)', [1]))
  await fails('division', c.query('select 1/0'))
  await fails('missing', c.query('select nothing from nowhere'))
  await fails('syntax', c.query('syntax $1', [1]))
  await fails('type', c.query('select $1::int', ['one']))
  say('goes on', (await c.query("select 'yes' as ok")).rows)
}

async function transactions(c) {
  await c.query('begin')
  await c.query('update t set s = $1 where id < 4', ['updated'])
  await c.query('savepoint a')
  await fails('in block', c.query('insert into t (id) values (1)'))
  await fails('aborted', c.query('select 1'))
  await c.query('rollback to a')
  await c.query('delete from t where id = 4')
  await c.query('commit')
  await c.query('begin')
  await c.query('delete from t')
  await c.query('rollback')
  await c.query('begin')
  await fails('again', c.query('insert into t (id) values (1)'))
  say('failed block', (await c.query('commit')).command)
  say('after', (await c.query("select count(*), count(*) filter (where s = 'updated') as updated from t")).rows)
}

async function streams(c) {
  const rows = Array.from({ length: 5000 }, (_, i) => `${1000 + i}\trow ${i}\n`)
  const into = c.query(copyFrom('copy t (id, s) from stdin'))
  await pipeline(Readable.from(rows), into)
  say('copy in', into.rowCount)
  const out = c.query(copyTo('copy (select id, s from t where id >= 1000 order by id) to stdout'))
  const got = []
  for await (const chunk of out) got.push(chunk)
  say('copy out', Buffer.concat(got).toString() === rows.join(''))
  await fails('copy', pipeline(Readable.from(['8000\tx\n', 'bad\n']), c.query(copyFrom('copy t (id, s) from stdin'))))
  const cursor = c.query(new Cursor('select id from t where id >= $1 order by id', [1000]))
  const first = await cursor.read(700)
  const second = await cursor.read(10)
  say('cursor', first.length, second.at(-1))
  await cursor.close()
}

async function asynchronous(c, url) {
  const notice = once(c, 'notice')
  await c.query("do $$ begin raise notice 'said'; end $$")
  say('notice', (await notice)[0].message)
  const news = once(c, 'notification')
  await c.query('listen news')
  const pool = new Pool({ connectionString: url, max: 4 })
  await pool.query("select pg_notify('news', 'paper')")
  say('notified', (await news)[0].payload)
  await Promise.all(Array.from({ length: 20 }, (_, i) => pool.query('insert into t (id) values ($1)', [9000 + i])))
  say('pool', (await pool.query('select count(*) from t where id >= 9000')).rows)
  await pool.end()
}

async function killed(c, url) {
  const victim = new Client(url)
  await victim.connect()
  const pid = (await victim.query('select pg_backend_pid() as pid')).rows[0].pid
  const end = once(victim, 'error')
  victim.on('error', () => {}) // soon after it comes another: that the connection ended
  await c.query('select pg_terminate_backend($1)', [pid])
  say('killed', (await end)[0].code)
  await fails('no such database', new Client(url + '_missing').connect())
}

async function main(url) {
  const c = new Client(url)
  await c.connect()
  for (const part of [statements, errors, transactions, streams]) await part(c)
  await asynchronous(c, url)
  await killed(c, url)
  await c.end()
}

if (process.argv[2] === '--version') {
  say(`pg ${require('pg/package.json').version} (Node ${process.version.slice(1)})`)
} else {
  main(process.argv[2]).catch((e) => {
    console.error(e)
    process.exit(1)
  })
}
