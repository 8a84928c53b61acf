/** Line charts and true/false strips in SVG. Colours come from classes, sizes from attributes: nothing inline. */

import { h, keyed, s, setAttribute, setText } from "./dom.js";
import { clock, figure } from "./format.js";

const HEIGHT = 176;
const EDGE = { left: 58, right: 14, top: 10, bottom: 24 };
const STEPS_MS = [100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 216e5, 432e5, 864e5];

/** Round values from `low` to `high`, about `wanted` of them. */
export function ticks(low, high, wanted = 5) {
  const rough = (high - low) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
  const found = [];
  for (let place = Math.ceil(low / step); place * step <= high + step * 1e-9; place += 1) found.push(place * step);
  return found;
}

function widthOf(svg) {
  return Math.max(260, svg.parentElement?.clientWidth ?? 0);
}

function timeTicks(low, high, wanted) {
  const step = STEPS_MS.find((length) => (high - low) / length <= wanted) ?? Math.ceil((high - low) / wanted);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(at);
  return found;
}

function scale(low, high, from, to) {
  const span = high - low || 1;
  return (value) => from + ((value - low) / span) * (to - from);
}

/** Room above and below the values, so that no line runs on the frame. */
function valueRange(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = high > low ? (high - low) * 0.08 : Math.abs(high) * 0.05 || 1;
  return [low - room, high + room];
}

