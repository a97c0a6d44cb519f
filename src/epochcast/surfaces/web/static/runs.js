// All runs: filters, order and page are the address; news arrives as events and changes nothing of the order.
import { OVER, api, ask, atMost, by, dollars, doneText, element, heard, interval, later, listen, pathOf, roughly, say, seconds, send, shortClock, silentSeconds, stateOf, tagsOf } from "./common.js";
import { onCard, sortable } from "./table.js";

const PAGE = 50, SILENCE_MS = 30_000, NEW_MS = 1500, RESORT_MS = 10_000, LEAST_COMPARED = 2, MOST_COMPARED = 6;
const body = by("runs").querySelector("tbody"), head = by("runs").querySelector("thead tr");
const rows = new Map();  // by the run's key: the run, and its row of the table
const selected = new Map();
const filters = [...document.querySelectorAll("[data-filter]")];
let asked = read(), total = 0, newest = 0, under_way = null;

const COLUMNS = [
  { key: "state", name: "State", order: "state", cells: (run) => [stateOf(run)] },
  { key: "progress", name: "Progress", order: "progress", cells: progress },
  { key: "remaining", name: "Remaining", order: "remaining", cells: remaining },
  { key: "finish", name: "Ends", order: "finish", cells: (run) => [shortClock((silentSeconds(run) ? null : run.finish_at) || run.ended_at)] },
  { key: "pace", name: "Against forecast", order: "pace", cells: pace },
  { key: "cost", name: "Cost so far", order: "cost", cells: cost },
  { key: "device", name: "Device", order: "device", is_extra: true, cells: (run) => [run.device ? `${run.gpus * run.nodes} × ${run.device}` : "–"] },
  { key: "host", name: "Host", order: "host", is_extra: true, cells: (run) => [run.host ?? "–"] },
  { key: "project", name: "Project", order: "project", is_extra: true, cells: (run) => [run.project ?? "–"] },
  { key: "started", name: "Began", order: "started", is_extra: true, cells: (run) => [shortClock(run.started_at)] },
  { key: "seen", name: "Last report", order: "seen", is_extra: true, cells: (run) => [`${roughly((Date.now() - run.heard) / 1000)} ago`] },
];
let columns = JSON.parse(localStorage.getItem("epochcast-columns") || "null") ?? COLUMNS.filter((one) => !one.is_extra).map((one) => one.key);

function progress(run) {
  const done = element("progress", { max: 1, value: run.state === "ended" ? 1 : run.fraction ?? 0 });
  done.setAttribute("aria-label", `${run.label}: progress`);
  return [element("div", { class: "done" }, done, element("span", {}, doneText(run)))];
}
function remaining(run) {
  const left = silentSeconds(run) ? null : run.remaining_seconds;
  return left ? [seconds(left.mid), element("div", { class: "hint" }, interval(left, seconds))] : ["–"];
}
function pace(run) {
  const against = run.against_forecast ? `${run.against_forecast.toFixed(2)} ×` : "–";
  const is_unusual = run.speed_verdict && run.speed_verdict !== "normal";
  return is_unusual ? [against, element("div", { class: "hint verdict-no" }, run.speed_verdict)] : [against];
}
function cost(run) {
  const all = run.dollars && !silentSeconds(run) && !OVER.includes(run.state);
  return all ? [dollars(run.dollars_so_far), element("div", { class: "hint" }, `of ${dollars(run.dollars.mid)}`)] : [dollars(run.dollars_so_far)];
}

function named(run) {
  const more = run.title ? [element("div", { class: "hint" }, run.run)] : [];
  const changed = run.drift ? [element("div", { class: "hint verdict-no" }, "pace changed")] : [];
  return [element("a", { href: `/runs/${pathOf(run)}` }, run.label), ...more, ...tagsOf(run), ...changed];
}

function chooser(run) {
  const box = element("input", { type: "checkbox", "aria-label": `select ${run.label}` });
  box.checked = selected.has(run.key);
  box.addEventListener("change", () => { if (box.checked) { selected.set(run.key, run); } else { selected.delete(run.key); } showSelected(); });
  return box;
}

