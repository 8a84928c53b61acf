/** What time it is: by the server's clock, which stamps what arrives, and not by that of the browser, which may be wrong. */

const SURE_MS = 2000;
let aheadMs = 0;

/** Note the `Date` of an answer. It has whole seconds, so that small differences tell nothing. */
export function noteDate(text) {
  const measured = Date.parse(text ?? "") - Date.now();
  if (Math.abs(measured - aheadMs) > SURE_MS) aheadMs = measured;
}

/** Milliseconds since 1970 by the server's clock, as far as it is known. */
export function now() {
  return Date.now() + aheadMs;
}

/** The whole second that it is, in milliseconds. */
export function thisSecond() {
  return 1000 * Math.floor(now() / 1000);
}
