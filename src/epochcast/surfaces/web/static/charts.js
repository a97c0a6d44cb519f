// Vega-Lite charts under a strict content policy: expressions are interpreted, not compiled; drawn on a canvas.

// As wide as its place: single charts fill it, charts of several parts get as many columns as have room, but one where they ask for one.
const AXES = 70, GAP = 28, LEAST = 210;
function fitted(specification, width) {
  if (!width) { return {}; }
  if (typeof specification.width === "number") { return { width: Math.max(LEAST, Math.min(1000, width - AXES - 20)) }; }
  if (!specification.concat) { return {}; }
  const parts = specification.concat.length, most = specification.columns === 1 ? 1 : parts;
  const room = Math.max(1, Math.min(most, Math.floor((width + GAP) / (LEAST + AXES + GAP))));
  const columns = room > 1 && parts % room === 1 ? room - 1 : room;  // nobody alone in the last row
  const each = Math.max(LEAST, Math.floor((width - GAP * (columns - 1)) / columns) - AXES);
  return { columns, concat: specification.concat.map((part) => ({ ...part, width: each })) };
}

function themed(specification, width) {
  const ink = colourOf("--ink"), soft = colourOf("--soft"), line = colourOf("--line");
  const axis = { labelColor: soft, titleColor: soft, gridColor: line, domainColor: line, tickColor: line, labelOverlap: true };
  const own = specification.config || {};
  const config = {
    ...own, background: null, view: { ...own.view, stroke: line }, axis: { ...axis, ...own.axis }, text: { color: ink }, rule: { color: soft },
    mark: { color: colourOf("--part-2") }, range: { category: [2, 4, 3, 5, 1, 6].map((place) => colourOf(`--part-${place}`)) },
    legend: { labelColor: ink, titleColor: soft, orient: "bottom", labelLimit: Math.max(160, width - 60) },
    title: { color: ink, subtitleColor: soft, limit: Math.max(LEAST, width - 20) },
  };
  return { ...specification, ...fitted(specification, width), config };
}

export function withoutLegend(specification) {
  const plain = (layer) => (layer.encoding?.color ? { ...layer, encoding: { ...layer.encoding, color: { ...layer.encoding.color, legend: null } } } : layer);
  return { ...specification, layer: specification.layer?.map(plain) };
}

export const colourOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export async function draw(where, specification) {
  if (!window.vegaEmbed) { where.textContent = "Charts need a newer browser."; return null; }
  const made = await window.vegaEmbed(where, themed(specification, where.clientWidth), {
    actions: false, ast: true, renderer: "canvas", defaultStyle: false, tooltip: { disableDefaultStyle: true }, mode: "vega-lite",
  });
  return made.view;
}

export function redrawn(repeat) {
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repeat);
  let width = window.innerWidth;
  window.addEventListener("resize", () => { if (Math.abs(window.innerWidth - width) > 60) { width = window.innerWidth; repeat(); } });
}
