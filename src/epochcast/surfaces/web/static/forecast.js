// The forecast page: the form is the question, its address is the question written down, answers follow every change.
import { ask, bytes, by, count, dollars, element, interval, later, noted, read, say, seconds } from "./common.js";
import { draw, redrawn, withoutLegend } from "./charts.js";
import { fieldsOf, fill, given, questionOf, remember, slide } from "./form.js";
import { table } from "./table.js";

const form = by("job");
const fields = fieldsOf(form);
const PARTS = [["forward", "forward"], ["backward", "backward"], ["update", "optimizer"], ["exposed_comm", "waiting for other GPUs"], ["exposed_input", "waiting for data"], ["host", "waiting for launches"]];
const START = { model: "resnet50", device: "A100-SXM4-80GB", batch: 128, precision: "amp", dataset: "imagenet-1k", epochs: 90 };

const question = () => questionOf(fields);
slide(form, () => changed());

// What the page shows of an older question is dimmed until the answer to the newest one is there.
const PARTS_OF_PAGE = ["answer", "memory", "scaling", "plan", "evidence"];
function dim(part, is_stale) {
  for (const shown of document.querySelectorAll(`[data-part=${part}]`)) { shown.classList.toggle("stale", is_stale); shown.setAttribute("aria-busy", String(is_stale)); }
}
const isStale = (part) => document.querySelector(`[data-part=${part}]`).classList.contains("stale");

// One question at a time, and the newest next: answers follow a slider while it is dragged. One that takes long is left.
const LONG_MS = 400;
let under_way = null, is_newer = false, is_reading = false;

async function answer() {
  if (under_way) {
    is_newer = true;
    if (performance.now() - under_way.began > LONG_MS) { under_way.abort(); }
    return;
  }
  const asked = question();
  under_way = Object.assign(new AbortController(), { began: performance.now() });
  try {
    show(await ask("/api/v1/forecast", asked, under_way.signal), asked);
    dim("answer", is_newer || is_reading);
  } catch (error) {
    if (error.name !== "AbortError") { refuse(error.message); }
  }
  under_way = null;
  if (is_newer) { is_newer = false; answer(); }
}

// After an error nothing of an older question stays.
function refuse(text) {
  by("fault").hidden = false;
  say("fault", text);
  for (const id of ["time", "memory", "cost"]) { say(id, "–"); say(`${id}-interval`, ""); say(`${id}-more`, ""); }
  by("parts").replaceChildren(); by("parts-list").replaceChildren(); by("memory-bar").replaceChildren(); say("memory-said", ""); say("memory-numbers", "");
  showFit({});
  showBar({});
  showNotes({});
  copies = {};
  showCopy();
  evidence_of = null;
  by("evidence").replaceChildren();
  by("neighbours").replaceChildren();
  if (isStale("memory")) { clearMemory(""); }
  if (isStale("scaling")) { clearScaling(""); }
  if (isStale("plan")) { clearPlan(""); }
  for (const part of ["answer", "evidence"]) { dim(part, false); }
}

// A job that does not fit has no time and no price: they are shown small, for comparison.
function showFit(told) {
  const is_unfit = told.fits === false || told.memory_verdict === "does not fit";
  by("unfit").hidden = !is_unfit;
  say("remedies-said", "Looking for changes that fit …");
  by("remedies").replaceChildren();
  for (const id of ["time-card", "cost-card"]) { by(id).classList.toggle("dimmed", is_unfit); }
  if (!is_unfit) { return; }
  const needed = told.peak_bytes ? `This job needs ${bytes(told.peak_bytes.mid)} on each GPU` : "This job needs more memory";
  say("unfit-more", `${needed}; ${told.device} has ${bytes(told.memory_bytes)}. Use a smaller batch, more GPUs with a sharding strategy, or a larger GPU.`);
  for (const id of ["time-more", "cost-more"]) { say(id, `if it fitted · ${by(id).textContent}`); }
}

// On a tablet and a phone the answer stays in sight while sliders move.
function showBar(told) {
  const is_unfit = told.fits === false;
  say("bar-time", is_unfit ? "does not fit" : by("time").textContent);
  say("bar-memory", told.peak_bytes ? `${bytes(told.peak_bytes.mid)}${is_unfit ? ` of ${bytes(told.memory_bytes)}` : ""}` : "");
  say("bar-cost", is_unfit ? "" : by("cost").textContent);
  by("bar").classList.toggle("verdict-no", is_unfit);
}

