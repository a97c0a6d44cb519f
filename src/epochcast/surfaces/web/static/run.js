// One run: how it is going, when it ends, what it costs, how that compares with its forecast, and what happened to it.
import { OVER, ask, atMost, bytes, by, clock, clocks, count, dollars, doneText, element, heard, interval, listen, roughly, say, seconds, send, silence, silentSeconds, stateOf, tagsOf } from "./common.js";
import { colourOf, draw, redrawn } from "./charts.js";
import { table } from "./table.js";

const path = location.pathname.replace(/^\/runs\//, "/api/v1/runs/");
let last = null;

function show(run) {
  last = run;
  say("name", run.label);
  showState(run);
  by("tags").replaceChildren(...tagsOf(run));
  showRemaining(run);
  showCost(run);
  showProgress(run);
  showFacts(run);
  showSpeed(run);
  if (run.bill) say("bill", run.bill.sentence);
  showAgainst(run);
  showAttempts(run);
  showManage(run);
}

// The large number says the same of a run that is over or silent: only the reason is left to say.
function showState(run) {
  const is_said = OVER.includes(run.state) || silentSeconds(run) > 0;
  by("state").replaceChildren(...(is_said ? [] : [stateOf(run)]), ...(run.end_reason ? [element("span", { class: `state-${run.state}` }, run.end_reason)] : []));
  by("state-line").hidden = !by("state-line").textContent.trim();
}

// Of a silent run nobody knows how much is left.
function showRemaining(run) {
  const left = run.remaining_seconds, over = OVER.includes(run.state), passed = silentSeconds(run);
  say("remaining-name", over ? "Outcome" : "Remaining");
  say("remaining", over ? run.state : passed ? silence(passed) : seconds(left?.mid));
  by("remaining").classList.toggle("state-silent", passed > 0);
  say("remaining-interval", over ? (run.elapsed_seconds ? `after ${seconds(run.elapsed_seconds)}` : "") : passed ? (left ? `${seconds(left.mid)} left at the last report` : "") : interval(left, seconds));
  say("ends-name", over ? "Ended" : "Ends");
  say("ends", clock(over ? run.ended_at : passed ? null : run.finish_at));
  const at = (part) => new Date(Date.parse(run.finish_at) + 1000 * (left[part] - left.mid)).toISOString();
  say("ends-interval", over || passed || !left || !run.finish_at ? "" : clocks(at("low"), at("high")));
  say("ends-more", run.started_at ? `began ${clock(run.started_at)}` : "");
  say("age", over || passed ? "" : `last report ${roughly((Date.now() - run.heard) / 1000)} ago`);
}

function showCost(run) {
  const spent = run.dollars_so_far, all = OVER.includes(run.state) ? null : run.dollars, budget = run.budget_dollars;
  say("cost", dollars(spent));
  say("cost-more", all ? `in all ${dollars(all.mid)} (${interval(all, dollars)})` : spent === null ? "no price is known for this run" : "");
  const expected = all?.mid ?? spent, is_over = Boolean(budget && expected > budget);
  by("budget").hidden = !budget;
  if (!budget) { return; }
  by("budget-bar").value = Math.min(1, (spent ?? 0) / budget);
  by("budget-said").className = is_over ? "hint verdict-no" : "hint";
  say("budget-said", is_over ? `${dollars(expected - budget)} over the budget of ${dollars(budget)}` : `budget ${dollars(budget)}`);
}

function showProgress(run) {
  by("progress").value = run.state === "ended" ? 1 : run.fraction ?? 0;
  const step = Math.round(run.step ?? 0).toLocaleString("en");
  const steps = run.total_steps ? `step ${step} of ${Math.round(run.total_steps).toLocaleString("en")}` : `step ${step}; no report says how many there are`;
  say("progress-said", [doneText(run), steps, run.step_seconds ? `${seconds(run.step_seconds)} per step` : ""].filter(Boolean).join(" · "));
}

function showFacts(run) {
  const known = run.forecast ?? {}, options = run.options ?? {};
  const facts = [["Model", known.model ?? options.model], ["GPUs", run.device ? `${run.gpus * run.nodes} × ${run.device}` : null],
    ["Batch per GPU", known.batch_per_gpu ?? options.batch], ["Precision", known.precision], ["Host", run.host], ["Project", run.project],
    ["Attempts", run.attempts.length > 1 ? `${run.attempts.length}` : null], ["Reports as", run.title ? run.run : null]];
  const links = [];
  if (run.options?.model) { links.push(element("a", { href: `/?${new URLSearchParams(Object.entries(run.options).map(([name, value]) => [name, String(value)]))}` }, "Its forecast")); }
  if (run.queue) { links.push(element("a", { href: `/queue?queue=${encodeURIComponent(run.queue)}` }, `Queue ${run.queue}`)); }
  if (run.step_seconds && run.options?.model) { links.push(element("a", { href: `/check?${new URLSearchParams({ ...run.options, observed: `${run.step_seconds.toPrecision(4)} s/step` })}` }, "Check its speed")); }
  if (run.job) { links.push(element("a", { href: `/runs?search=${encodeURIComponent(run.job)}` }, "Runs of this job")); }
  by("facts").replaceChildren(...facts.filter(([, value]) => value).map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, String(value)))));
  by("links").replaceChildren(...links.flatMap((link, place) => (place ? [" · ", link] : [link])));
}