function cells(run) {
  const shown = COLUMNS.filter((one) => columns.includes(one.key));
  return [["Run", named(run)], ...shown.map((one) => [one.name, one.cells(run)])].map(([label, content], place) => {
    const cell = element("td", {}, ...content);
    cell.dataset.label = label;
    return onCard(cell, place === 0);
  });
}

// Only cells that changed are replaced: a link keeps the keyboard's focus, text stays selected.
function write({ run, row }) {
  const made = cells(run);
  if (row.children.length !== made.length + 1) { row.replaceChildren(element("td", { class: "choose" }, chooser(run)), ...made); return; }
  made.forEach((cell, place) => { const old = row.children[place + 1]; if (old.outerHTML !== cell.outerHTML) { old.replaceWith(cell); } });
}

// ---- the page that is asked for ----

function read() {
  const given = new URLSearchParams(location.search);
  const text = (name) => given.get(name) ?? "";
  return { search: text("search"), state: text("state"), project: text("project"), device: text("device"), tag: text("tag"),
    archived: given.get("archived") === "true", order: text("order") || "newest", ascending: given.get("ascending") === "true", page: Math.max(1, Number(text("page")) || 1) };
}

function address() {
  const kept = Object.entries(asked).filter(([name, value]) => value && !(name === "order" && value === "newest") && !(name === "page" && value === 1));
  return new URLSearchParams(kept.map(([name, value]) => [name, String(value)]));
}

async function load() {
  under_way?.abort();
  const mine = under_way = new AbortController();
  const { page, ...rest } = asked;
  const wanted = new URLSearchParams(Object.entries(rest).filter(([, value]) => value).map(([name, value]) => [name, String(value)]));
  wanted.set("first", (page - 1) * PAGE);
  wanted.set("most", PAGE);
  try {
    const told = await ask(`/api/v1/runs?${wanted}`, undefined, mine.signal);
    if (mine === under_way) { show(told); }
  } catch (error) {
    if (error.name !== "AbortError") { by("fault").hidden = false; say("fault", error.message); }
  }
}

function show(told) {
  by("fault").hidden = true;
  total = told.count;
  if (asked.order === "newest") { newest = Math.max(newest, ...told.runs.map((run) => run.id)); }
  const keys = new Set(told.runs.map((run) => run.key));
  for (const [key, { row }] of rows) { if (!keys.has(key)) { row.remove(); rows.delete(key); } }
  told.runs.forEach((run, place) => {
    const entry = rows.get(run.key) ?? { row: element("tr") };
    entry.run = heard(run);
    rows.set(run.key, entry);
    write(entry);
    if (body.children[place] !== entry.row) { body.insertBefore(entry.row, body.children[place] ?? null); }
  });
  const is_filtered = filters.some((field) => asked[field.dataset.filter]);
  by("runs").hidden = told.runs.length === 0;
  by("empty").hidden = total > 0 || is_filtered;
  by("nothing").hidden = told.runs.length > 0 || !is_filtered;
  const first = (asked.page - 1) * PAGE + 1, pages = Math.max(1, Math.ceil(total / PAGE));
  say("range", told.runs.length ? `${first.toLocaleString("en")}–${(first + told.runs.length - 1).toLocaleString("en")} of ${total.toLocaleString("en")}` : "");
  by("before").disabled = asked.page <= 1;
  by("after").disabled = asked.page >= pages;
  by("pager").hidden = pages <= 1;
  showSelected();
}

function go(change) {
  asked = { ...asked, page: 1, ...change };
  const query = String(address());
  history.replaceState(null, "", query ? `?${query}` : location.pathname);
  showHead();
  load();
}

function showHead() {
  const all = element("input", { type: "checkbox", "aria-label": "select all runs of this page" });
  all.addEventListener("change", () => { rows.forEach(({ run, row }) => { if (all.checked) { selected.set(run.key, run); } else { selected.delete(run.key); } row.querySelector("input").checked = all.checked; }); showSelected(); });
  const shown = COLUMNS.filter((one) => columns.includes(one.key));
  sortable(head, [{ control: all }, { name: "Run", order: "name" }, ...shown], asked.order, asked.ascending, (order, ascending) => go({ order, ascending }));
}

