// All runs, the newest first: the first page comes with the document, news as events.
import { ask, by, clock, dollars, element, heard, interval, listen, say, seconds, silence, silentSeconds } from "./common.js";

const body = by("runs").querySelector("tbody");
const rows = new Map();  // by the run's key: the run, and its row of the table
const SILENCE_MS = 30_000;
let next = null;

function cells(run) {
  const done = element("progress", { max: 1, value: run.fraction ?? 0 });
  done.setAttribute("aria-label", `${run.run}: progress`);
  const percent = element("span", {}, run.fraction === null ? "" : `${(100 * run.fraction).toFixed(1)} %`);
  const link = element("a", { href: `/runs/${run.run.split("/").map(encodeURIComponent).join("/")}` }, run.run);
  const passed = silentSeconds(run), left = passed ? null : run.remaining_seconds;
  const state = passed ? element("span", { class: "state-silent" }, silence(passed)) : element("span", { class: `state-${run.state}` }, run.state);
  const against = run.against_forecast ? `${run.against_forecast.toFixed(2)} ×` : "–";
  const unusual = run.speed_verdict && run.speed_verdict !== "normal";
  const speed = unusual ? [element("div", { class: "hint verdict-no" }, run.speed_verdict)] : [];
  const all = run.dollars && !passed ? [element("div", { class: "hint" }, `of ${dollars(run.dollars.mid)}`)] : [];
  return [
    [link, ...(run.drift ? [element("div", { class: "hint verdict-no" }, "pace changed")] : [])],
    [state],
    [element("div", { class: "done" }, done, percent)],
    left ? [seconds(left.mid), element("div", { class: "hint" }, interval(left, seconds))] : ["–"],
    [clock((passed ? null : run.finish_at) || run.ended_at)], [against, ...speed], [dollars(run.dollars_so_far), ...all],
  ].map((content) => element("td", {}, ...content));
}

// In the order of the list; what is older than the pages read so far waits for its page.
function put(run) {
  if (!rows.has(run.key)) {
    if (next !== null && run.id < next) { return; }
    const row = element("tr");
    row.dataset.id = run.id;
    body.insertBefore(row, [...body.children].find((other) => Number(other.dataset.id) < run.id) ?? null);
    rows.set(run.key, { row });
    by("runs").hidden = false;
    by("empty").hidden = true;
  }
  rows.get(run.key).run = run;
  write(rows.get(run.key));
}

// Only cells that changed are replaced: a link keeps the keyboard's focus, text stays selected.
function write({ run, row }) {
  const made = cells(run);
  if (!row.children.length) { row.append(...made); return; }
  made.forEach((cell, place) => { if (row.children[place].innerHTML !== cell.innerHTML) { row.children[place].replaceWith(cell); } });
}

function page(told) { next = told.next; told.runs.forEach((run) => put(heard(run))); by("more").hidden = next === null; }

page(JSON.parse(by("first-runs").textContent));
by("more").addEventListener("click", async () => page(await ask(`/api/v1/runs?before=${next}`)));
listen("/api/v1/events", (run) => put(heard(run)), (text) => say("stream", text));
setInterval(() => rows.forEach(write), SILENCE_MS);