const VERDICTS = { normal: "Normal, the forecast's 90 % interval holds it", slower: "Slower than forecast", faster: "Faster than forecast", suspicious: "Hard to believe, check how steps are counted" };

// Whether its speed is normal, where it changed, and why.
function showSpeed(run) {
  const drift = run.progress?.drift, verdict = run.speed_verdict, against = run.against_forecast;
  const reasons = run.progress?.reasons ?? [];
  by("speed").hidden = !drift && !verdict && !reasons.length;
  say("verdict", verdict ? `${VERDICTS[verdict] ?? verdict}${against ? `: a step takes ${against.toFixed(2)} × its forecast` : ""}.` : "");
  by("verdict").className = verdict && verdict !== "normal" ? "verdict-no" : "";
  by("drift").hidden = !drift;
  if (drift) { say("drift", `The pace changed${drift.ratio ? ` by a factor of ${drift.ratio.toFixed(2)}` : ""}${drift.since_step ? ` at step ${Math.round(drift.since_step).toLocaleString("en")}` : ""}.`); }
  by("reasons").replaceChildren(...reasons.map((reason) => element("li", {}, reason)));
}

function showAgainst(run) {
  const expected = run.forecast, where = by("against"), left = OVER.includes(run.state) ? null : run.remaining_seconds;
  if (!expected) { where.replaceChildren(element("p", { class: "hint" }, `No forecast is kept with this run. Send its job with PUT ${path} to compare.`)); return; }
  const total = left && run.elapsed_seconds ? run.elapsed_seconds + left.mid : run.elapsed_seconds;
  const rows = [
    ["Seconds per step", seconds(expected.step_seconds.mid), interval(expected.step_seconds, seconds), seconds(run.progress?.step_seconds), seconds(run.step_seconds)],
    ["Whole run", seconds(expected.total_seconds?.mid), interval(expected.total_seconds, seconds), seconds(total), seconds(run.elapsed_seconds)],
    ["Cost", dollars(expected.dollars?.mid), interval(expected.dollars, dollars), dollars(run.dollars?.mid), dollars(run.dollars_so_far)],
    ["Memory", bytes(expected.peak_bytes?.mid), interval(expected.peak_bytes, bytes), "–", "–"]];
  const over = OVER.includes(run.state), headings = ["", "Forecast", "90 % interval", "Expected now", "So far"];
  const shown = (row) => (over ? row.filter((_, place) => headings[place] !== "Expected now") : row);  // nothing more is expected of it
  where.replaceChildren(table("Forecast and what happened", shown(headings), rows.map(shown)));
}