// What would fit, each a click away.
const MOST_REMEDIES = 6;
function showRemedies(remedies) {
  say("remedies-said", remedies.length ? "This would fit:" : "No change that was tried makes it fit.");
  by("remedies").replaceChildren(...remedies.slice(0, MOST_REMEDIES).map((one) => {
    const more = `${bytes(one.peak_bytes.mid)} · ${one.time_factor > 1 ? "+" : "−"}${Math.round(100 * Math.abs(one.time_factor - 1))} % time per sample${one.memory_verdict === "tight" ? " · tight" : ""}`;
    const take = element("button", { type: "button", class: "offer" }, `${one.change}: ${one.value}`, element("span", { class: "hint" }, more));
    take.addEventListener("click", () => { fill(fields, { device: one.device, ...one.options }); changed(); });
    return element("li", {}, take);
  }));
}

function show(told, asked) {
  by("fault").hidden = true;
  const total = told.total_seconds;
  say("time", seconds(total ? total.mid : told.step_seconds.mid));
  say("time-interval", interval(total || told.step_seconds, seconds));
  const rate = told.tokens_per_second ? `${count(told.tokens_per_second)} tokens/s` : told.images_per_second ? `${count(told.images_per_second)} images/s` : `${count(told.samples_per_second)} samples/s`;
  say("time-more", `${total ? `step ${seconds(told.step_seconds.mid)}` : "one step; say the data and epochs for the whole job"} · ${rate}`);
  showMemory(told);
  say("cost", dollars(told.dollars?.mid));
  say("cost-interval", interval(told.dollars, dollars));
  say("cost-more", told.dollars_per_hour ? `${dollars(told.dollars_per_hour)}/h${told.price_source ? `, ${told.price_source}` : ""}` : "no price is known for this place");
  showFit(told);
  showBar(told);
  showParts(told);
  showNotes(told);
  showCopies(asked);
  showEvidence(told);
}

// Keys of answers in words.
const WORDS = { autocast_copies: "autocast copies of weights", optimizer_state: "optimizer state" };
const inWords = (name) => WORDS[name] ?? name.replaceAll("_", " ");

function showMemory(told) {
  const peak = told.peak_bytes, card = told.memory_bytes, bar = by("memory-bar");
  say("memory", bytes(peak?.mid));
  say("memory-interval", interval(peak, bytes));
  const verdict = told.memory_verdict || "", chance = told.fits_probability;
  const words = chance === null || chance === undefined ? verdict : `${verdict} (${percent(chance)})`;
  say("memory-more", card ? `of ${bytes(card)}: ${words}` : words);
  by("memory-more").className = `hint ${verdict === "fits" ? "verdict-fits" : verdict === "tight" ? "verdict-tight" : "verdict-no"}`;
  bar.replaceChildren();
  if (!peak || !card) { return; }
  const widest = Math.max(card, peak.high) * 1.04, at = (size) => `${(100 * size) / widest}%`;
  const used = element("div", { class: "used" }), range = element("div", { class: "range" }), limit = element("div", { class: "limit" });
  const text = element("div", { class: "limit-text" }, `out of memory above ${bytes(card)}`);
  used.style.width = at(peak.mid); range.style.left = at(peak.low); range.style.width = at(peak.high - peak.low);
  limit.style.left = at(card); text.style.left = `clamp(6.5rem, ${at(card)}, calc(100% - 6.5rem))`;
  bar.append(used, range, limit, text);
  say("memory-numbers", `nvidia-smi ${bytes(peak.mid)} · reserved ${bytes(told.reserved_bytes)} · allocated ${bytes(told.allocated_bytes)}`);
  say("memory-said", Object.entries(told.peak_breakdown || {}).map(([name, size]) => `${inWords(name)} ${bytes(size)}`).join(" · "));
}

