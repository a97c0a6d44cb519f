// Is this speed normal: an observed speed or pasted lines against the forecast of the job, and the likeliest causes.
import { ask, by, element, interval, noted, say, seconds } from "./common.js";
import { fieldsOf, fill, given, questionOf, remember, slide } from "./form.js";
import { table } from "./table.js";

const form = by("job"), fields = fieldsOf(form);
const START = { model: "resnet50", device: "A100-SXM4-80GB", batch: 128, precision: "amp" };
const question = () => ({ ...others, ...questionOf(fields), observed: by("observed").value });
let others = {};  // options of a run that this form has no field for

async function check() {
  const asked = question();
  remember({ ...asked, observed: asked.observed.slice(0, 500) });
  document.querySelectorAll("[data-part]").forEach((part) => part.classList.add("stale"));
  try {
    show(await ask("/api/v1/check", asked));
    by("fault").hidden = true;
  } catch (error) {
    by("fault").hidden = false;
    say("fault", error.message);
    say("verdict", "–");
    say("verdict-more", "");
    for (const id of ["figures", "causes", "warnings"]) { by(id).replaceChildren(); }
  }
  document.querySelectorAll("[data-part]").forEach((part) => part.classList.remove("stale"));
}

function show(told) {
  say("verdict", told.verdict);
  by("verdict").className = `value ${told.verdict === "normal" || told.verdict === "faster" ? "verdict-fits" : "verdict-no"}`;
  say("verdict-more", `A step takes ${told.factor.mid.toFixed(2)} × its forecast (${told.factor.low.toFixed(2)} … ${told.factor.high.toFixed(2)}).`);
  const step = (value) => [seconds(value.mid), element("div", { class: "hint" }, interval(value, seconds))];
  by("figures").replaceChildren(table("Observed and forecast", ["", "Observed", "Forecast"], [
    ["Seconds per step", step(told.observed_seconds), step(told.forecast_step_seconds)],
    ["Missing per step", told.missing_seconds > 0 ? seconds(told.missing_seconds) : "–", "–"],
    ["MFU", told.mfu === null ? "–" : `${(100 * told.mfu).toFixed(1)} %`, "–"]]));
  const rows = told.causes.map((cause) => [cause.name, cause.is_measured ? "measured" : `${Math.round(100 * cause.probability)} %`, explained(cause.explained_seconds.mid), cause.evidence, cause.separate_by]);
  by("causes").replaceChildren(rows.length ? table("Causes", ["Cause", "How likely", "Explains", "Why", "How to tell"], rows) : element("p", { class: "hint" }, "Nothing needs an explanation."));
  by("warnings").replaceChildren(...told.warnings.map(noted));
}
const explained = (value) => (value < 0 ? `−${seconds(-value)}` : seconds(value));

slide(form, () => {});
form.addEventListener("submit", (event) => { event.preventDefault(); check(); });
const names = fields.map((field) => field.dataset.option), told = given();
fill(fields, Object.keys(told).length ? told : START);
others = Object.fromEntries(Object.entries(told).filter(([name]) => ![...names, "observed"].includes(name)));
if (told.observed) { by("observed").value = told.observed; check(); }
ask("/api/v1/models").then((known) => by("models").replaceChildren(...known.models.map((one) => element("option", { value: one.name }, one.title)))).catch(() => {});