function showAttempts(run) {
  by("attempts-card").hidden = run.attempts.length < 2;
  const at = (value) => (value ? clock(new Date(1000 * value).toISOString()) : "–");
  const rows = run.attempts.map((one, place) => [String(place + 1), one.state, one.host ?? "–", one.engine ?? "–", at(one.started_at_seconds ?? (one.attempt > 1e9 ? one.attempt : null)), at(one.ended_at_seconds), one.exit_code ?? "–"]);
  by("attempts").replaceChildren(table("Attempts", ["Attempt", "State", "Host", "Engine", "Began", "Ended", "Exit code"], rows));
  say("attempts-said", [run.attempts.length > 1 ? `${run.attempts.length - 1} restart${run.attempts.length > 2 ? "s" : ""}${run.down_seconds ? `, ${seconds(run.down_seconds)} between attempts` : ""}.` : "", run.end_reason ? `The last attempt ended with ${run.end_reason}` : ""].filter(Boolean).join(" "));
}

// ---- what people say about it ----

function showManage(run) {
  if (!document.activeElement?.closest("#manage")) { by("title").value = run.title ?? ""; by("tag-list").value = run.tags.join(", "); }
  by("archive").textContent = run.is_archived ? "Restore from the archive" : "Archive";
  by("share").textContent = run.card ? "Stop sharing" : "Share a card";
  by("card").hidden = !run.card;
  if (run.card) { say("card-text", `<iframe src="${location.origin}${run.card}" width="360" height="210" title="${run.label.replaceAll('"', "&quot;")}"></iframe>`); by("card-link").href = run.card; }
}
async function change(labels) {
  try { await send("PATCH", path, labels); by("manage-said").className = "hint"; say("manage-said", "saved"); await refetch(); } catch (error) { by("manage-said").className = "fault"; say("manage-said", error.message); }
}
by("labels").addEventListener("submit", (event) => { event.preventDefault(); document.activeElement?.blur(); change({ title: by("title").value.trim() || null, tags: by("tag-list").value.split(",").map((tag) => tag.trim()).filter(Boolean) }); });
by("archive").addEventListener("click", () => change({ is_archived: !last.is_archived }));
by("share").addEventListener("click", () => change({ is_shared: !last.card }));
by("delete").addEventListener("click", async () => {
  if (!confirm(`Delete ${last.label} with all its reports? This cannot be undone.`)) { return; }
  await fetch(path, { method: "DELETE" });
  location.href = "/runs";
});

// ---- charts ----

async function drawFan() {
  const fan = last?.progress?.fan || [];
  by("fan-card").hidden = fan.length < 2;
  if (fan.length < 2) { return; }
  const hours = fan[fan.length - 1][3] > 7200, unit = hours ? 3600 : 60, name = hours ? "hours" : "minutes";
  const values = fan.map(([at, low, mid, high]) => ({ at: at / unit, low: low / unit, mid: mid / unit, high: high / unit }));
  const scale = { zero: false }, x = { field: "at", type: "quantitative", title: `${name} since it began`, axis: { tickCount: 8 } };
  const layer = [
    { mark: { type: "area", opacity: 0.3 }, encoding: { x, y: { field: "low", type: "quantitative", scale, title: `expected total, ${name}` }, y2: { field: "high" } } },
    { mark: { type: "line" }, encoding: { x: { field: "at", type: "quantitative" }, y: { field: "mid", type: "quantitative", scale } } },
  ];
  const forecast = last.forecast?.total_seconds;
  if (forecast) { layer.push({ data: { values: [{ total: forecast.mid / unit }] }, mark: { type: "rule", strokeDash: [5, 4], strokeWidth: 2, color: colourOf("--part-4") }, encoding: { y: { field: "total", type: "quantitative" } } }); }
  by("fan-said").textContent = `90 % prediction interval of the total time, as it was expected at each moment.${forecast ? " Dashed: the forecast before it began." : ""}`;
  await draw(by("fan"), { width: 760, height: 240, data: { values }, layer });
}

