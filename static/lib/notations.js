/** How texts of rule languages fall into tokens, for light colouring: RIF in both syntaxes, LARS, DatalogMTL. */

const words = (text) => new Set(text.trim().split(/\s+/));

const NAME = "(?:[A-Za-z_\\u00c0-\\uffff][\\w\\u00b7-\\uffff-]*(?:\\.[\\w-]+)*)?:(?:[\\w\\u00b7-\\uffff:%-]|\\.(?=[\\w:%-]))+";
const VARIABLE = ["variable", /\?[\w\u00b7-\uffff]+/y];
const LANG = ["lang", /@[A-Za-z]+(?:-[A-Za-z0-9]+)*/y];
const NUMBER = ["number", /\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y];
const SPACE = ["space", /\s+/y];

const RIF_WORDS = words("Document Base Prefix Import Window Group Forall Exists If Then And Or External List");
const RIF = [
  ["comment", /\(\*[\s\S]*?(?:\*\)|$)/y],
  ["iri", /<[^\s<>"{}|^`\\]*>/y],
  ["string", /"(?:[^"\\]|\\.)*"/y],
  LANG, VARIABLE,
  ["name", new RegExp(`(?!:-)${NAME}`, "y")],
  ["duration", /\d+(?:\.\d+)?\s*(?:ms|s|m|h)(?!\w)/y],
  ["number", /[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/y],
  ["word", /[A-Za-z_\u00c0-\uffff][\w\u00b7-\uffff-]*/y],
  SPACE,
  ["mark", /:-|->|##|\^\^|[\s\S]/y],
];

const XML = [
  ["comment", /<!--[\s\S]*?(?:-->|$)|<[?!][^>]*>?/y],
  ["keyword", /<\/?[\w:.-]*|\/?>/y],
  ["name", /[\w:.-]+(?=\s*=\s*["'])/y],
  ["string", /(?<==\s*)(?:"[^"]*"|'[^']*')/y],
  ["number", /&#?\w+;/y],
  SPACE,
  ["mark", /[\w:.-]+|[\s\S]/y],
];

const DATALOG = [
  ["comment", /%[^\n]*/y],
  ["iri", /<[A-Za-z][\w+.-]*:[^<>"{}|^`\\\s]*>/y],
  ["string", /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/y],
  ["lang", /(?<=["'])@[A-Za-z]+(?:-[A-Za-z0-9]+)*/y],
  VARIABLE,
  ["operator", /<[-+]>|\[[-+]\](?=[[(])|[\u25c7\u25a1]/y],
  ["name", new RegExp(`(?!\\w*:-)${NAME}|[\\w.-]*:(?=\\s*<)`, "y")],
  ["duration", /\d+(?:\.\d+)?\s*(?:ms|sec|s|min|m|h|d)(?!\w)/y],
  NUMBER,
  ["word", /[A-Za-z_\u00c0-\uffff][\w\u00b7-\uffff-]*/y],
  SPACE,
  ["mark", /<-|\u2190|:-|<=|>=|!=|<>|==|&&|\^\^|[\s\S]/y],
];

const LINES = words("prefix from stream granularity start at unit");
const LINE_BEGINS = words("prefix from granularity start unit");
const OPERATORS = { lars: words("diamond box not and"),
  datalogmtl: words("boxminus boxplus diamondminus diamondplus always sometime since until not") };
const ARITHMETIC = new Set(["=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/"]);
const CONSTANTS = words("true false");

function rifKind({ type, text }) {
  if (type === "word") return RIF_WORDS.has(text) ? "keyword" : "word";
  return type === "name" && /^(?:func|pred):/.test(text) ? "function" : type;
}

/** Whether a word begins a line before the rules: the first of its line, and no predicate. */
function beginsLine(before, { text }, next) {
  const isFirst = before.includes("\n") && LINE_BEGINS.has(text.toLowerCase());
  return isFirst && !/^(?:[(.,@]|:-|<-|\u2190)/.test(next ?? ".");
}

/** What a word of a Datalog text is by what stands around it: `depth` counts the open brackets. */
function wordKind(language, { text }, { last, next, depth }) {
  const lower = text.toLowerCase();
  if (next === "(") return OPERATORS[language].has(lower) ? "keyword" : "name";
  if (OPERATORS[language].has(lower)) return "keyword";
  if (language === "datalogmtl" && lower === "inf") return "number";
  if (CONSTANTS.has(text)) return "function";
  const isTerm = depth > 0 || last === "@" || ARITHMETIC.has(last) || ARITHMETIC.has(next);
  return isTerm && /^[A-Z_\u00c0-\u00de]/.test(text) ? "variable" : isTerm ? "word" : "name";
}

/** The tokens of a Datalog text with words told apart: predicates, variables, operators, lines before the rules. */
function datalogKinds(found, language) {
  const solid = found.filter(({ type }) => type !== "space" && type !== "comment");
  let depth = 0;
  let place = 0;
  let line = false;
  let before = "";
  return found.map((token) => {
    if (token.type === "space" || token.type === "comment") {
      before += token.text;
      return token;
    }
    const [last, next] = [solid[place - 1]?.text, solid[place + 1]?.text];
    place += 1;
    if (beginsLine(place > 1 ? before : "\n", token, next)) line = true;
    else if (before.includes("\n")) line = false;
    before = "";
    if ("([{".includes(token.text)) depth += 1;
    if (")]}".includes(token.text)) depth = Math.max(0, depth - 1);
    if (token.type === "operator") return { ...token, type: "keyword" };
    if (token.type !== "word") return token;
    const type = line && LINES.has(token.text.toLowerCase()) ? "keyword" : wordKind(language, token, { last, next, depth });
    return { ...token, type };
  });
}

/** By language: the patterns of its tokens, and what makes of these the tokens to colour. */
export const NOTATIONS = {
  rif: [RIF, (found) => found.map((token) => ({ ...token, type: rifKind(token) }))],
  rifxml: [XML, (found) => found],
  lars: [DATALOG, (found) => datalogKinds(found, "lars")],
  datalogmtl: [DATALOG, (found) => datalogKinds(found, "datalogmtl")],
};
