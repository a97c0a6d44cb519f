// What to rent: the map of offers and the best of them, with the age of each price.
import { ask, by, count, dollars, element, interval, later, noted, say, seconds } from "./common.js";
import { draw, redrawn, withoutLegend } from "./charts.js";
import { address, fieldsOf, fill, given, questionOf, remember, slide } from "./form.js";
import { table } from "./table.js";

const form = by("job"), fields = fieldsOf(form);
const START = { model: "resnet50", batch: 1024, precision: "amp", dataset: "imagenet-1k", epochs: 90, deadline_seconds: "12h" };
const OLD_DAYS = 90, MOST_NOTES = 3, DAY_MS = 86_400_000, PLACED = ["model", "precision", "dataset", "epochs", "samples", "tokens"];
let under_way = null, last = null;

function dim(is_stale) { for (const part of document.querySelectorAll("[data-part]")) { part.classList.toggle("stale", is_stale); part.setAttribute("aria-busy", String(is_stale)); } }

const plan = later(400, async () => {
  under_way?.abort();
  under_way = new AbortController();
  const asked = questionOf(fields);
  try {
    last = await ask("/api/v1/plan", { ...asked, draw: true }, under_way.signal);
    by("fault").hidden = true;
    await show(asked);
    dim(false);
  } catch (error) {
    if (error.name === "AbortError") { return; }
    last = null;
    by("fault").hidden = false;
    say("fault", error.message);
    say("sentence", "–");
    say("counts", "");
    by("warnings").replaceChildren(); by("more-warnings").hidden = true; by("map").replaceChildren(); by("offers").replaceChildren();
    by("map").nextElementSibling?.matches("details") && by("map").nextElementSibling.remove();
    dim(false);
  }
});

async function show(asked) {
  say("sentence", last.sentence);
  const reasons = Object.entries(last.reasons).map(([reason, number]) => `${count(number)} ${reason.startsWith("does") ? "do" + reason.slice(4) : reason}`);
  say("counts", [`${count(last.considered)} offers`, ...reasons].join(" · "));
  const notes = last.warnings.map(noted), many = notes.slice(MOST_NOTES);
  by("warnings").replaceChildren(...notes.slice(0, MOST_NOTES));
  by("more-warnings").hidden = many.length === 0;
  say("more-count", `${many.length} more notes`);
  by("more-list").replaceChildren(...many);
  by("offers").replaceChildren(table("Best offers", ["Hardware", "Time", "Cost", "Price", "Memory", "Price date", "Cloud", "Region", "Offer", ""], last.frontier.map((offer) => row(offer, asked))));
  if (last.chart) { await draw(by("map"), withoutLegend(last.chart)); } else { by("map").replaceChildren(); }
}

function row(offer, asked) {
  const is_chosen = last.chosen && offer.offer === last.chosen.offer && offer.region === last.chosen.region && offer.gpus === last.chosen.gpus;
  const kept = Object.fromEntries(Object.entries(asked).filter(([name]) => PLACED.includes(name)));
  const job = { ...kept, device: offer.device, gpus: offer.gpus, nodes: offer.nodes, batch: offer.batch_per_gpu, ...(offer.gpus > 1 ? { strategy: offer.strategy } : {}) };
  return [
    [element(is_chosen ? "strong" : "span", {}, `${offer.gpus} × ${offer.device}${is_chosen ? " (chosen)" : ""}`)],
    [seconds(offer.total_seconds.mid), element("div", { class: "hint" }, interval(offer.total_seconds, seconds))],
    [dollars(offer.dollars.mid), element("div", { class: "hint" }, interval(offer.dollars, dollars))],
    `${dollars(offer.dollars_per_hour)}/h${offer.is_spot ? " spot" : ""}`, offer.memory_verdict, age(offer.priced_on), offer.cloud, offer.region, offer.offer,
    [element("a", { href: `/?${address(job)}` }, "Forecast")],
  ];
}

function age(priced_on) {
  const days = Math.floor((Date.now() - Date.parse(priced_on)) / DAY_MS);
  const text = Number.isFinite(days) ? `${days} d old` : "";
  return [String(priced_on ?? "–"), element("div", { class: days > OLD_DAYS ? "hint verdict-tight" : "hint" }, text)];
}

function changed() { remember(questionOf(fields)); dim(true); plan(); }
slide(form, changed);
form.addEventListener("input", (event) => { if (event.target.matches("[data-option]")) { changed(); } });
form.addEventListener("submit", (event) => event.preventDefault());
fill(fields, Object.keys(given()).length ? given() : START);
changed();
ask("/api/v1/models").then((told) => by("models").replaceChildren(...told.models.map((one) => element("option", { value: one.name }, one.title)))).catch(() => {});
redrawn(() => { if (last?.chart) { draw(by("map"), withoutLegend(last.chart)); } });