const POINTS = 800, STEPS_MS = 5000, RUN_MS = 1000, SILENCE_MS = 10_000;
const thinned = async (of) => (await ask(`${path}/observations?points=${POINTS}&of=${of}`)).observations.filter((row) => typeof row[of] === "number");
function atDrift() {
  const since = last?.progress?.drift?.since_step;
  return since ? [{ data: { values: [{ step: since }] }, mark: { type: "rule", strokeWidth: 2, color: colourOf("--fault") }, encoding: { x: { field: "step", type: "quantitative" } } }] : [];
}

async function drawSteps() {
  const rows = await thinned("step_seconds"), batch = last?.forecast?.global_batch, is_rate = by("steps-unit").value === "rate";
  by("steps-card").hidden = !rows.length;
  if (!rows.length) { return; }
  const shown = (value) => (is_rate ? (batch || 1) / value : value);
  const name = is_rate ? (batch ? "samples per second" : "steps per second") : "seconds per step";
  const values = rows.map((row) => ({ step: row.step, value: shown(row.step_seconds) }));
  const layer = [{ data: { values }, mark: { type: "point", size: 10, filled: true, opacity: 0.6 }, encoding: { x: { field: "step", type: "quantitative" }, y: { field: "value", type: "quantitative", title: name, scale: { zero: true } } } }];
  if (last?.forecast) { layer.push({ data: { values: [{ value: shown(last.forecast.step_seconds.mid) }] }, mark: { type: "rule", strokeDash: [5, 4], strokeWidth: 2, color: colourOf("--part-4") }, encoding: { y: { field: "value", type: "quantitative" } } }); }
  say("steps-said", [last?.forecast ? "Dashed: the forecast." : "", atDrift().length ? "Upright line: where the pace changed." : ""].filter(Boolean).join(" "));
  await draw(by("steps"), { width: 760, height: 220, layer: [...layer, ...atDrift()] });
  by("steps").setAttribute("aria-label", `Chart: ${name}, measured up to step ${count(rows.at(-1).step)}, against the forecast`);
}

async function drawLoss() {
  const rows = await thinned("loss");
  by("loss-card").hidden = !rows.length;
  if (!rows.length) { return; }
  await draw(by("loss"), { width: 760, height: 220, data: { values: rows.map((row) => ({ step: row.step, loss: row.loss })) }, mark: { type: "line" }, encoding: { x: { field: "step", type: "quantitative" }, y: { field: "loss", type: "quantitative", scale: { zero: false } } } });
  by("loss").setAttribute("aria-label", `Chart: loss up to step ${count(rows.at(-1).step)}, the last ${rows.at(-1).loss.toPrecision(4)}`);
}

async function showLog() {
  by("log-card").hidden = !last?.has_log;
  if (!last?.has_log) { return; }
  const told = await ask(`${path}/log?lines=100`), where = by("log");
  const is_at_end = where.scrollHeight - where.scrollTop - where.clientHeight < 30;
  where.textContent = told.lines.join("\n");
  if (is_at_end) { where.scrollTop = where.scrollHeight; }
}

const redrawSteps = atMost(STEPS_MS, () => Promise.all([drawSteps(), drawLoss(), showLog()]));
async function refetch() { show(heard(await ask(path))); await drawFan(); }
const refresh = atMost(RUN_MS, refetch);
const all = () => { refresh(); redrawSteps(); };
by("steps-unit").addEventListener("change", drawSteps);
refetch().then(() => {
  redrawSteps();
  listen(`/api/v1/events?run=${encodeURIComponent(last.key)}`, all, (text) => say("stream", text), all);
  setInterval(() => { showRemaining(last); showState(last); }, SILENCE_MS);
}).catch((error) => { by("fault").hidden = false; say("fault", error.message); });
redrawn(() => { drawFan(); drawSteps(); drawLoss(); });
