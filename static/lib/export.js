/** The evaluations of a page as CSV and JSON. */

const iso = (ms) => (ms === null ? "" : new Date(ms).toISOString());

/** A CSV cell (RFC 4180); a leading `=`, `+`, `-` or `@` of a text is kept from being a formula by an apostrophe. */
function cell(text, isNumber) {
  const safe = !isNumber && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function termCell(term) {
  return term ? cell(term.value, Number.isFinite(Number(term.value))) : "";
}

/** Columns: number, time, sign (delta feeds) and the variables; the value of each term. */
export function csv(evaluations) {
  const vars = [...new Set(evaluations.flatMap((entry) => entry.vars))];
  const truths = evaluations.some((entry) => entry.kind === "boolean") ? ["boolean"] : [];
  const lines = [["#", "at", "change", ...vars, ...truths].map((text) => cell(text, true))];
  for (const { seq, at, kind, boolean, vars: own, rows } of evaluations) {
    if (kind === "boolean") lines.push([seq ?? "", iso(at), "", ...vars.map(() => ""), boolean]);
    for (const { sign, terms } of rows) {
      const change = { "+": "added", "-": "removed" }[sign] ?? "";
      lines.push([seq ?? "", iso(at), change, ...vars.map((name) => termCell(terms[own.indexOf(name)]))]);
    }
  }
  return lines.map((line) => line.join(",")).join("\r\n") + "\r\n";
}

/** One object per evaluation, terms as in SPARQL Results JSON. */
export function json(evaluations) {
  const objects = evaluations.map(({ id, seq, at, windows, kind, boolean, vars, rows }) => ({
    id, seq, at: iso(at), windows,
    ...(kind === "boolean" ? { boolean } : { rows: rows.map(({ sign, terms }) => ({
      ...(sign ? { change: sign === "+" ? "added" : "removed" } : {}),
      ...Object.fromEntries(vars.map((name, i) => [name, terms[i]]).filter(([, term]) => term)),
    })) }),
  }));
  return JSON.stringify(objects, null, 2);
}
