// What all pages share: asking the server, and printing quantities as the command line does.

export async function ask(path, body, signal) {
  const options = body === undefined ? { signal } : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal,
  };
  return read(await fetch(path, options));
}

export async function send(method, path, body) {
  return read(await fetch(path, { method, headers: { "Content-Type": "application/json" }, body: body === undefined ? undefined : JSON.stringify(body) }));
}

export async function read(answer) {
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) {
    if (answer.status === 401) { location.href = "/login?then=" + encodeURIComponent(location.pathname + location.search); }
    throw new Error(told.detail || `the server answered with ${answer.status}`);
  }
  return told;
}

const DIGITS = 3;
function digits(value) {
  if (value === 0) { return "0"; }
  const places = Math.max(0, DIGITS - 1 - Math.floor(Math.log10(Math.abs(value))));
  return places > 0 && places < 20 ? String(Number(value.toFixed(places))) : Math.round(value).toLocaleString("en");
}

export function seconds(value) {
  if (value === null || value === undefined) { return "–"; }
  if (value < 1e-3) { return `${digits(value * 1e6)} µs`; }
  if (value < 1) { return `${digits(value * 1e3)} ms`; }
  if (value < 60) { return `${digits(value)} s`; }
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const at = units.findIndex(([, size]) => value >= size);
  let first = Math.floor(value / units[at][1]);
  let second = Math.round((value - first * units[at][1]) / units[at + 1][1]);
  if (second * units[at + 1][1] >= units[at][1]) { first += 1; second = 0; }
  return second ? `${first} ${units[at][0]} ${second} ${units[at + 1][0]}` : `${first} ${units[at][0]}`;
}

export function bytes(value) {
  if (value === null || value === undefined) { return "–"; }
  const names = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let at = 0;
  while (value >= 1024 && at < names.length - 1) { value /= 1024; at += 1; }
  return `${digits(value)} ${names[at]}`;
}

export function dollars(value) {
  if (value === null || value === undefined) { return "–"; }
  const places = value >= 1000 ? 0 : 2;
  return "$" + value.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places });
}

export function count(value) { return value >= 100 ? Math.round(value).toLocaleString("en") : digits(value); }

export function interval(told, show) { return told ? `${show(told.low)} … ${show(told.high)}` : ""; }

export function clock(text) {
  if (!text) { return "–"; }
  return new Date(text).toLocaleString([], { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", timeZoneName: "short" });
}

// In a table: the time of a moment of today, the day before it of others.
export function shortClock(text) {
  if (!text) { return "–"; }
  const at = new Date(text), day = at.toDateString() === new Date().toDateString() ? {} : { weekday: "short", day: "numeric", month: "short" };
  return at.toLocaleString([], { ...day, hour: "2-digit", minute: "2-digit" });
}

// Two moments of one day share its date.
export function clocks(first, last) {
  const day = (text) => new Date(text).toDateString();
  const time = (text) => new Date(text).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return day(first) === day(last) ? `${time(first)} … ${time(last)}` : `${clock(first)} … ${clock(last)}`;
}

export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "class") { made.className = value; } else if (key in made) { made[key] = value; } else { made.setAttribute(key, value); }
  }
  made.append(...children);
  return made;
}

// A note as an item of a list; what stands between backticks is code.
export function noted(text) { return element("li", {}, ...text.split("`").map((part, place) => (place % 2 ? element("code", {}, part) : part))); }

export const by = (id) => document.getElementById(id);
export function say(id, text) { by(id).textContent = text; }

export function later(wait, what) {
  let timer;
  return (...given) => { clearTimeout(timer); timer = setTimeout(() => what(...given), wait); };
}

// At once, then at most so often however often it is called; the last call always counts. One at a time.
export function atMost(wait, what) {
  let is_waiting = false, is_newer = false;
  const run = async () => {
    is_waiting = true;
    is_newer = false;
    await Promise.all([what(), new Promise((done) => setTimeout(done, wait))]).catch(() => {});
    is_waiting = false;
    if (is_newer) { run(); }
  };
  return () => { if (is_waiting) { is_newer = true; } else { run(); } };
}

// A run that should be reporting and has not for several of its own intervals. `heard` is when it was last heard of, by our own clock.
export function heard(run) { return { ...run, heard: Date.now() - 1000 * run.silent_seconds }; }
export function silentSeconds(run) {
  const passed = (Date.now() - run.heard) / 1000;
  return run.state === "running" && passed > run.silent_after_seconds ? passed : 0;
}
// In the largest unit that it fills: nobody counts the seconds of a silence.
const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
export function roughly(value) {
  const [name, size] = UNITS.find(([, unit]) => value >= unit) ?? UNITS.at(-1);
  return `${Math.max(1, Math.floor(value / size))} ${name}`;
}
export const silence = (passed) => `no report for ${roughly(passed)}`;

// Listen to live events; `told` gets every run that changed. The browser connects again by itself, and the page then fetches
// anew (`again`): what happened meanwhile was sent to nobody. `said` gets the age of the data.
const AGE_MS = 5000;
export function listen(path, told, said, again = () => {}) {
  const source = new EventSource(path);
  let away_since = null, was_open = false;
  const age = () => { if (away_since !== null) { said(`the server is away, trying again; data is ${roughly((Date.now() - away_since) / 1000)} old`); } };
  source.addEventListener("open", () => {
    if (was_open && away_since !== null) { again(); }
    was_open = true;
    away_since = null;
    said("updates live");
  });
  source.addEventListener("error", () => { away_since ??= Date.now(); age(); });
  source.addEventListener("run", (event) => told(JSON.parse(event.data)));
  setInterval(age, AGE_MS);
  return source;
}

export const OVER = ["ended", "failed", "stopped"];
export const pathOf = (run) => run.run.split("/").map(encodeURIComponent).join("/");
export const api = (run) => `/api/v1/runs/${pathOf(run)}`;
export const percent = (share) => `${(100 * share).toFixed(1)} %`;

// A run that is over has done all of it, or stopped somewhere.
export function doneText(run) {
  if (run.state === "ended") { return "100 %"; }
  if (run.fraction === null) { return ""; }
  return OVER.includes(run.state) ? `stopped at ${percent(run.fraction)}` : percent(run.fraction);
}

export function stateOf(run) {
  const passed = silentSeconds(run);
  return passed ? element("span", { class: "state-silent" }, silence(passed)) : element("span", { class: `state-${run.state}` }, run.state);
}

export function tagsOf(run) { return run.tags.map((tag) => element("a", { class: "tag", href: `/runs?tag=${encodeURIComponent(tag)}` }, tag)); }
