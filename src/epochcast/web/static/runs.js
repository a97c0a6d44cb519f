// All runs: the first page comes with the document, news as events.
import { ask, by, clock, dollars, element, interval, listen, say, seconds } from "./common.js";

const body = by("runs").querySelector("tbody");
const rows = new Map();
let next = null;

function cells(run) {
  const done = element("progress", { max: 1, value: run.fraction ?? 0 });
  done.setAttribute("aria-label", `${run.run}: progress`);
  const percent = run.fraction === null ? "" : ` ${(100 * run.fraction).toFixed(1)} %`;
  const link = element("a", { href: `/runs/${run.run.split("/").map(encodeURIComponent).join("/")}` }, run.run);
  const left = run.remaining_seconds;
  const against = run.against_forecast ? `${run.against_forecast.toFixed(2)} ×` : "–";
  return [
    [link, ...(run.drift ? [element("div", { class: "hint verdict-no" }, "pace changed")] : [])],
    [element("span", { class: `state-${run.state}` }, run.state)],
    [done, percent],
    left ? [seconds(left.mid), element("div", { class: "hint" }, interval(left, seconds))] : ["–"],
    [clock(run.finish_at || run.ended_at)], [against], [dollars(run.dollars_so_far)],
  ].map((content) => element("td", {}, ...content));
}

function put(run, atTop) {
  let row = rows.get(run.key);
  if (!row) {
    row = element("tr");
    rows.set(run.key, row);
    if (atTop) { body.prepend(row); } else { body.append(row); }
  }
  row.replaceChildren(...cells(run));
  by("runs").hidden = false;
  by("empty").hidden = true;
}

function page(told) { told.runs.forEach((run) => put(run, false)); next = told.next; by("more").hidden = next === null; }

page(JSON.parse(by("first-runs").textContent));
by("more").addEventListener("click", async () => page(await ask(`/api/v1/runs?before=${next}`)));
listen("/api/v1/events", (run) => put(run, true), (text) => say("stream", text));
