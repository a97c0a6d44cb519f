// Two jobs at one place, side by side: what a change does to time, memory and cost.
import { ask, by, bytes, dollars, element, interval, later, noted, say, seconds } from "./common.js";
import { fieldsOf, fill, given, questionOf, slide } from "./form.js";
import { table } from "./table.js";

const form = by("job");
const sides = Object.fromEntries([...form.querySelectorAll("[data-side]")].map((side) => [side.dataset.side, fieldsOf(side)]));
const START = { base: { model: "resnet50", batch: 128, precision: "fp32" }, head: { model: "resnet50", batch: 128, precision: "amp" }, place: { device: "A100-SXM4-80GB", gpus: 1, samples: 1281167, epochs: 90 } };
const MOST_LAYERS = 12;
let under_way = null;

const question = () => Object.fromEntries(Object.entries(sides).map(([side, fields]) => [side, questionOf(fields)]));
function dim(is_stale) { for (const part of document.querySelectorAll("[data-part]")) { part.classList.toggle("stale", is_stale); } }

const compare = later(300, async () => {
  under_way?.abort();
  under_way = new AbortController();
  const { base, head, place } = question();
  try {
    show(await ask("/api/v1/diff", { base: { ...base, ...place }, head: { ...head, ...place } }, under_way.signal));
    by("fault").hidden = true;
  } catch (error) {
    if (error.name === "AbortError") { return; }
    by("fault").hidden = false;
    say("fault", error.message);
    say("verdict", "–");
    for (const id of ["figures", "layers", "warnings"]) { by(id).replaceChildren(); }
  }
  dim(false);
});

const factor = (change) => (change ? [`${change.mid.toFixed(2)} ×`, element("div", { class: "hint" }, `${change.low.toFixed(2)} … ${change.high.toFixed(2)}`)] : "–");

function show(told) {
  say("verdict", `${told.verdict[0].toUpperCase()}${told.verdict.slice(1)}.`);
  const row = (name, key, print) => [name, ...["base", "head"].map((side) => [print(told[side][key]?.mid), element("div", { class: "hint" }, interval(told[side][key], print))]), factor(told.change[key])];
  const rows = [row("Step", "step_seconds", seconds), row("Whole job", "total_seconds", seconds), row("Peak memory", "peak_bytes", bytes), row("Cost", "dollars", dollars)];
  const settings = Object.entries(told.settings).map(([name, [before, after]]) => [name.replaceAll("_", " "), String(before), String(after), "–"]);
  by("figures").replaceChildren(table("Before and after", ["", "Before", "After", "Change"], [...rows, ...settings]));
  by("warnings").replaceChildren(...told.warnings.map(noted));
  const layers = told.layers.slice(0, MOST_LAYERS).map((one) => [one.name, one.status, seconds(one.base_seconds), seconds(one.head_seconds), `${one.seconds_change > 0 ? "+" : "−"}${seconds(Math.abs(one.seconds_change))}`]);
  by("layers").replaceChildren(layers.length ? table("Layers", ["Layer", "", "Before", "After", "Change"], layers) : element("p", { class: "hint" }, "No layer changes."));
}

function changed() {
  const written = Object.entries(question()).flatMap(([side, asked]) => Object.entries(asked).map(([name, value]) => [`${side}.${name}`, String(value)]));
  history.replaceState(null, "", `?${new URLSearchParams(written)}`);
  dim(true);
  compare();
}
slide(form, changed);
form.addEventListener("input", (event) => { if (event.target.matches("[data-option]")) { changed(); } });
form.addEventListener("submit", (event) => event.preventDefault());
for (const [side, fields] of Object.entries(sides)) {
  const told = Object.fromEntries(Object.entries(given()).filter(([name]) => name.startsWith(`${side}.`)).map(([name, value]) => [name.slice(side.length + 1), value]));
  fill(fields, Object.keys(given()).length ? told : START[side]);
}
changed();
ask("/api/v1/models").then((told) => by("models").replaceChildren(...told.models.map((one) => element("option", { value: one.name }, one.title)))).catch(() => {});
