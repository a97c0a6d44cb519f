// A queue: the plan as it would go on now, job by job.
import { ask, by, clock, dollars, element, say } from "./common.js";
import { colourOf, draw, redrawn } from "./charts.js";

let last = null;

function row(line) {
  const late = line.late_probability > 0.005 ? `${Math.round(100 * line.late_probability)} %` : "no";
  const cells = [line.job, line.state, `${line.node_type}, ${line.gpus} GPU${line.gpus > 1 ? "s" : ""}`, clock(line.start_at), clock(line.end_at), clock(line.end_at_high), clock(line.deadline_at), late, waits(line)];
  return element("tr", {}, ...cells.map((cell) => element("td", {}, String(cell))));
}

// Times inside the reason are of the machine's clock; the page shows them as it shows all others.
function waits(line) {
  const reason = line.reason || line.waits_for.join(", ") || "–";
  return reason.replace(/\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)/g, clock);
}

async function show() {
  const name = by("which").value;
  history.replaceState(null, "", `?queue=${encodeURIComponent(name)}`);
  try {
    last = await ask(`/api/v1/queues/${encodeURIComponent(name)}`);
  } catch (error) { by("fault").hidden = false; say("fault", error.message); say("said", ""); return; }
  by("fault").hidden = true;
  const machines = last.machines.map((one) => `${one.count} × ${one.node_type}`).join(", ");
  say("said", last.timetable.length ? `${last.timetable.length} jobs · ${machines || "no machine"} now · ${dollars(last.dollars)} to the end` : "Every job of this queue is over.");
  by("jobs").hidden = last.timetable.length === 0;
  by("jobs").querySelector("tbody").replaceChildren(...last.timetable.map(row));
  await paint();
}

async function paint() {
  const values = (last?.timetable || []).flatMap((line) => line.stays.map((stay) => ({ job: line.job, machine: `${stay.node_type} ${stay.machine}`, start: stay.start_at, end: stay.end_at, gpus: stay.gpus, deadline: line.deadline_at })));
  if (!values.length) { by("gantt").replaceChildren(); return; }
  await draw(by("gantt"), {
    width: 900, height: { step: 26 }, data: { values },
    layer: [
      { mark: { type: "bar", cornerRadius: 3, height: 18 }, encoding: { x: { field: "start", type: "temporal", title: null }, x2: { field: "end" }, y: { field: "job", type: "nominal", title: null, sort: null }, color: { field: "machine", type: "nominal", title: "machine" }, tooltip: [{ field: "job" }, { field: "machine" }, { field: "gpus", title: "GPUs" }, { field: "start", type: "temporal", format: "%a %H:%M" }, { field: "end", type: "temporal", format: "%a %H:%M" }] } },
      { mark: { type: "tick", thickness: 3, height: 22, color: colourOf("--fault") }, encoding: { x: { field: "deadline", type: "temporal" }, y: { field: "job", type: "nominal", sort: null }, tooltip: [{ field: "deadline", type: "temporal", title: "deadline", format: "%a %H:%M" }] } },
    ],
  });
}

by("which").addEventListener("change", show);
by("again").addEventListener("click", show);
show();
setInterval(show, 30000);
redrawn(paint);
