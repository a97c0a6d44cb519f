// Vega-Lite charts under a strict content policy: expressions are interpreted, not compiled; drawn on a canvas.

function themed(specification, width) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const ink = colour("--ink"), soft = colour("--soft"), line = colour("--line");
  const axis = { labelColor: soft, titleColor: soft, gridColor: line, domainColor: line, tickColor: line };
  const config = {
    background: null, view: { stroke: line }, axis, legend: { labelColor: ink, titleColor: soft },
    title: { color: ink, subtitleColor: soft }, text: { color: ink }, ...(specification.config || {}),
  };
  const wide = typeof specification.width === "number" && width ? { width: Math.min(specification.width, Math.max(220, width - 90)) } : {};
  return { ...specification, ...wide, config: { ...config, axis: { ...axis, ...(specification.config || {}).axis }, background: null } };
}

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
