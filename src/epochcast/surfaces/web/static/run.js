// One run: how it stands, what its total was expected to be, its pace against the forecast.
import { ask, atMost, bytes, by, clock, count, dollars, element, heard, interval, listen, say, seconds, silence, silentSeconds } from "./common.js";
import { colourOf, draw, redrawn } from "./charts.js";

const path = location.pathname.replace(/^\/runs\//, "/api/v1/runs/");
let last = null;

function show(run) {
  last = run;
  showRemaining(run);
  say("ends-more", run.started_at ? `began ${clock(run.started_at)}` : "");
  say("cost", dollars(run.progress?.dollars_so_far ?? run.dollars_so_far));
  if (run.bill) say("bill", run.bill.sentence);
  const all = run.progress?.dollars_in_all;
  say("cost-more", all ? `in all ${dollars(all.mid)} (${interval(all, dollars)})` : "no price is known for this run");
  by("progress").value = run.fraction ?? 0;
  say("progress-said", run.total_steps ? `step ${Math.round(run.step ?? 0).toLocaleString("en")} of ${Math.round(run.total_steps).toLocaleString("en")}${run.step_seconds ? ` · ${seconds(run.step_seconds)} per step` : ""}` : `step ${run.step ?? 0}; nobody said how many there are`);
  const drift = run.progress?.drift;
  by("drift").hidden = !drift;
  if (drift) { say("drift", `The pace changed${drift.ratio ? ` by a factor of ${drift.ratio.toFixed(2)}` : ""}${drift.since_step ? ` at step ${Math.round(drift.since_step)}` : ""}.`); }
  showAgainst(run);
}

// Of a silent run nobody knows how much is left.
function showRemaining(run) {
  const left = run.remaining_seconds, over = ["ended", "failed", "stopped"].includes(run.state), passed = silentSeconds(run);
  say("remaining", over ? run.state : passed ? silence(passed) : seconds(left?.mid));
  by("remaining").classList.toggle("state-silent", passed > 0);
  say("remaining-interval", over ? "" : passed ? (left ? `${seconds(left.mid)} left at the last report` : "") : interval(left, seconds));
  say("ends", clock(over ? run.ended_at : passed ? null : run.finish_at));
}

function showAgainst(run) {
  const expected = run.forecast, where = by("against");
  if (!expected) { where.replaceChildren(element("p", { class: "hint" }, "No forecast is kept with this run. Send its job with PUT " + path + " to compare.")); return; }
  const rows = [["seconds per step", seconds(expected.step_seconds.mid), interval(expected.step_seconds, seconds), seconds(run.step_seconds)],
    ["whole run", seconds(expected.total_seconds?.mid), interval(expected.total_seconds, seconds), seconds(run.elapsed_seconds)],
    ["memory", bytes(expected.peak_bytes?.mid), interval(expected.peak_bytes, bytes), "–"]];
  const head = element("tr", {}, ...["", "forecast", "interval", "so far"].map((name) => element("th", { scope: "col" }, name)));
  where.replaceChildren(element("div", { class: "scroll" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((cell) => element("td", {}, cell))))))),
    ...(run.progress?.reasons || []).map((reason) => element("p", {}, reason)));
}

async function drawFan() {
  const fan = last?.progress?.fan || [];
  if (fan.length < 2) { return; }
  const hours = fan[fan.length - 1][3] > 7200, unit = hours ? 3600 : 60, name = hours ? "hours" : "minutes";
  const values = fan.map(([at, low, mid, high]) => ({ at: at / unit, low: low / unit, mid: mid / unit, high: high / unit }));
  const scale = { zero: false };
  await draw(by("fan"), {
    width: 760, height: 240, data: { values },
    layer: [
      { mark: { type: "area", opacity: 0.3 }, encoding: { x: { field: "at", type: "quantitative", title: `${name} since it began`, axis: { tickCount: 8 } }, y: { field: "low", type: "quantitative", scale, title: `expected total, ${name}` }, y2: { field: "high" } } },
      { mark: { type: "line" }, encoding: { x: { field: "at", type: "quantitative" }, y: { field: "mid", type: "quantitative", scale } } },
    ],
  });
}

const POINTS = 800, STEPS_MS = 5000, RUN_MS = 1000, SILENCE_MS = 30_000;
async function drawSteps() {
  const told = await ask(`${path}/observations?points=${POINTS}`);
  const values = told.observations.map((row) => ({ step: row.step, seconds: row.step_seconds }));
  if (!values.length) { return; }
  const layer = [{ data: { values }, mark: { type: "point", size: 10, filled: true, opacity: 0.6 }, encoding: { x: { field: "step", type: "quantitative" }, y: { field: "seconds", type: "quantitative", title: "seconds per step", scale: { zero: true } } } }];
  if (last?.forecast) { layer.push({ data: { values: [{ seconds: last.forecast.step_seconds.mid }] }, mark: { type: "rule", strokeDash: [5, 4], strokeWidth: 2, color: colourOf("--part-4") }, encoding: { y: { field: "seconds", type: "quantitative" } } }); }
  by("steps-said").hidden = !last?.forecast;
  await draw(by("steps"), { width: 760, height: 220, layer });
  by("steps").setAttribute("aria-label", `Chart: seconds per step, measured up to step ${count(values.at(-1).step)}, against the forecast`);
}

const redrawSteps = atMost(STEPS_MS, drawSteps);
const refresh = atMost(RUN_MS, async () => { show(heard(await ask(path))); await drawFan(); });
ask(path).then((run) => {
  show(heard(run));
  drawFan();
  redrawSteps();
  listen(`/api/v1/events?run=${encodeURIComponent(run.key)}`, () => { refresh(); redrawSteps(); }, (text) => say("stream", text));
  setInterval(() => showRemaining(last), SILENCE_MS);
});
redrawn(() => { drawFan(); redrawSteps(); });
