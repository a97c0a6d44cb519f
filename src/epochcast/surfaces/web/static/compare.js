// Two to six runs on one chart: pace, loss, remaining time or cost, and the same as a table.
import { api, ask, atMost, by, dollars, doneText, element, heard, interval, listen, pathOf, say, seconds, shortClock, silentSeconds, stateOf } from "./common.js";
import { draw, redrawn } from "./charts.js";
import { table } from "./table.js";

const POINTS = 400, NEWS_MS = 5000;
const names = new URLSearchParams(location.search).getAll("run");
const curves = new Map();  // by run and what: its points
let runs = [], chosen = "pace";

// What a curve shows: its points of a run, and the titles of both axes.
const KINDS = {
  pace: { x: "step", y: "seconds per step", points: (run) => reported(run, "step_seconds") },
  loss: { x: "step", y: "loss", points: (run) => reported(run, "loss") },
  remaining: { x: "hours since it began", y: "hours remaining", points: (run) => fan(run, (at, total) => (total - at) / 3600) },
  cost: { x: "hours since it began", y: "expected cost, dollars", points: (run) => fan(run, (at, total) => total * rate(run)) },
};

async function reported(run, of) {
  const key = `${run.key} ${of}`;
  if (!curves.has(key)) { curves.set(key, ask(`${api(run)}/observations?points=${POINTS}&of=${of}`)); }
  const told = await curves.get(key);
  return told.observations.filter((row) => typeof row[of] === "number").map((row) => ({ x: row.step, y: row[of] }));
}

function rate(run) {
  const all = run.progress?.dollars_in_all, spent = run.progress?.dollars_so_far;
  return all && run.elapsed_seconds ? spent / run.elapsed_seconds : NaN;
}

function fan(run, value) {
  return (run.progress?.fan ?? []).map(([at, , middle]) => ({ x: at / 3600, y: value(at, middle) })).filter((point) => isFinite(point.y));
}

async function paint() {
  const kind = KINDS[chosen], each = await Promise.all(runs.map((run) => kind.points(run)));
  const values = each.flatMap((points, place) => points.map((point) => ({ ...point, run: runs[place].label })));
  say("chart-said", values.length ? "" : `None of these runs reports ${kind.y}.`);
  by("chart").hidden = values.length === 0;
  if (!values.length) { return; }
  await draw(by("chart"), {
    width: 900, height: 340, data: { values },
    mark: { type: "line", point: each.some((points) => points.length < 20) },
    encoding: { x: { field: "x", type: "quantitative", title: kind.x }, y: { field: "y", type: "quantitative", title: kind.y, scale: { zero: false } },
      color: { field: "run", type: "nominal", title: null, sort: runs.map((run) => run.label) },
      tooltip: [{ field: "run" }, { field: "x", title: kind.x, format: ",.4~g" }, { field: "y", title: kind.y, format: ".4~g" }] },
  });
  by("chart").setAttribute("aria-label", `Chart: ${kind.y} of ${runs.map((run) => run.label).join(", ")}`);
}

function remaining(run) {
  const left = silentSeconds(run) ? null : run.remaining_seconds;
  return left ? [seconds(left.mid), element("div", { class: "hint" }, interval(left, seconds))] : "–";
}

function tabulate() {
  const rows = runs.map((run) => [
    element("a", { href: `/runs/${pathOf(run)}` }, run.label), stateOf(run), doneText(run) || "–", run.device ? `${run.gpus * run.nodes} × ${run.device}` : "–",
    seconds(run.step_seconds), run.against_forecast ? `${run.against_forecast.toFixed(2)} ×` : "–",
    remaining(run), shortClock((silentSeconds(run) ? null : run.finish_at) || run.ended_at), dollars(run.dollars_so_far), dollars(run.dollars?.mid),
  ]);
  by("table").replaceChildren(table("The runs, compared", ["Run", "State", "Progress", "Hardware", "Step", "Against forecast", "Remaining", "Ends", "Cost so far", "Cost in all"], rows));
}

async function load() {
  try {
    runs = (await Promise.all(names.map((name) => ask(api({ run: name }))))).map(heard);
    curves.clear();
    by("fault").hidden = true;
  } catch (error) { by("fault").hidden = false; say("fault", error.message); return; }
  tabulate();
  await paint();
}

for (const tab of document.querySelectorAll("[role=tab]")) { tab.addEventListener("chosen", () => { chosen = tab.dataset.kind; paint(); }); }
const again = atMost(NEWS_MS, load);
load().then(() => listen("/api/v1/events", (run) => { if (runs.some((one) => one.key === run.key)) { again(); } }, (text) => say("stream", text), load));
redrawn(paint);