function showParts(told) {
  const bar = by("parts"), list = by("parts-list");
  bar.replaceChildren(); list.replaceChildren();
  PARTS.forEach(([key, name], place) => {
    const share = (told.step_parts?.[key] || 0) / told.step_seconds.mid;
    if (share < 0.0005) { return; }
    const piece = element("span", { class: `p${place + 1}`, title: name });
    piece.style.width = `${100 * share}%`;
    bar.append(piece);
    list.append(element("li", {}, element("i", { class: `p${place + 1}` }), `${name} ${seconds(told.step_parts[key])} (${Math.round(100 * share)} %)`));
  });
}

function showNotes(told) {
  const assumed = Object.entries(told.assumed || {}).map(([name, value]) => name === "input_shape" ? `${count(value[0])} tokens` : `${inWords(name)} ${value}`);
  const notes = [...(assumed.length ? [`assumed: ${assumed.join(", ")}`] : []), ...(told.warnings || []), ...(told.opaque_ops?.length ? [`operators costed by their bytes alone: ${told.opaque_ops.join(", ")}`] : [])];
  by("notes-card").hidden = notes.length === 0;
  by("notes").replaceChildren(...notes.map(noted));
}

let evidence_of = null;
const signed = (percents) => `${percents > 0 ? "+" : percents < 0 ? "−" : ""}${Math.abs(percents)} %`;
function showEvidence(told) { evidence_of = told; askEvidence(told); }
const askEvidence = later(300, async (told) => {
  if (evidence_of !== told) { return; }
  const where = by("evidence");
  try {
    const found = await ask(`/api/v1/evidence?${new URLSearchParams({ model: told.model, device: told.device, precision: told.precision, mode: told.mode, fed: told.fed ?? "" })}`);
    if (evidence_of !== told) { return; }
    const rows = found.nearest.map((row) => [row.model, row.device, row.precision, row.batch, row.source, signed(Math.round(100 * row.error))].map((cell) => String(cell ?? "–")));
    const measured = table("Measured runs", ["Network", "Device", "Precision", "Batch", "Measured by", "Our error, left out"], rows);
    where.replaceChildren(element("p", {}, found.sentence), ...(rows.length ? [measured] : []));
  } catch (error) {
    if (evidence_of !== told) { return; }
    where.replaceChildren(element("p", { class: "hint" }, error.message));
  }
  dim("evidence", is_newer || is_reading);
});

// ---- larger questions, when the form has been still for a moment ----

const GPUS = [1, 2, 4, 8, 16, 32];
const SCALING_PARTS = ["throughput, samples/s", "job, hours", "cost, dollars", "efficiency"];  // the command draws more
let larger = null;
const askLarger = later(500, async () => {
  larger?.abort();
  larger = new AbortController();
  const asked = question();
  await Promise.all([askRemedies(asked, larger.signal), askMemory(asked, larger.signal), askScaling(asked, larger.signal), askPlan(asked, larger.signal), askNeighbours(asked, larger.signal)]);
});

// Never quite sure: the command shows the same.
const SUREST = 0.99;
function percent(chance) {
  if (chance > SUREST) { return "> 99 %"; }
  return chance < 1 - SUREST ? "< 1 %" : `${Math.round(100 * chance)} %`;
}

async function askRemedies(asked, signal) {
  try {
    const told = await ask("/api/v1/forecast", asked, signal);  // kept: the answer above is of the same question
    if (told.fits !== false) { return; }
    const found = await ask("/api/v1/remedies", asked, signal);
    if (!signal.aborted) { showRemedies(found.remedies); }
  } catch (error) { if (error.name !== "AbortError") { say("remedies-said", ""); } }
}

function clearMemory(text) { by("memory-step").replaceChildren(); say("memory-step-said", text); dim("memory", is_reading); }

async function askMemory(asked, signal) {
  try {
    const told = await ask("/api/v1/forecast", { ...asked, draw: true }, signal);
    const [over_time, at_peak] = told.chart.concat ?? [];
    await draw(by("memory-step"), at_peak ? { ...told.chart, concat: [{ ...over_time, title: undefined }, { ...at_peak, title: { text: "At the peak, by layer", anchor: "start" } }] } : told.chart);
    if (signal.aborted) { return; }
    say("memory-step-said", `Red: the peak and its 90 % interval. Dashed: what the GPU has.${told.peak_op ? ` The peak is in ${told.peak_op}.` : ""}`);
    dim("memory", is_reading);
  } catch (error) { if (error.name !== "AbortError") { clearMemory(error.message); } }
}

