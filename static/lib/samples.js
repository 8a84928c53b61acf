/** Items to begin with in the push form, in each format; those of event streams carry the time of now. */

import { now } from "./now.js";

export const FORMATS = [["application/trig", "TriG"], ["text/turtle", "Turtle"], ["application/n-quads", "N-Quads"],
  ["application/n-triples", "N-Triples"], ["application/ld+json", "JSON-LD"]];

const GENERATED_AT = "http://www.w3.org/ns/prov#generatedAtTime";
const XSD = "http://www.w3.org/2001/XMLSchema#";
const EX = "http://example.org/";

const HEAD = `PREFIX ex: <${EX}>\nPREFIX xsd: <${XSD}>\n\n`;
const TRIPLE = `<${EX}sensor1> <${EX}temperature> "21.5"^^<${XSD}decimal>`;

const WRITERS = {
  "application/trig": (stamp) => `${HEAD}${stamp ? `ex:item <${stamp[0]}> "${stamp[1]}"^^xsd:dateTime .\n` : ""}`
    + "ex:item {\n  ex:sensor1 ex:temperature 21.5 .\n}\n",
  "text/turtle": (stamp) => `${HEAD}ex:sensor1 ex:temperature 21.5 .\n`
    + `${stamp ? `ex:sensor1 <${stamp[0]}> "${stamp[1]}"^^xsd:dateTime .\n` : ""}`,
  "application/n-quads": (stamp) => `${TRIPLE} <${EX}item> .\n`
    + `${stamp ? `<${EX}item> <${stamp[0]}> "${stamp[1]}"^^<${XSD}dateTime> .\n` : ""}`,
  "application/n-triples": (stamp) => `${TRIPLE} .\n`
    + `${stamp ? `<${EX}item> <${stamp[0]}> "${stamp[1]}"^^<${XSD}dateTime> .\n` : ""}`,
  "application/ld+json": (stamp) => `${JSON.stringify({
    "@id": `${EX}item`, ...(stamp ? { [stamp[0]]: { "@value": stamp[1], "@type": `${XSD}dateTime` } } : {}),
    "@graph": [{ "@id": `${EX}sensor1`, [`${EX}temperature`]: { "@value": "21.5", "@type": `${XSD}decimal` } }],
  }, null, 2)}\n`,
};

/** A sample item of a media type for a stream. */
export function sample(type, stream) {
  const stamp = stream.time === "event" ? [stream.timestampPredicate ?? GENERATED_AT, new Date(now()).toISOString()] : null;
  return WRITERS[type](stamp);
}
