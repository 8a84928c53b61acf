/** The languages of the editor: their names, their media types, and which one a text is in. The server decides; this tells it. */

export const LANGUAGES = {
  sparql: { name: "SPARQL / C-SPARQL", type: "application/sparql-query" },
  rif: { name: "RIF", type: "text/x-rif-ps" },
  rifxml: { name: "RIF/XML", type: "application/rif+xml" },
  lars: { name: "LARS", type: "text/x-lars" },
  datalogmtl: { name: "DatalogMTL", type: "text/x-datalogmtl" },
};

/** The languages in which rule sets are written. */
export const RULE_LANGUAGES = Object.keys(LANGUAGES).filter((language) => language !== "sparql");

/** The language of a media type, or null. */
export function languageOfType(type) {
  return Object.keys(LANGUAGES).find((language) => LANGUAGES[language].type === type) ?? null;
}

const QUERY = /^(?:base|register|select|ask|construct|describe|insert|delete)\b/i;
const LINE = /^(?:prefix\s+[\w.-]*:\s*<[^>\n]*>|from\s+(?:stream\s+)?(?:<[^>\n]*>|[\w.-]*:[\w.-]*))/i;
const OWN_LINES = [["lars", /^(?:granularity\s+\d|start\s+at\b)/i], ["datalogmtl", /^unit\s+\d/i]];
// What only one of the two has: arrows, operators, and where the @ of a time stands.
const LARS = /<-(?!>)|\u2190|[\u25c7\u25a1]|\b(?:diamond|box)\b\s*(?![\s(.,@]|:-)|(?:^|[.,\n]|:-)[ \t]*@ *[\w?]+ +[\w<:]/i;
const DATALOGMTL = new RegExp([/\b(?:boxminus|boxplus|diamondminus|diamondplus)\b/, /\b(?:sometime|always)\s*[[(]/,
  /<[-+]>|\[[-+]\]/, /[\w)]@\s*[[(\d-]/].map(({ source }) => source).join("|"), "i");
const ATOM = /^(?:<[^>\n]*>|[\w.-]*:[\w.-]+|\w+)\s*(?:\(|:-)/;

const withoutBlanks = (text) => text.replace(/^(?:\s|[#%][^\n]*)+/, "");
const bare = (text) => text.replace(/%[^\n]*|"(?:[^"\\\n]|\\.)*"|<[A-Za-z][\w+.-]*:[^<>\s]*>/g, " ");

/**
 * The language that a text looks like: RIF as the server tells it (grammar/rule_sets.py), LARS and DatalogMTL by their lines
 * before the rules, their arrows and operators; a rule of neither (`p(X) :- q(X)`) is DatalogMTL. Else SPARQL.
 */
export function languageOf(text) {
  const start = text.replace(/^\ufeff/, "").trimStart();
  if (start.startsWith("<") && !ATOM.test(start)) return "rifxml";
  if (/^(?:Document\b|\(\*)/.test(start)) return "rif";
  let rest = withoutBlanks(start);
  let sources = false;
  for (let line = LINE.exec(rest); line; line = LINE.exec(rest)) {
    sources ||= /^from/i.test(line[0]);
    rest = withoutBlanks(rest.slice(line[0].length));
  }
  const own = OWN_LINES.find(([, pattern]) => pattern.test(rest));
  if (own) return own[0];
  if (QUERY.test(rest)) return "sparql";
  const body = bare(rest);
  if (LARS.test(body)) return "lars";
  return DATALOGMTL.test(body) || ATOM.test(rest) || sources ? "datalogmtl" : "sparql";
}