async function askNeighbours(asked, signal) {
  const where = by("neighbours");
  try {
    const { neighbours } = await ask("/api/v1/forecast", { ...asked, neighbours: true }, signal);
    if (signal.aborted) { return; }
    const rows = neighbours.map((run) => [run.model, run.device, String(run.gpus), String(run.batch_per_gpu), run.precision, seconds(run.measured_seconds), seconds(run.forecast_seconds.mid), source(run.source)]);
    const listed = table("Public runs", ["Network", "Device", "GPUs", "Batch", "Precision", "Measured", "Forecast", "Source"], rows);
    where.replaceChildren(...(rows.length ? [element("p", {}, "Steps that others published, and our forecast of each:"), listed] : []));
  } catch (error) { if (error.name !== "AbortError") { where.replaceChildren(); } }
}

// A source is an address without its scheme, or words.
const ADDRESS = /^(?:https?:\/\/)?([\w-]+\.)+[a-z]{2,}\/\S*$/;
function source(text) {
  return ADDRESS.test(text) ? [element("a", { href: text.startsWith("http") ? text : `https://${text}`, rel: "noreferrer" }, text.split("/").slice(0, 3).join("/"))] : text;
}

function clearScaling(text) { by("scaling").replaceChildren(); say("scaling-said", text); dim("scaling", is_reading); }
function clearPlan(text) { by("plan").replaceChildren(); by("offers").replaceChildren(); say("plan-said", text); dim("plan", is_reading); }

async function askScaling(asked, signal) {
  const { gpus, nodes, allreduce, ...rest } = asked;
  try {
    const told = await ask("/api/v1/scaling", { ...rest, gpus: GPUS, draw: true }, signal);
    const parts = told.chart.concat.filter((part) => SCALING_PARTS.includes(part.title?.text));
    await draw(by("scaling"), parts.length ? { ...told.chart, concat: parts } : told.chart);
    if (signal.aborted) { return; }
    say("scaling-said", told.knee_gpus ? `Worth it up to ${told.knee_gpus} GPUs.` : "");
    dim("scaling", is_reading);
  } catch (error) { if (error.name !== "AbortError") { clearScaling(error.message); } }
}

const PLACE = ["device", "gpus", "nodes", "strategy", "allreduce", "link", "topology", "dollars_per_gpu_hour", "host_class", "gemm_seconds"];
async function askPlan(asked, signal) {
  const rest = Object.fromEntries(Object.entries(asked).filter(([name]) => !PLACE.includes(name)));
  if (!["samples", "dataset", "tokens"].some((name) => name in rest)) { clearPlan("Say the data and epochs to see what each offer would cost."); return; }
  if (asked.batch) { rest.batch = asked.batch * (asked.gpus || 1); }  // the batch of the whole job, however many GPUs share it
  try {
    const told = await ask("/api/v1/plan", { ...rest, draw: true }, signal);
    if (!told.chart) { throw new Error(told.sentence || "no offer fits"); }
    const view = await draw(by("plan"), withoutLegend(told.chart));
    if (signal.aborted) { return; }
    view?.addEventListener("click", (event) => choose(nearest(view, event, told.frontier)));
    say("plan-said", "The numbered offers are the best: none is both cheaper and faster. Click one to take it.");
    by("offers").replaceChildren(...told.frontier.map(listed));
    dim("plan", is_reading);
  } catch (error) { if (error.name !== "AbortError") { clearPlan(error.message); } }
}

// The offer that was meant by a click: the nearest, if it is near.
const NEAR_PIXELS = 24;
function nearest(view, event, offers) {
  const [left, top] = view.origin(), across = view.scale("x"), down = view.scale("y");
  const away = (one) => Math.hypot(left + across(one.total_seconds.mid / 3600) - event.offsetX, top + down(one.dollars.mid) - event.offsetY);
  return offers.map((one) => [away(one), one]).filter(([pixels]) => pixels <= NEAR_PIXELS).sort((a, b) => a[0] - b[0])[0]?.[1];
}

function listed(offer) {
  const take = element("button", { type: "button", class: "offer" }, `${offer.gpus} × ${offer.device}`, element("span", { class: "hint" }, `${seconds(offer.total_seconds.mid)} · ${dollars(offer.dollars.mid)} · ${offer.cloud}`));
  take.addEventListener("click", () => choose(offer));
  return element("li", {}, take);
}

