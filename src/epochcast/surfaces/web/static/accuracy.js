// How far off forecasts are: a picture first, the team's own finished runs, and a table that sorts.
import { ask, by, element, pathOf, say, seconds } from "./common.js";
import { draw, redrawn } from "./charts.js";
import { table } from "./table.js";

const NEW_FAMILY = 4, MEANS = { 4: "known device, new family", 8: "unseen device" }, MOST_SHOWN = 100;

// "32.0 / 22.5" is a mean and a median; "–" is none.
const first = (text) => Number.parseFloat(text.replaceAll(",", ""));

const NARROW = 640;

async function drawErrors() {
  const is_narrow = window.innerWidth < NARROW;
  // On a phone the labels stand above their points.
  const axis = is_narrow ? { labelAlign: "left", labelPadding: -2, labelOffset: -14, labelLimit: 330, ticks: false, zindex: 1 } : { labelLimit: 460 };
  const told = await ask("/api/v1/accuracy");
  const rows = [...told.rows].sort((a, b) => first(a[NEW_FAMILY]) - first(b[NEW_FAMILY]));
  const values = rows.flatMap((row) => Object.entries(MEANS).map(([place, kind]) => ({ group: `${row[2]}, ${row[0]}, ${row[1]}`, steps: row[3], kind, error: first(row[place]) }))).filter((one) => isFinite(one.error));
  await draw(by("errors"), {
    width: 800, height: { step: is_narrow ? 46 : 26 }, data: { values },
    mark: { type: "point", filled: true, size: 90 },
    encoding: { y: { field: "group", type: "nominal", sort: null, title: null, axis }, x: { field: "error", type: "quantitative", title: "mean error, %" },
      color: { field: "kind", type: "nominal", title: null }, shape: { field: "kind", type: "nominal", title: null }, tooltip: [{ field: "group" }, { field: "kind" }, { field: "error" }, { field: "steps" }] },
  });
}

async function drawOutcomes() {
  const { outcomes } = await ask("/api/v1/outcomes");
  by("truth").hidden = !outcomes.length;
  if (!outcomes.length) { say("own-said", "No finished run has a forecast yet. Send the job of a run with PUT /api/v1/runs/NAME, and it appears here when it ends."); return; }
  const judged = outcomes.filter((one) => one.is_inside !== null), inside = judged.filter((one) => one.is_inside).length;
  const ratios = outcomes.map((one) => Math.abs(one.against_forecast - 1)).sort((a, b) => a - b);
  say("own-said", `${outcomes.length} run${outcomes.length > 1 ? "s" : ""}: median error ${(100 * ratios[Math.floor(ratios.length / 2)]).toFixed(1)} %${judged.length ? `; the 90 % interval held ${inside} of ${judged.length}` : ""}.`);
  const values = outcomes.map((one) => ({ run: one.label, forecast: one.forecast_step_seconds, observed: one.step_seconds }));
  const ends = values.flatMap((one) => [one.forecast, one.observed]), least = Math.min(...ends) / 1.3, most = Math.max(...ends) * 1.3;
  const scale = { type: "log", domain: [least, most] };
  await draw(by("truth"), {
    width: 560, height: 320,
    layer: [
      { data: { values: [{ forecast: least, observed: least }, { forecast: most, observed: most }] }, mark: { type: "line", strokeDash: [5, 4] }, encoding: { x: { field: "forecast", type: "quantitative", scale }, y: { field: "observed", type: "quantitative", scale } } },
      { data: { values }, mark: { type: "point", filled: true, size: 80 }, encoding: { x: { field: "forecast", type: "quantitative", scale, title: "forecast seconds per step" }, y: { field: "observed", type: "quantitative", scale, title: "observed seconds per step" }, tooltip: [{ field: "run" }, { field: "forecast", format: ".4~g" }, { field: "observed", format: ".4~g" }] } },
    ],
  });
  const rows = outcomes.slice(0, MOST_SHOWN).map((one) => [[element("a", { href: `/runs/${pathOf(one)}` }, one.label)], one.device ?? "–", seconds(one.forecast_step_seconds), seconds(one.step_seconds), `${one.against_forecast.toFixed(2)} ×`, seconds(one.forecast_total_seconds), seconds(one.elapsed_seconds), one.is_inside === null ? "–" : one.is_inside ? "yes" : "no"]);
  by("outcomes").replaceChildren(table("Finished runs", ["Run", "Device", "Step, forecast", "Step, observed", "Ratio", "Whole run, forecast", "Whole run", "Inside the interval"], rows));
}

// Sorts a table that came with the page: by number where cells begin with one, else by text.
const figures = by("figures"), headings = [...figures.querySelectorAll("th")];
headings.forEach((heading, place) => heading.querySelector("button").addEventListener("click", () => {
  const is_ascending = heading.getAttribute("aria-sort") !== "ascending";
  headings.forEach((other) => other.setAttribute("aria-sort", other === heading ? (is_ascending ? "ascending" : "descending") : "none"));
  const key = (row) => { const text = row.children[place].textContent, value = first(text); return [isNaN(value) ? Infinity : value, text]; };
  const rows = [...figures.tBodies[0].rows].map((row) => [key(row), row]);
  rows.sort(([[a, one]], [[b, other]]) => (a === b ? one.localeCompare(other) : a - b) * (is_ascending ? 1 : -1));
  figures.tBodies[0].append(...rows.map(([, row]) => row));
}));

drawErrors();
drawOutcomes();
redrawn(() => { drawErrors(); drawOutcomes(); });
