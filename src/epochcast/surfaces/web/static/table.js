// Tables that pages make: each in an area that the keyboard can scroll.
import { element } from "./common.js";

const LONG = 36;  // letters; longer cells may wrap

export function area(label, ...children) { return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, ...children); }

// How a cell stands on a phone, where its row is a card: the first names the card, those without a value are left out.
export function onCard(cell, is_name) {
  if (is_name) { cell.classList.add("names"); } else if (cell.textContent === "–") { cell.classList.add("none"); }
  return cell;
}

// `rows` are lists of cells: text or elements. On a phone each row is a card, its cells named by the headings.
export function table(label, headings, rows) {
  const head = element("tr", {}, ...headings.map((name) => element("th", { scope: "col" }, name)));
  const body = rows.map((row) => element("tr", {}, ...row.map((cell, place) => {
    const made = element("td", {}, ...(Array.isArray(cell) ? cell : [cell ?? "–"]));
    made.dataset.label = headings[place];
    if (typeof cell === "string" && cell.length > LONG) { made.classList.add("long"); }
    return onCard(made, place === 0);
  })));
  return area(label, element("table", { class: "cards" }, element("thead", {}, head), element("tbody", {}, ...body)));
}

// Headings that sort: `chosen` gets the order and whether it ascends.
export function sortable(row, columns, order, is_ascending, chosen) {
  row.replaceChildren(...columns.map(({ name, order: own, control }) => {
    const heading = element("th", { scope: "col" });
    if (control) { heading.append(control); return heading; }
    if (!own) { heading.textContent = name; return heading; }
    const is_own = own === order;
    heading.setAttribute("aria-sort", is_own ? (is_ascending ? "ascending" : "descending") : "none");
    const button = element("button", { type: "button", class: "sort" }, name, element("span", { "aria-hidden": "true" }, is_own ? (is_ascending ? " ▲" : " ▼") : ""));
    button.dataset.order = own;
    button.addEventListener("click", () => chosen(own, is_own ? !is_ascending : own === "name"));
    heading.append(button);
    return heading;
  }));
}
