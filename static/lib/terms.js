/** RDF terms as the interface gives them (SPARQL Results JSON, N-Quads, JSON-LD) and as people read them. */

const XSD = "http://www.w3.org/2001/XMLSchema#";
const RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
const NUMERIC = new Set(["integer", "decimal", "double", "float", "int", "long", "short", "byte", "nonNegativeInteger",
  "positiveInteger", "nonPositiveInteger", "negativeInteger", "unsignedInt", "unsignedLong", "unsignedShort", "unsignedByte",
].map((name) => XSD + name));
const WELL_KNOWN = [["rdf", RDF], ["rdfs", "http://www.w3.org/2000/01/rdf-schema#"], ["xsd", XSD],
  ["owl", "http://www.w3.org/2002/07/owl#"], ["prov", "http://www.w3.org/ns/prov#"]];

/** Prefixes for display: those of the query first, longest IRI first, then the well known. */
export function displayPrefixes(declared) {
  const order = (pairs) => [...pairs].filter(([, iri]) => iri).sort((a, b) => b[1].length - a[1].length);
  return [...order(declared), ...order(WELL_KNOWN)];
}

/** `ex:a` where a prefix fits, else `<iri>`. */
export function shorten(iri, prefixes) {
  for (const [name, start] of prefixes) {
    const rest = iri.slice(start.length);
    if (iri.startsWith(start) && /^[\w-]([\w.-]*[\w-])?$/.test(rest)) return `${name}:${rest}`;
  }
  return `<${iri}>`;
}

/** The number that a term stands for, or null. */
export function numberOf(term) {
  if (!term || !NUMERIC.has(term.datatype)) return null;
  const text = term.value.trim();
  const special = { INF: Infinity, "+INF": Infinity, "-INF": -Infinity, NaN };
  return text in special ? special[text] : Number(text);
}

/** Whether a term is a point in time (dateTime, date), which is no label for a series. */
export function isTime(term) {
  return Boolean(term) && [XSD + "dateTime", XSD + "date", XSD + "dateTimeStamp"].includes(term.datatype);
}

function numberText(term) {
  const number = numberOf(term);
  const exact = term.datatype !== XSD + "double" && term.datatype !== XSD + "float";
  return exact || !Number.isFinite(number) ? term.value : String(number);
}

/** A term for a cell: `{kind, text, note, title}`; kinds are iri, blank, number, time, boolean, text, typed and unbound. */
export function display(term, prefixes) {
  if (!term) return { kind: "unbound", text: "–", note: "", title: "unbound" };
  if (term.type === "uri") return { kind: "iri", text: shorten(term.value, prefixes), note: "", title: term.value };
  if (term.type === "bnode") return { kind: "blank", text: `_:${term.value}`, note: "", title: "blank node" };
  const lang = term["xml:lang"];
  if (lang) return { kind: "text", text: term.value, note: `@${lang}`, title: token(term) };
  const type = term.datatype;
  if (!type || type === XSD + "string") return { kind: "text", text: term.value, note: "", title: token(term) };
  if (NUMERIC.has(type)) return { kind: "number", text: numberText(term), note: "", title: token(term) };
  if (isTime(term)) return { kind: "time", text: term.value, note: "", title: token(term) };
  if (type === XSD + "boolean") return { kind: "boolean", text: term.value, note: "", title: token(term) };
  return { kind: "typed", text: term.value, note: shorten(type, prefixes), title: token(term) };
}

/** What a column of terms is: the short name of its only datatype, `IRI`, `text`, or the empty text where mixed. */
export function typeName(term, prefixes) {
  if (term.type === "uri") return "IRI";
  if (term.type === "bnode") return "blank node";
  if (term["xml:lang"] || !term.datatype || term.datatype === XSD + "string") return "text";
  return shorten(term.datatype, prefixes).replace(/^xsd:/, "");
}

const ESCAPES = { "\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** The N-Triples token of a term. */
export function token(term) {
  if (term.type === "uri") return `<${term.value}>`;
  if (term.type === "bnode") return `_:${term.value}`;
  const text = `"${term.value.replace(/[\\"\n\r\t]/g, (c) => ESCAPES[c])}"`;
  if (term["xml:lang"]) return `${text}@${term["xml:lang"]}`;
  return term.datatype && term.datatype !== XSD + "string" ? `${text}^^<${term.datatype}>` : text;
}

function unescape(text) {
  const plain = { n: "\n", r: "\r", t: "\t", b: "\b", f: "\f" };
  return text.replace(/\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))/g, (_, four, eight, one) =>
    one ? plain[one] ?? one : String.fromCodePoint(parseInt(four ?? eight, 16)));
}

const TOKEN = /<([^>]*)>|_:(\S+)|"((?:[^"\\]|\\.)*)"(?:@([\w-]+)|\^\^<([^>]*)>)?/y;

function readToken(line, start) {
  TOKEN.lastIndex = start;
  const match = TOKEN.exec(line);
  if (!match) return null;
  const [, iri, label, text, lang, datatype] = match;
  if (iri !== undefined) return { type: "uri", value: unescape(iri) };
  if (label !== undefined) return { type: "bnode", value: label };
  const term = { type: "literal", value: unescape(text) };
  if (lang) term["xml:lang"] = lang;
  if (datatype) term.datatype = unescape(datatype);
  return term;
}

function readLine(line) {
  const terms = [];
  for (let place = 0; terms.length < 4;) {
    while (line[place] === " " || line[place] === "\t") place += 1;
    const term = readToken(line, place);
    if (!term) break;
    terms.push(term);
    place = TOKEN.lastIndex;
  }
  return terms;
}

/** The triples `[s, p, o]` of an N-Triples text, or those of the named graphs of an N-Quads text, which `named` says it is. */
export function parseQuads(text, named = false) {
  const lines = text.split("\n").map(readLine).filter((terms) => terms.length >= 3);
  const quads = lines.filter((terms) => terms.length === 4);
  return (named || quads.length ? quads : lines).map((terms) => terms.slice(0, 3));
}
