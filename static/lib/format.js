/** Times, numbers and durations as people read them. Times are UTC throughout, as in queries and streams. */

import { now } from "./now.js";

const NUMBER = new Intl.NumberFormat("en-GB");

/** `1,234`; a dash where the number is not known. */
export function count(number) {
  return number === null || number === undefined ? "–" : NUMBER.format(number);
}

/** `1 row`, `2 rows`. */
export function plural(number, word, words = `${word}s`) {
  return `${count(number)} ${number === 1 ? word : words}`;
}

/** An ISO time or milliseconds as milliseconds, or null. */
export function milliseconds(time) {
  if (typeof time === "number") return time;
  const ms = Date.parse(time ?? "");
  return Number.isNaN(ms) ? null : ms;
}

const two = (number) => String(number).padStart(2, "0");

/** `05:04:00`, with milliseconds where there are any, with the date where it is not today's. */
export function clock(time, today = new Date(now())) {
  const ms = milliseconds(time);
  if (ms === null) return "–";
  const iso = new Date(ms).toISOString();
  const day = iso.slice(0, iso.indexOf("T"));
  const fraction = ms % 1000 ? iso.slice(-5, -1) : "";
  const hour = iso.slice(iso.indexOf("T") + 1, -5);
  return (day === today.toISOString().slice(0, 10) ? "" : `${day} `) + hour + fraction;
}

/** The time of today, or the date of another day: for narrow places. */
export function shortClock(time) {
  const text = clock(time);
  return text.includes(" ") ? text.slice(0, text.indexOf(" ")) : text;
}

/** `40 ms`, `2.1 s`, `3 min`, `2.5 h`, `4 d`: at most three figures. */
export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  for (const [unit, length] of [["d", 86400000], ["h", 3600000], ["min", 60000], ["s", 1000]]) {
    if (Math.abs(ms) >= length) return `${Number((ms / length).toPrecision(ms >= 100 * length ? 3 : 2))} ${unit}`;
  }
  return `${Math.round(ms)} ms`;
}

/** How old an answer was when it was given; a dash where events of another day were replayed, or come before their time. */
export function latency(ms) {
  return ms > 86400000 || ms < 0 ? "–" : duration(ms);
}

/** Milliseconds of an xsd:dayTimeDuration such as `PT10S`, or null. */
export function isoDuration(text) {
  const parts = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/.exec(text ?? "");
  if (!parts || parts[0] === "P") return null;
  const [, days = 0, hours = 0, minutes = 0, seconds = 0] = parts;
  return Math.round(((days * 24 + +hours) * 60 + +minutes) * 60000 + seconds * 1000);
}

/** `PT10S` as `10 s`; other texts as they are. */
export function durationText(text) {
  const ms = isoDuration(text);
  return ms === null ? String(text ?? "–") : duration(ms);
}

export function rate(perSecond) {
  if (perSecond === null || perSecond === undefined) return "–";
  return `${perSecond >= 100 ? count(Math.round(perSecond)) : Number(perSecond.toFixed(1))}/s`;
}

/** A number of an axis or a legend: at most six figures, no noise of binary fractions. */
export function figure(number) {
  if (!Number.isFinite(number)) return String(number);
  const size = Math.abs(number);
  if (size !== 0 && (size >= 1e9 || size < 1e-4)) return number.toExponential(2);
  return NUMBER.format(Number(number.toPrecision(6)));
}

/** The end of an IRI, for people: `http://example.org/temps` as `temps`. */
export function tail(iri) {
  return /([^/#:]+)[/#]?$/.exec(iri ?? "")?.[1] ?? iri ?? "";
}