function path(points, x, y) {
  return points.map(({ at, value, gap }, i) => `${i && !gap ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("");
}

/** The label of a moment, kept inside of the frame at its right end. */
function timeLabel(at, x, width, y) {
  const end = x(at) > width - EDGE.right - 34;
  return s("text", { class: "axis", x: end ? width - EDGE.right : x(at), y, "text-anchor": end ? "end" : "middle" }, clock(at));
}

function drawTimes(svg, low, high, x, width) {
  for (const at of timeTicks(low, high, Math.max(2, Math.floor(width / 110)))) {
    svg.append(s("line", { class: "tick", x1: x(at), x2: x(at), y1: HEIGHT - EDGE.bottom, y2: HEIGHT - EDGE.bottom + 4 }),
      timeLabel(at, x, width, HEIGHT - 6));
  }
}

function drawValues(svg, [low, high], y, width) {
  for (const value of ticks(low, high)) {
    svg.append(s("line", { class: "gridline", x1: EDGE.left, x2: width - EDGE.right, y1: y(value), y2: y(value) }),
      s("text", { class: "axis", x: EDGE.left - 8, y: y(value) + 4, "text-anchor": "end" }, figure(value)));
  }
}

/** A line with points where they are few, or where one stands alone; only points where `dots` says so. `hue` picks the colour. */
function drawLine(svg, { points }, hue, x, y, dots) {
  if (!dots) svg.append(s("path", { class: `line hue-${hue}`, d: path(points, x, y) }));
  for (const [i, { at, value, gap }] of points.entries()) {
    const alone = (gap || !i) && (points[i + 1]?.gap || i === points.length - 1);
    if (dots || alone || points.length <= 40) {
      svg.append(s("circle", { class: `point hue-${hue}`, cx: x(at), cy: y(value), r: dots ? 3 : 2.4 }));
    }
  }
}

/** How a line is drawn, for the legend. */
function swatch(hue, dots) {
  const drawn = dots ? s("circle", { class: `point hue-${hue}`, cx: 7, cy: 4, r: 3 })
    : s("path", { class: `line hue-${hue}`, d: "M1 4H13" });
  return s("svg", { width: 14, height: 8, "aria-hidden": "true" }, drawn);
}

/**
 * A chart `{node, draw(lines, title, dots)}` with a legend that shows the values at the moment under the pointer, or that the
 * arrow keys have chosen, else at the last one. `dots`: the values are moments of their own, which no line joins.
 */
export function lineChart() {
  const svg = s("svg", { class: "chart", height: HEIGHT, tabindex: 0, role: "img" });
  const legend = h("ul", { class: "legend", "aria-label": "Legend" });
  const moment = h("span", { class: "moment" });
  const hidden = new Set();
  let state = null;

  function draw(lines, title, dots = false) {
    const chosen = state?.cursor ?? null;
    const width = widthOf(svg);
    svg.setAttribute("width", width);
    svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    const shown = lines.filter((line) => !hidden.has(line.name));
    const points = shown.flatMap((line) => line.points);
    svg.replaceChildren();
    const times = [...new Set(points.map((point) => point.at))].sort((a, b) => a - b);
    state = { lines, shown, title, dots, times, cursor: null, width };
    if (times.length) frame(points, times, width);
    svg.setAttribute("aria-label", summary(lines, title, times));
    showLegend(times.at(-1));
    if (times.includes(chosen)) point(times.indexOf(chosen));
  }

  function frame(points, times, width) {
    const [low, high] = times.length > 1 ? [times[0], times.at(-1)] : [times[0] - 500, times[0] + 500];
    const range = valueRange(points.map((point) => point.value));
    state.x = scale(low, high, EDGE.left, width - EDGE.right);
    const y = scale(range[0], range[1], HEIGHT - EDGE.bottom, EDGE.top);
    drawValues(svg, range, y, width);
    drawTimes(svg, low, high, state.x, width);
    for (const [hue, line] of state.lines.entries()) if (!hidden.has(line.name)) drawLine(svg, line, hue, state.x, y, state.dots);
    state.rule = s("line", { class: "rule", y1: EDGE.top, y2: HEIGHT - EDGE.bottom, visibility: "hidden" });
    svg.append(state.rule);
  }

  function showLegend(at) {
    setText(moment, at === undefined ? "" : clock(at));
    const entries = state.lines.map((line, hue) => ({ line, hue, at, dots: state.dots }));
    keyed(legend, entries, ({ line, hue, dots }) => `${hue} ${dots} ${line.name}`, legendEntry);
  }

  function legendEntry({ line: { name }, hue, dots }) {
    const value = h("b");
    const flipper = h("button", { type: "button", on: { click: () => flip(name) } }, swatch(hue, dots),
      h("span", { class: "name" }, name), value);
    return { node: h("li", null, flipper), update({ line, at }) {
      const found = line.points.find((one) => one.at === at);
      setText(value, found ? figure(found.value) : "–");
      setAttribute(flipper, "aria-pressed", String(!hidden.has(name)));
    } };
  }

  function flip(name) {
    if (!hidden.delete(name)) hidden.add(name);
    draw(state.lines, state.title, state.dots);
  }

  function point(index) {
    if (!state?.times.length) return;
    const at = state.cursor = state.times[Math.max(0, Math.min(state.times.length - 1, index))];
    for (const end of ["x1", "x2"]) state.rule.setAttribute(end, state.x(at));
    state.rule.setAttribute("visibility", "visible");
    showLegend(at);
  }

  function leave() {
    state?.rule?.setAttribute("visibility", "hidden");
    if (!state) return;
    state.cursor = null;
    showLegend(state.times.at(-1));
  }

  svg.addEventListener("pointermove", (event) => {
    if (!state?.x) return;
    const place = event.clientX - svg.getBoundingClientRect().left;
    const distances = state.times.map((at) => Math.abs(state.x(at) - place));
    point(distances.indexOf(Math.min(...distances)));
  });
  svg.addEventListener("pointerleave", leave);
  svg.addEventListener("blur", leave);
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !state) return;
    event.preventDefault();
    point((state.cursor === null ? state.times.length - 1 : state.times.indexOf(state.cursor)) + step);
  });
  const box = h("div", { class: "canvas" }, svg);
  new ResizeObserver(() => {
    if (state && state.width !== widthOf(svg)) draw(state.lines, state.title, state.dots);
  }).observe(box);
  return { node: h("figure", { class: "plot" }, box, h("figcaption", null, moment, legend)), draw };
}

function summary(lines, title, times) {
  if (!times.length) return `${title}: no values yet`;
  const last = lines.filter((line) => line.points.at(-1)?.at === times.at(-1))
    .map((line) => `${line.name} ${figure(line.points.at(-1).value)}`).join(", ");
  return `${title}, from ${clock(times[0])} to ${clock(times.at(-1))}. Latest: ${last}`;
}

/** True and false over time as a strip `{node, draw([{at, value, gap?}], longestMs)}`; nothing is said of a gap. */
export function strip() {
  const svg = s("svg", { class: "chart strip", height: 64, role: "img" });
  const box = h("div", { class: "canvas" }, svg);
  return { node: h("figure", { class: "plot" }, box), draw: (points, longestMs) => drawStrip(svg, points, longestMs) };
}

function drawStrip(svg, points, longestMs) {
  const width = widthOf(svg);
  svg.setAttribute("width", width);
  svg.setAttribute("viewBox", `0 0 ${width} 64`);
  svg.replaceChildren();
  svg.setAttribute("aria-label", points.length ? `${points.at(-1).value} ${sinceText(points, longestMs)}` : "no answer yet");
  if (!points.length) return;
  const usual = usualLength(points, longestMs);
  const x = scale(points[0].at, points.at(-1).at + usual, EDGE.left, width - EDGE.right);
  for (const [value, y] of [[true, 20], [false, 38]]) {
    svg.append(s("text", { class: "axis", x: EDGE.left - 8, y: y + 4, "text-anchor": "end" }, String(value)));
  }
  for (const [i, { at, value }] of points.entries()) {
    const next = points[i + 1];
    const end = next && !isGap(next, at, longestMs) ? next.at : at + Math.min(usual, (next?.at ?? Infinity) - at);
    const size = { x: x(at), y: value ? 12 : 30, width: Math.max(1, x(end) - x(at)), height: 14 };
    svg.append(s("rect", { class: `truth ${value}`, ...size }));
  }
  for (const at of timeTicks(points[0].at, points.at(-1).at + usual, Math.max(2, Math.floor(width / 110)))) {
    svg.append(timeLabel(at, x, width, 60));
  }
}

const isGap = (point, before, longestMs) => point.gap || (longestMs !== null && point.at - before > longestMs);

/** How long an answer is drawn that no other follows, in ms. */
function usualLength(points, longestMs) {
  if (longestMs) return longestMs / 1.5;
  return points.length > 1 ? points.at(-1).at - points.at(-2).at : 10000;
}

/** Since when the last answer is what it is; where no other was before it, or there is a gap, it may have been so for longer. */
function sinceText(points, longestMs) {
  let first = points.length - 1;
  const goesOn = (i) => points[i - 1].value === points[i].value && !isGap(points[i], points[i - 1].at, longestMs);
  while (first > 0 && goesOn(first)) first -= 1;
  const changed = first > 0 && !isGap(points[first], points[first - 1].at, longestMs);
  return `${changed ? "since" : "at least since"} ${clock(points[first].at)}`;
}
