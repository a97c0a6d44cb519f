// Vega-Lite charts under a strict content policy: expressions are interpreted, not compiled; drawn on a canvas.

import { element } from "./common.js";
import { table } from "./table.js";

// As wide as its place: single charts fill it, charts of several parts get as many columns as have room, but one where they ask for one.
const NARROW = 480, FONT_PIXELS = 13;  // .8125rem, as small print of the page
const AXES = 70, GAP = 28, LEAST = 210, TICK = 110;
function fitted(specification, width) {
  if (!width) { return {}; }
  if (typeof specification.width === "number") { return { width: Math.max(LEAST, width - 4), autosize: { type: "fit-x", contains: "padding" } }; }
  if (!specification.concat) { return {}; }
  const parts = specification.concat.length, most = specification.columns === 1 ? 1 : parts;
  const room = Math.max(1, Math.min(most, Math.floor((width + GAP) / (LEAST + AXES + GAP))));
  const columns = room > 1 && parts % room === 1 ? room - 1 : room;  // nobody alone in the last row
  const each = Math.max(LEAST, Math.floor((width - GAP * (columns - 1)) / columns) - AXES);
  return { columns, concat: specification.concat.map((part) => ({ ...part, width: each })) };
}

function themed(specification, width) {
  const ink = colourOf("--ink"), soft = colourOf("--soft"), line = colourOf("--line");
  const font = getComputedStyle(document.body).fontFamily, text = FONT_PIXELS;
  const axis = { labelFontSize: text, titleFontSize: text, labelFont: font, titleFont: font, titleFontWeight: 600, labelColor: soft, titleColor: soft, gridColor: line, domainColor: line, tickColor: line, labelOverlap: true, labelSeparation: 8 };
  const own = specification.config || {}, sized = fitted(specification, width);
  const ticks = { tickCount: Math.max(3, Math.floor((sized.concat?.[0].width ?? width) / TICK)) };
  const config = {
    ...own, font, background: null, view: { ...own.view, stroke: line }, axis: { ...axis, ...own.axis }, axisXQuantitative: ticks, axisXTemporal: ticks, text: { color: ink, fontSize: text }, header: { labelFontSize: text, titleFontSize: text, labelColor: ink, titleColor: soft }, rule: { color: soft },
    mark: { color: colourOf("--part-2") }, range: { category: [2, 4, 3, 5, 1, 6].map((place) => colourOf(`--part-${place}`)) },
    legend: { columns: width < NARROW ? 1 : undefined, labelFontSize: text, titleFontSize: text, labelColor: ink, titleColor: soft, orient: "bottom", labelLimit: Math.max(160, width - 60) },
    title: { fontSize: text + 1, subtitleFontSize: text, color: ink, subtitleColor: soft, limit: Math.max(LEAST, width - 20) },
  };
  const { title, ...untitled } = specification;  // the heading of the card says it
  return { ...untitled, ...sized, config };
}

// Offers by place: the end of the scale that is near the colour of the paper is left out.
const isDark = () => window.matchMedia("(prefers-color-scheme: dark)").matches;
const scaleOf = (scale) => (scale?.scheme === "viridis" ? { ...scale, scheme: { name: "viridis", extent: isDark() ? [0.4, 1] : [0, 0.8] } } : scale);

export function withoutLegend(specification) {
  const plain = (layer) => (layer.encoding?.color ? { ...layer, encoding: { ...layer.encoding, color: { ...layer.encoding.color, ...(layer.encoding.color.scale ? { scale: scaleOf(layer.encoding.color.scale) } : {}), legend: null } } } : layer);
  return { ...specification, layer: specification.layer?.map(plain) };
}

export const colourOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export async function draw(where, specification) {
  if (!window.vegaEmbed) { where.textContent = "Charts need a newer browser."; return null; }
  const label = where.getAttribute("aria-label") ?? "Chart";
  const made = await window.vegaEmbed(where, themed(specification, where.clientWidth), {
    actions: false, ast: true, renderer: "canvas", defaultStyle: false, tooltip: { disableDefaultStyle: true }, mode: "vega-lite",
  });
  // Vega puts names of its own there.
  where.setAttribute("role", "img");
  where.setAttribute("aria-label", label);
  where.removeAttribute("aria-roledescription");
  where.tabIndex = 0;  // wide charts scroll
  offerTable(where, specification);
  return made.view;
}

// The data behind a chart as a table, made when somebody opens it: for screen readers, and to copy numbers.
const MOST_ROWS = 200;
function offerTable(where, specification) {
  const details = where.nextElementSibling?.matches("details.data") ? where.nextElementSibling : element("details", { class: "data" }, element("summary", {}, "Data as a table"), element("div"));
  const was_open = details.open;
  const fill = () => { if (details.open) { details.lastElementChild.replaceChildren(...tablesOf(specification, where.getAttribute("aria-label") ?? "Chart")); } };
  details.ontoggle = fill;
  if (details.previousElementSibling !== where) { where.after(details); }
  if (was_open) { fill(); }
}

function tablesOf(specification, label) {
  return datasets(specification).map((rows) => {
    const names = [...new Set(rows.flatMap((row) => Object.keys(row)))].filter((name) => rows.some((row) => row[name] !== null && typeof row[name] !== "object"));
    const every = Math.ceil(rows.length / MOST_ROWS);
    const shown = rows.filter((_, place) => place % every === 0 || place === rows.length - 1);
    return table(label.replace(/^Chart: /, "Data: "), names.map((name) => name.replaceAll("_", " ")), shown.map((row) => names.map((name) => cellOf(row[name]))));
  });
}

function datasets(specification) {
  const parts = [specification, ...["layer", "concat", "hconcat", "vconcat"].flatMap((name) => (specification[name] ?? []).flatMap(flat))];
  const named = specification.datasets ?? {};
  const lists = parts.map((part) => part.data?.values ?? named[part.data?.name]).filter((rows) => Array.isArray(rows) && rows.length && typeof rows[0] === "object");
  // Layers repeat their data with more columns: the one with all of them is enough.
  return lists.filter((rows, place) => !lists.some((other, at) => at !== place && isWithin(rows, other) && (!isWithin(other, rows) || at < place)));
}
const isWithin = (rows, other) => rows.length === other.length && Object.entries(rows[0]).every(([name, value]) => other[0][name] === value);
const flat = (part) => [part, ...["layer", "concat", "hconcat", "vconcat"].flatMap((name) => (part[name] ?? []).flatMap(flat))];

function cellOf(value) {
  if (value === null || value === undefined) { return "–"; }
  return typeof value === "number" && !Number.isInteger(value) ? String(Number(value.toPrecision(4))) : String(value);
}

export function redrawn(repeat) {
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repeat);
  let width = window.innerWidth;
  window.addEventListener("resize", () => { if (Math.abs(window.innerWidth - width) > 60) { width = window.innerWidth; repeat(); } });
}
