/** Triples of the JSON-LD that the server writes: flat nodes, expanded or with a context of prefixes and typed terms. */

const XSD = "http://www.w3.org/2001/XMLSchema#";
const TYPE = { type: "uri", value: "http://www.w3.org/1999/02/22-rdf-syntax-ns#type" };

function expand(name, context) {
  const entry = context[name];
  if (entry) return typeof entry === "string" ? entry : expand(entry["@id"], context);
  const [, prefix, rest] = /^([^:]*):(.*)$/.exec(name) ?? [];
  const start = prefix !== undefined && !rest.startsWith("//") ? context[prefix] : undefined;
  if (start) return (typeof start === "string" ? start : start["@id"]) + rest;
  return prefix === undefined && context["@vocab"] ? context["@vocab"] + name : name;
}

function resource(id, context) {
  return id.startsWith("_:") ? { type: "bnode", value: id.slice(2) } : { type: "uri", value: expand(id, context) };
}

function literal(value, datatype, lang) {
  const native = { boolean: "boolean", number: Number.isInteger(value) ? "integer" : "double" }[typeof value];
  const term = { type: "literal", value: String(value) };
  if (lang) term["xml:lang"] = lang;
  else if (datatype ?? native) term.datatype = datatype ?? XSD + native;
  return term;
}

function object(value, declared, context) {
  if (typeof value !== "object") {
    return declared === "@id" ? resource(value, context) : literal(value, declared && expand(declared, context));
  }
  if ("@id" in value) return resource(value["@id"], context);
  return literal(value["@value"], value["@type"] && expand(value["@type"], context), value["@language"]);
}

/** The triples `[s, p, o]` of a document with `@graph` (or of one node), terms as in SPARQL Results JSON. */
export function parseJsonLd(document) {
  const context = Object.assign({}, ...[document?.["@context"] ?? {}].flat().filter((part) => typeof part === "object"));
  const nodes = [document?.["@graph"] ?? []].flat();
  const triples = [];
  for (const node of nodes) {
    const subject = resource(node["@id"] ?? "_:node", context);
    for (const type of [node["@type"] ?? []].flat()) triples.push([subject, TYPE, resource(type, context)]);
    for (const [name, values] of Object.entries(node).filter(([key]) => !key.startsWith("@"))) {
      const predicate = { type: "uri", value: expand(name, context) };
      for (const value of [values].flat()) triples.push([subject, predicate, object(value, context[name]?.["@type"], context)]);
    }
  }
  return triples;
}
