// A queue: the plan as it would go on now, job by job, with links to the runs of its jobs.
import { ask, by, dollars, element, noted, pathOf, roughly, say, seconds, shortClock, stateOf } from "./common.js";
import { colourOf, draw, redrawn } from "./charts.js";
import { table } from "./table.js";

const AGAIN_MS = 30_000, CHANGED_MS = 60_000, MOST_RUNS = 200;
let last = null, runs = new Map();

function row(line) {
  const late = line.late_probability > 0.005 ? `${Math.round(100 * line.late_probability)} %` : "no";
  const run = runs.get(`${last.name}/${line.job}`);
  const job = run ? element("a", { href: `/runs/${pathOf(run)}` }, line.job) : line.job;
  const state = run && line.state === "running" ? stateOf(run) : element("span", { class: `state-${line.state}` }, line.state);
  return [[job], [state, ...pauses(line)], waits(line), `${line.node_type}, ${line.gpus} GPU${line.gpus > 1 ? "s" : ""}`, shortClock(line.start_at), shortClock(line.end_at), shortClock(line.end_at_high), shortClock(line.deadline_at), late];
}

// A running job that the plan stops, and when it goes on.
function pauses(line) {
  const begins = line.stays.map((stay) => Date.parse(stay.start_at)), ends = line.stays.map((stay) => Date.parse(stay.end_at));
  const place = begins.findIndex((begin, at) => begin > (at ? ends[at - 1] : Date.parse(last.at)) + CHANGED_MS);
  if (line.state !== "running" || place < 0) { return []; }
  return [element("div", { class: "hint" }, `stops${place ? ` ${shortClock(line.stays[place - 1].end_at)}` : " now"}, goes on ${shortClock(line.stays[place].start_at)}`)];
}

// Times inside the reason are of the machine's clock; the page shows them as it shows all others.
function waits(line) {
  const reason = line.reason || line.waits_for.join(", ") || "–";
  return reason.replace(/\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)/g, shortClock);
}

async function show(is_asked = false) {
  const name = by("which").value, before = last?.name === name ? last : null;
  history.replaceState(null, "", `?queue=${encodeURIComponent(name)}`);
  if (is_asked) { say("changes", "planning …"); }
  try {
    const [plan, listed] = await Promise.all([ask(`/api/v1/queues/${encodeURIComponent(name)}`), ask(`/api/v1/runs?search=${encodeURIComponent(`${name}/`)}&most=${MOST_RUNS}`)]);
    last = { ...plan, name, seen: Date.now() };
    runs = new Map(listed.runs.map((run) => [run.run, { ...run, heard: Date.now() - 1000 * run.silent_seconds }]));
  } catch (error) { by("fault").hidden = false; say("fault", error.message); say("said", ""); say("changes", ""); return; }
  by("fault").hidden = true;
  const machines = last.machines.map((one) => `${one.count} × ${one.node_type}`).join(", ");
  say("said", last.timetable.length ? `${last.timetable.length} jobs · ${machines || "no machine"} now · ${dollars(last.dollars)} to the end` : "Every job of this queue is over.");
  by("notes").replaceChildren(...last.warnings.map(noted));
  if (is_asked) { say("changes", before ? changes(before, last) : ""); }
  const headings = ["Job", "State", "Waits for", "Machine", "Starts", "Ends", "Ends by (90 %)", "Deadline", "Late?"];
  by("jobs").replaceChildren(...(last.timetable.length ? [table("Jobs", headings, last.timetable.map(row))] : []));
  age();
  await paint();
}

// What another plan changed: jobs that end at another time, go elsewhere, came or went.
function changes(before, after) {
  const old = new Map(before.timetable.map((line) => [line.job, line]));
  const said = after.timetable.flatMap((line) => {
    const was = old.get(line.job);
    if (!was) { return [`${line.job} is new`]; }
    if (was.state !== line.state) { return [`${line.job} is ${line.state}`]; }
    if (was.node_type !== line.node_type || was.gpus !== line.gpus) { return [`${line.job} moves to ${line.node_type}`]; }
    const later = Date.parse(line.end_at) - Date.parse(was.end_at);
    return Math.abs(later) > CHANGED_MS ? [`${line.job} ends ${seconds(Math.abs(later) / 1000)} ${later > 0 ? "later" : "sooner"}`] : [];
  });
  const gone = before.timetable.filter((line) => !after.timetable.some((other) => other.job === line.job)).map((line) => `${line.job} is over`);
  return [...said, ...gone].join(" · ") || "Planned again: nothing changes.";
}

async function paint() {
  const values = (last?.timetable || []).flatMap((line) => line.stays.map((stay) => ({ job: line.job, machine: `${stay.node_type} ${stay.machine}`, start: stay.start_at, end: stay.end_at, gpus: stay.gpus, deadline: line.deadline_at })));
  by("gantt").hidden = !values.length;
  if (!values.length) { return; }
  const now = new Date(last.seen).toISOString();
  await draw(by("gantt"), {
    width: 900, height: { step: 28 }, data: { values },
    layer: [
      { mark: { type: "bar", cornerRadius: 3, height: 18 }, encoding: { x: { field: "start", type: "temporal", title: null }, x2: { field: "end" }, y: { field: "job", type: "nominal", title: null, sort: null }, color: { field: "machine", type: "nominal", title: "machine" }, tooltip: [{ field: "job" }, { field: "machine" }, { field: "gpus", title: "GPUs" }, { field: "start", type: "temporal", format: "%a %H:%M" }, { field: "end", type: "temporal", format: "%a %H:%M" }] } },
      { mark: { type: "tick", thickness: 3, height: 22, color: colourOf("--fault") }, encoding: { x: { field: "deadline", type: "temporal" }, y: { field: "job", type: "nominal", sort: null }, tooltip: [{ field: "deadline", type: "temporal", title: "deadline", format: "%a %H:%M" }] } },
      { data: { values: [{ now }] }, mark: { type: "rule", strokeWidth: 2, strokeDash: [6, 3], color: colourOf("--ink") }, encoding: { x: { field: "now", type: "temporal" } } },
    ],
  });
}

function age() { if (last) { say("age", `planned ${roughly((Date.now() - last.seen) / 1000)} ago`); } }

by("which").addEventListener("change", () => show());
by("again").addEventListener("click", () => show(true));
show();
setInterval(() => show(), AGAIN_MS);
setInterval(age, 5000);
redrawn(paint);
