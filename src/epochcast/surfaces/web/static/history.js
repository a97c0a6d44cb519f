// Past jobs: a table is sent, models are compared on it.
import { by, count, element, read, say } from "./common.js";
import { draw } from "./charts.js";
import { table } from "./table.js";

const share = (value) => (value === null || value === undefined ? "–" : `${(100 * value).toFixed(1)} %`);

by("ask").addEventListener("submit", async (event) => {
  event.preventDefault();
  const file = by("table-file").files[0];
  by("splits").replaceChildren();
  by("fault").hidden = true;
  say("said", `comparing models on ${file.name} …`);
  const wanted = new URLSearchParams({ name: file.name, target: by("target").value, physics: String(by("physics").checked) });
  try {
    const told = await read(await fetch(`/api/v1/history/compare?${wanted}`, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: file }));
    say("said", `${count(told.rows)} jobs. ${told.warnings.join(" ")}`);
    for (const [name, split] of Object.entries(told.splits)) { await show(name, split, told.titles); }
  } catch (error) { say("said", ""); by("fault").hidden = false; say("fault", error.message); }
});

async function show(name, split, titles) {
  const models = Object.entries(split.models).sort(([, a], [, b]) => (a.mape ?? Infinity) - (b.mape ?? Infinity));
  const rows = models.map(([model, one]) => [titles[model] ?? model, share(one.mape), share(one.median_ape), share(one.p90_ape), share(one.coverage), count(one.n), one.reason ?? ""]);
  const chart = element("div", { class: "chart", role: "img", "aria-label": `Chart: mean error of each model, ${name}` });
  const card = element("section", { class: "card" }, element("h2", {}, `Split: ${name}${split.extrapolates ? " (extrapolates)" : ""}`), element("p", {}, split.why), chart,
    table(`Models on ${name}`, ["Model", "Mean error", "Median", "90 % below", "Intervals hold", "Rows", ""], rows));
  by("splits").append(card);
  const values = models.filter(([, one]) => one.mape !== null && one.mape !== undefined).map(([model, one]) => ({ model: titles[model] ?? model, error: 100 * one.mape }));
  if (values.length) { await draw(chart, { width: 700, height: { step: 24 }, data: { values }, mark: { type: "bar" }, encoding: { y: { field: "model", type: "nominal", sort: null, title: null, axis: { labelLimit: 240 } }, x: { field: "error", type: "quantitative", title: "mean error, %" } } }); }
}
