// What happened between two answers of /v1/waits. Its counts only ever grow, so
// the later less the earlier is what was seen in between:
//
//	buckets at 12:00:05   2 ms: 40   95 ms: 7
//	buckets at 12:00:10   2 ms: 90   95 ms: 9   96 ms: 1
//	in these 5 seconds    2 ms: 50   95 ms: 2   96 ms: 1  ->  p50 2, p99 96

export const PARTS = ["receive", "request", "server", "replication", "reply"];

const KEEP = 130_000; // ms of answers
const WINDOW = 5_000; // ms that a point of the chart looks back
const RECENT = 10_000; // ms of the table

export class Series {
  constructor() {
    this.answers = []; // {at, rows: Map(concern -> row)}
    this.points = []; // {at, by: Map(concern -> figures)}
  }

  clear() {
    this.answers = [];
    this.points = [];
  }

  add(at, answer) {
    const rows = new Map();
    for (const r of answer.rows.filter((r) => r.write)) { // two protocols may share a word
      const name = r.waits_for || "unknown";
      rows.set(rows.has(name) ? `${name} (${r.protocol})` : name, r);
    }
    const last = this.answers.at(-1);
    if (last && [...last.rows].some(([name, r]) => (rows.get(name)?.count ?? 0) < r.count)) this.clear(); // counted afresh
    this.answers.push({ at, rows });
    while (this.answers[0].at < at - KEEP) this.answers.shift();
    this.points.push({ at, by: this.since(WINDOW) });
    while (this.points[0].at < at - KEEP) this.points.shift();
  }

  // since is what was seen in the latest answer and not in that of so long ago.
  since(span) {
    const now = this.answers.at(-1);
    const from = this.answers.findLast((a) => a.at <= now.at - span) ?? this.answers[0];
    const by = new Map();
    for (const [name, row] of now.rows) by.set(name, difference(row, from === now ? row : from.rows.get(name)));
    return by;
  }

  recent() {
    return this.answers.length ? this.since(RECENT) : new Map();
  }

  // rows are the latest, as /v1 has them.
  rows() {
    const by = new Map();
    for (const [name, r] of this.answers.at(-1)?.rows ?? []) by.set(name, whole(r));
    return by;
  }
}

function whole(r) {
  const figures = { count: r.count, errors: r.errors, p50: r.total.p50_ms, p95: r.total.p95_ms, p99: r.total.p99_ms, mean: r.total.mean_ms, parts: {}, releasedBy: r.released_by ?? {} };
  for (const p of PARTS) figures.parts[p] = r[p].mean_ms;
  return figures;
}

// difference of a later row and an earlier one, which may not have been there.
function difference(now, was) {
  const counts = new Map(now.buckets.ms.map((v, i) => [v, now.buckets.counts[i]]));
  was?.buckets.ms.forEach((v, i) => counts.set(v, counts.get(v) - was.buckets.counts[i]));
  const sorted = [...counts].filter(([, n]) => n > 0);
  const timed = sorted.reduce((sum, [, n]) => sum + n, 0);
  const mean = (part) => {
    const sum = (r) => (r ? r[part].mean_ms * (r.count - r.missing) : 0);
    return timed ? Math.max(sum(now) - sum(was), 0) / timed : null;
  };
  const parts = {};
  for (const p of PARTS) parts[p] = mean(p);
  const releasedBy = {};
  for (const [name, n] of Object.entries(now.released_by ?? {})) {
    const more = n - (was?.released_by?.[name] ?? 0);
    if (more > 0) releasedBy[name] = more;
  }
  return {
    count: now.count - (was?.count ?? 0), errors: now.errors - (was?.errors ?? 0),
    p50: quantile(sorted, timed, 0.5), p95: quantile(sorted, timed, 0.95), p99: quantile(sorted, timed, 0.99),
    mean: mean("total"), parts, releasedBy,
  };
}

function quantile(sorted, total, q) {
  let seen = 0;
  for (const [value, n] of sorted) if ((seen += n) >= Math.max(Math.ceil(q * total), 1)) return value;
  return null;
}