function choose(offer) {
  if (!offer) { return; }
  fill(fields, { device: offer.device, gpus: offer.gpus, nodes: offer.nodes, batch: offer.batch_per_gpu, strategy: offer.strategy });
  changed();
  by("time").scrollIntoView({ block: "center" });
}

// ---- taking the question along ----

// Files that were sent from this browser, by the reference that the server gave them.
const sent_files = JSON.parse(localStorage.getItem("epochcast-files") || "{}");
const MOST_FILES = 50;
function keepFile(reference, name) {
  delete sent_files[reference];
  sent_files[reference] = name;
  for (const old of Object.keys(sent_files).slice(0, -MOST_FILES)) { delete sent_files[old]; }
  localStorage.setItem("epochcast-files", JSON.stringify(sent_files));
}
const fileOf = (model) => sent_files[model] ?? model;

const quoted = (text) => (/^[\w./:@%+=-]+$/.test(String(text)) ? String(text) : `'${String(text).replaceAll("'", "'\\''")}'`);
const FLAGS = JSON.parse(form.dataset.flags || "{}");
let copies = {};
function showCopies(sent) {
  const asked = { ...sent, model: fileOf(sent.model) };  // on the command line a file is named by its path
  const { model, ...options } = asked;
  const flags = Object.entries(options).map(([name, given]) => {
    const flag = FLAGS[name] || `--${name.replaceAll("_", "-")}`;
    if (given === true) { return flag; }
    if (given === false) { return flag.replace("--", "--no-"); }
    return Array.isArray(given) ? given.map((one) => `${flag} ${quoted(one)}`).join(" ") : `${flag} ${quoted(given)}`;
  });
  const literal = (given) => (given === true ? "True" : given === false ? "False" : JSON.stringify(given));
  const python = Object.entries(options).map(([name, given]) => `${name}=${literal(given)}`);
  copies = {
    line: ["epochcast forecast", quoted(model), ...flags].join(" "),
    python: `import epochcast as ec\n\nanswer = ec.forecast(${[literal(model), ...python].join(", ")})`,
    toml: ["[[job]]", 'name = "mine"', ...Object.entries(asked).map(([name, given]) => `${name} = ${JSON.stringify(given)}`)].join("\n"),
  };
  showCopy();
}

function showCopy() {
  const chosen = document.querySelector(".tabs [aria-selected=true]");
  say("copy-text", copies[chosen.dataset.copy] || "");
}
for (const tab of document.querySelectorAll("[role=tab]")) { tab.addEventListener("chosen", showCopy); }
by("copy").addEventListener("click", async () => {
  try { await navigator.clipboard.writeText(by("copy-text").textContent); say("copy-said", "copied"); } catch { getSelection().selectAllChildren(by("copy-text")); say("copy-said", "press Ctrl-C to copy what is marked"); }
});

// ---- the model: names that are known, or a file ----

ask("/api/v1/models").then((told) => by("models").replaceChildren(...told.models.map((one) => element("option", { value: one.name }, one.title)))).catch(() => {});

by("file").addEventListener("change", async () => {
  const file = by("file").files[0];
  if (!file) { return; }
  say("file-said", `reading ${file.name} …`);
  is_reading = true;
  PARTS_OF_PAGE.forEach((part) => dim(part, true));
  try {
    const told = await read(await fetch(`/api/v1/uploads?name=${encodeURIComponent(file.name)}`, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: file }));
    say("file-said", `${told.name}: ${count(told.parameters)} parameters`);
    is_reading = false;
    keepFile(told.model, file.name);
    fill(fields, { model: told.model });
    changed();
  } catch (error) {
    is_reading = false;
    say("file-said", error.message);
    under_way?.abort();
    larger?.abort();
    refuse(error.message);
  }
  by("file").value = "";
});

// ---- begin ----

function changed() {
  remember(question());
  larger?.abort();
  PARTS_OF_PAGE.forEach((part) => dim(part, true));
  answer();
  askLarger();
}
form.addEventListener("input", (event) => { if (event.target.matches("[data-option]")) { changed(); } });
form.addEventListener("submit", (event) => event.preventDefault());
fill(fields, Object.keys(given()).length ? given() : START);
changed();
redrawn(askLarger);
