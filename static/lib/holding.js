/** What a rule program has reported, as facts with the times at which they begin and end: streams P and N as one list. */

import { milliseconds } from "./format.js";
import { token } from "./terms.js";

export const KEPT_FACTS = 5000;

const TRIPLE = ["s", "p", "o"];
const TIMES = new Set(["from", "until"]);

/** A row's terms by the names of their columns. */
function byName(vars, terms) {
  return Object.fromEntries(vars.map((name, place) => [name, terms[place]]).filter(([, term]) => term));
}

/** The fact of a row: `{triple: [s, p, o]}`, or `{atom, terms}` for a predicate of any number of arguments. */
function factOf(row, vars) {
  if (!row.atom) return { triple: TRIPLE.map((name) => row[name]) };
  return { atom: row.atom, terms: vars.filter((name) => /^a\d+$/.test(name)).map((name) => row[name]).filter(Boolean) };
}

const timeOf = (term) => (term ? milliseconds(term.value) : null);
const beyond = (until) => until ?? Infinity;

/** Of two reports that tell of a fact: that of its begin, the later one. */
function better(one, other) {
  if (!one || !other || one.begins !== other.begins) return one?.begins || !other ? one : other;
  return other.at > one.at ? other : one;
}

/** One more interval in a list in the order of `from`: those that touch become one, with the best of their reports. */
function joined(intervals, one) {
  const apart = intervals.filter(({ from, until }) => beyond(until) < one.from || from > beyond(one.until));
  const touching = [one, ...intervals.filter((interval) => !apart.includes(interval))];
  const until = Math.max(...touching.map((interval) => beyond(interval.until)));
  const whole = { from: Math.min(...touching.map(({ from }) => from)), until: until === Infinity ? null : until,
    report: touching.map(({ report }) => report).reduce(better, null) };
  return [...apart, whole].sort((a, b) => a.from - b.from);
}

/**
 * The intervals of a fact with what has been reported. One that goes on stays by itself: stream N tells its end when it comes.
 */
function received(intervals, one, stream) {
  const isOpen = ({ from, until }) => until === null && from === one.from;
  if (one.until === null) return intervals.some(isOpen) ? intervals : [...intervals, one];
  const ended = intervals.find((interval) => stream === "n" && isOpen(interval));
  const open = intervals.filter((interval) => interval.until === null && interval !== ended);
  const known = { ...one, report: better(one.report, ended?.report ?? null) };
  return [...joined(intervals.filter(({ until }) => until !== null), known), ...open];
}

/** How an interval `{from, until}` (ms; until null: it goes on) stands to a time: `holds`, `ahead` or `ended`. */
export function standing({ from, until }, atMs) {
  if (from > atMs) return "ahead";
  return until === null || atMs < until || from === until && atMs === until ? "holds" : "ended";
}

const ORDER = { holds: 0, ahead: 1, ended: 2 };

export class Holding {
  #facts = new Map();
  #count = 0;
  /** The result that is being taken in, whose id comes with its last chunk `{seq, at, result: {id}, rows}`. */
  #taken = null;
  /** The time of the oldest evaluation that was taken in, in ms. */
  sinceMs = null;
  /** Whether something was reported meanwhile that has not come here. */
  hasHole = false;

  /** Take in an evaluation of stream P or N (`lib/results.js`); in which order they come makes no difference. */
  add({ id, seq, at, vars, rows, size, stream }) {
    if (at !== null) this.sinceMs = Math.min(this.sinceMs ?? at, at);
    const isSame = this.#taken !== null && this.#taken.seq === seq && this.#taken.at === at;
    if (!isSame) this.#taken = { seq, at, result: { id: null }, rows: 0 };
    const { result, rows: before } = this.#taken;
    result.id ??= id ?? null;
    rows.forEach(({ terms }, place) =>
      this.#take(byName(vars, terms), vars, stream, { result, row: before + place, at, begins: stream !== "n" }));
    this.#taken.rows += size ?? rows.length;
    if (this.#count > KEPT_FACTS) this.#forget();
  }

  #take(row, vars, stream, report) {
    const [from, until] = [timeOf(row.from), timeOf(row.until)];
    if (from === null) return;
    const key = vars.filter((name) => !TIMES.has(name) && row[name]).map((name) => `${name} ${token(row[name])}`).join(" ");
    const fact = this.#facts.get(key) ?? { key, ...factOf(row, vars), intervals: [] };
    const before = fact.intervals.length;
    fact.intervals = received(fact.intervals, { from, until, report }, stream);
    this.#facts.set(key, fact);
    this.#count += fact.intervals.length - before;
  }

  /** The oldest half of what has ended first goes. */
  #forget() {
    const all = [...this.#facts.values()].flatMap((fact) => fact.intervals.map((interval) => ({ fact, interval })));
    all.sort((a, b) => beyond(a.interval.until) - beyond(b.interval.until));
    for (const { fact, interval } of all.slice(0, all.length - KEPT_FACTS / 2)) {
      fact.intervals.splice(fact.intervals.indexOf(interval), 1);
      if (!fact.intervals.length) this.#facts.delete(fact.key);
    }
    this.#count = KEPT_FACTS / 2;
  }

  /** Reports are missing; where the program was begun anew, nothing that was reported before stands. */
  gap({ reason }) {
    this.hasHole = reason !== "new-run";
    if (this.hasHole) return;
    this.#facts.clear();
    this.#count = 0;
    this.sinceMs = null;
  }

  get size() {
    return this.#count;
  }

  /**
   * All facts `{key, triple | atom, terms, from, until, standing, report}` as of a time: those that hold, those to come, those
   * that have ended; in each the newest first. `report` is a row `{result: {id}, row}` that told of it.
   */
  at(atMs) {
    const all = [...this.#facts.values()].flatMap(({ intervals, ...fact }) => intervals.reduce(joined, []).map((interval) =>
      ({ ...fact, ...interval, key: `${interval.from} ${fact.key}`, standing: standing(interval, atMs) })));
    const newest = (fact) => (fact.standing === "ended" ? fact.until : fact.from);
    return all.sort((a, b) => ORDER[a.standing] - ORDER[b.standing] || newest(b) - newest(a) || (a.key < b.key ? -1 : 1));
  }
}
