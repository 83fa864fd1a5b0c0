// Numbers as people read them. Columns are aligned by tabular figures, so what
// stands under each other has the same number of decimals where it can.

// ms is milliseconds in three figures or so: 0.09, 4.31, 94.9, 328.
export function ms(v) {
  if (v === null || v === undefined || Number.isNaN(v)) return "–";
  if (v < 10) return v.toFixed(2);
  if (v < 100) return v.toFixed(1);
  return v.toFixed(0);
}

const units = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(v) {
  let i = 0;
  for (; v >= 1024 && i < units.length - 1; i++) v /= 1024;
  return `${i === 0 || v >= 100 ? v.toFixed(0) : v.toFixed(1)} ${units[i]}`;
}

export const perSecond = (v) => (v < 10 && v > 0 ? v.toFixed(1) : v.toFixed(0));
export const count = (v) => v.toLocaleString("en");
export const clock = (date) => date.toTimeString().slice(0, 8);

// age is how long something has lasted: 12 s, 4 min, 3.5 h.
export function age(seconds) {
  if (seconds < 100) return `${Math.max(seconds, 0).toFixed(0)} s`;
  if (seconds < 6000) return `${(seconds / 60).toFixed(0)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

const factors = { h: 3600e3, m: 60e3, s: 1e3, ms: 1, "µs": 1e-3, us: 1e-3, ns: 1e-6 };

// duration reads what /v1 writes, such as 1m0.5s, in milliseconds.
export function duration(words) {
  let sum = 0;
  for (const [, n, unit] of words.matchAll(/([\d.]+)(ms|µs|us|ns|h|m|s)/g)) sum += Number(n) * factors[unit];
  return sum;
}

// MARKS are the measures of a server that are so or aren't.
export const MARKS = ["checkpoint", "tickets_short", "flow_control"];

// QUIET are those that tell nothing by themselves.
const QUIET = ["tickets", "tickets_available", "read_tickets", "read_tickets_available", "flow_control_rate", "sample_cost_ms"];

// measures are a server's, in words: "checkpoint, journal 4.10 ms per sync, 128 of
// 128 tickets free". Those that are zero are left out.
export function measures(values) {
  const there = Object.entries(values).filter(([name, v]) => v !== 0 && !QUIET.includes(name));
  const words = there.map(([name, v]) => (MARKS.includes(name) ? name.replaceAll("_", " ") : measure(name, v)));
  if ("tickets" in values) words.push(`${count(values.tickets_available ?? 0)} of ${count(values.tickets)} tickets free`);
  return words.join(", ") || "nothing of note";
}

const NAMES = { checkpoint: "last checkpoint", write: "mean write" };

function measure(name, v) {
  const [, what, unit, per] = name.match(/^(.*?)(?:_(ms|bytes))?(?:_per_(\w+))?$/);
  const number = unit === "bytes" ? bytes(v) : unit === "ms" ? `${ms(v)} ms` : count(Number(v.toPrecision(3)));
  return `${NAMES[what] ?? what.replaceAll("_", " ")} ${number}${per ? ` per ${per}` : ""}`;
}
