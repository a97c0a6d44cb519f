// Forms of options: from fields to a question, and from an address to fields.
import { by } from "./common.js";

function valueOf(field) {
  if (field.type === "checkbox") { return field.indeterminate || field.checked === field.defaultChecked ? undefined : field.checked; }
  const text = field.value.trim();
  if (text === "") { return undefined; }
  if (field.dataset.kind === "integer" && /^\d+$/.test(text)) { return Number(text); }
  if (field.dataset.kind === "number" && !isNaN(Number(text))) { return Number(text); }
  if (field.dataset.kind === "list") { return text.split(/[\s,]+/).filter(Boolean); }
  return text;
}

export const fieldsOf = (form) => [...form.querySelectorAll("[data-option]")];

export function questionOf(fields) {
  const asked = {};
  for (const field of fields) { const given = valueOf(field); if (given !== undefined) { asked[field.dataset.option] = given; } }
  return asked;
}

export function fill(fields, given) {
  for (const field of fields) {
    const told = given[field.dataset.option];
    if (told === undefined) { continue; }
    if (field.type === "checkbox") { field.checked = told === true || told === "true"; } else { field.value = told; }
    field.dispatchEvent(new Event("filled"));
  }
}

// A slider beside a number: steps by factors of two, or by one.
export function slide(form, changed) {
  for (const slider of form.querySelectorAll("input[type=range]")) {
    const number = by(slider.dataset.for);
    const fromSlider = () => { number.value = slider.dataset.scale === "log2" ? 2 ** Number(slider.value) : slider.value; };
    const fromNumber = () => { const at = Number(number.value); if (at > 0) { slider.value = slider.dataset.scale === "log2" ? Math.log2(at) : at; } };
    slider.addEventListener("input", () => { fromSlider(); changed(); });
    number.addEventListener("input", fromNumber);
    number.addEventListener("filled", fromNumber);
  }
}

export const given = () => Object.fromEntries(new URLSearchParams(location.search));
export const address = (asked) => new URLSearchParams(Object.entries(asked).map(([name, value]) => [name, Array.isArray(value) ? value.join(",") : String(value)]));
export function remember(asked) { history.replaceState(null, "", `?${address(asked)}`); }