// ---- what is done with runs ----

function showSelected() {
  const count = selected.size;
  by("selection").hidden = count === 0;
  say("selected", `${count} selected`);
  by("compare").disabled = count < LEAST_COMPARED || count > MOST_COMPARED;
  by("archive").textContent = asked.archived ? "Restore" : "Archive";
}

async function each(what) {
  try {
    for (const run of selected.values()) { await what(run); }
  } catch (error) { by("fault").hidden = false; say("fault", error.message); }
  selected.clear();
  for (const { row } of rows.values()) { row.querySelector("input").checked = false; }
  await load();
  await showChoices();
}

by("compare").addEventListener("click", () => { location.href = `/compare?${new URLSearchParams([...selected.values()].map((run) => ["run", run.run]))}`; });
by("archive").addEventListener("click", () => each((run) => send("PATCH", api(run), { is_archived: !asked.archived })));
by("delete").addEventListener("click", () => {
  if (confirm(`Delete ${selected.size} run${selected.size > 1 ? "s" : ""} with all their reports? This cannot be undone.`)) { each((run) => send("DELETE", api(run))); }
});
by("tagging").addEventListener("submit", (event) => {
  event.preventDefault();
  const tag = by("tag").value.trim();
  if (tag) { each((run) => send("PATCH", api(run), { tags: [...new Set([...run.tags, tag])] })); by("tag").value = ""; }
});

// ---- filters and columns ----

async function showChoices() {
  const told = await ask("/api/v1/run-choices");
  const lists = { state: told.states, project: told.projects, device: told.devices, tag: told.tags };
  for (const field of filters.filter((one) => one.tagName === "SELECT")) {
    const name = field.dataset.filter, values = lists[name], kept = asked[name];
    field.replaceChildren(element("option", { value: "" }, "all"), ...[...new Set([...values, ...(kept ? [kept] : [])])].map((value) => element("option", { value }, value)));
    field.value = kept;
    field.closest("label").hidden = values.length === 0 && !kept;
  }
}

for (const field of filters) {
  if (field.type === "checkbox") { field.checked = asked[field.dataset.filter]; } else { field.value = asked[field.dataset.filter]; }
}
const filtered = () => go(Object.fromEntries(filters.map((field) => [field.dataset.filter, field.type === "checkbox" ? field.checked : field.value.trim()])));
by("filters").addEventListener("change", (event) => { if (event.target.dataset.filter) { filtered(); } });
by("search").addEventListener("input", later(250, filtered));
by("filters").addEventListener("submit", (event) => { event.preventDefault(); filtered(); });

by("columns").append(...COLUMNS.map((one) => {
  const box = element("input", { type: "checkbox" });
  box.checked = columns.includes(one.key);
  box.addEventListener("change", () => {
    columns = COLUMNS.filter((other) => (other === one ? box.checked : columns.includes(other.key))).map((other) => other.key);
    localStorage.setItem("epochcast-columns", JSON.stringify(columns));
    showHead();
    rows.forEach(write);
  });
  return element("label", { class: "check" }, box, one.name);
}));
by("before").addEventListener("click", () => go({ page: asked.page - 1 }));
by("after").addEventListener("click", () => go({ page: asked.page + 1 }));

// ---- news ----

const soon = atMost(NEW_MS, load), resort = atMost(RESORT_MS, load);
function happened(run) {
  const entry = rows.get(run.key);
  if (entry) { entry.run = heard(run); write(entry); }
  if (run.id > newest) { newest = run.id; soon(); } else if (asked.order !== "newest" || (asked.state && entry)) { resort(); }
}

showHead();
Promise.all([load(), showChoices()]).then(() => listen("/api/v1/events", happened, (text) => say("stream", text), load));
setInterval(() => rows.forEach(write), SILENCE_MS);
