/** Tokens of query texts, TriG and rule programs, for light colouring and for finding prefixes. Not a parser: the server is. */

import { NOTATIONS } from "./notations.js";

const KEYWORDS = new Set(`
register query stream compute computed every report on change full start at as prefix base select construct ask
describe from named window range step slide tumbling triples items now to all using rules graph where filter optional
union minus exists not in bind values undef group by having order asc desc limit offset distinct reduced rstream
istream dstream service silent`.trim().split(/\s+/));

const FUNCTIONS = new Set(`
count sum avg min max sample group_concat separator str lang langmatches datatype bound iri uri bnode rand abs ceil
floor round concat strlen ucase lcase encode_for_uri contains strstarts strends strbefore strafter year month day
hours minutes seconds timezone tz uuid struuid md5 sha1 sha256 sha384 sha512 coalesce if strlang strdt sameterm isiri
isuri isblank isliteral isnumeric regex substr replace timestamp true false a`.trim().split(/\s+/));

const GRAMMAR = [
  ["comment", /#[^\n]*/y],
  ["iri", /<[^\s<>"{}|^`\\]*>/y],
  ["string", /"""(?:[^\\]|\\[\s\S])*?"""|'''(?:[^\\]|\\[\s\S])*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/y],
  ["variable", /[?$][\w\u00b7-\uffff]+/y],
  ["lang", /@[A-Za-z][A-Za-z0-9-]*/y],
  ["duration", /(?:\d+(?:\.\d+)?(?:ms|s|m|h|d)|P(?:\d+D)?(?:T(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?)(?![\w-])/y],
  ["number", /[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/y],
  ["name", /(?:[A-Za-z_\u00c0-\uffff][\w\u00b7-\uffff-]*(?:\.[\w-]+)*)?:(?:[\w\u00b7-\uffff:%-]|\.(?=[\w:%-])|\\.)*/y],
  ["word", /[A-Za-z_\u00c0-\uffff][\w\u00b7-\uffff-]*/y],
  ["space", /\s+/y],
  ["mark", /\^\^|&&|\|\||[!<>]=|[\s\S]/y],
];

function kind(type, text) {
  if (type !== "word") return type;
  const word = text.toLowerCase();
  return KEYWORDS.has(word) ? "keyword" : FUNCTIONS.has(word) ? "function" : "word";
}

const SPARQL = [GRAMMAR, (found) => found.map((token) => ({ ...token, type: kind(token.type, token.text) }))];

/** The tokens `{type, text, start}` of a text in a language of `lib/languages.js`, in order and without a hole. */
export function tokens(text, language = "sparql") {
  const [grammar, kinds] = NOTATIONS[language] ?? SPARQL;
  const found = [];
  for (let start = 0; start < text.length;) {
    for (const [type, pattern] of grammar) {
      pattern.lastIndex = start;
      const match = pattern.exec(text);
      if (!match || !match[0]) continue;
      found.push({ type, text: match[0], start });
      start = pattern.lastIndex;
      break;
    }
  }
  return kinds(found);
}

const RIF_PREFIX = /\bPrefix\s*\(\s*([\w.-]*)\s*<([^>]*)>\s*\)/g;

/** The prefixes that a query or a rule program declares, as `[name, iri]`, the last of a name winning. */
export function prefixesOf(text, language = "sparql") {
  const words = tokens(text, language).filter((token) => token.type !== "space" && token.type !== "comment");
  const found = new Map([...text.matchAll(RIF_PREFIX)].map(([, name, iri]) => [name, iri]));
  for (const [position, word] of words.entries()) {
    const [name, iri] = [words[position + 1], words[position + 2]];
    if (/^@?prefix$/i.test(word.text) && name?.type === "name" && iri?.type === "iri") {
      found.set(name.text.slice(0, -1), iri.text.slice(1, -1));
    }
  }
  return [...found];
}

/** The name that a statement registers (`REGISTER QUERY hot AS`), or the empty text. */
export function nameOf(text) {
  const words = tokens(text).filter((token) => token.type !== "space" && token.type !== "comment");
  const place = words.findIndex((word) => /^register$/i.test(word.text));
  const name = words[place + 2];
  return place >= 0 && name && (name.type === "word" || name.type === "function") ? name.text : "";
}
