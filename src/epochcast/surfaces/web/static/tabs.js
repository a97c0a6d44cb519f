// Tabs as WAI-ARIA describes them: arrow keys move between them, one of them is in the tab order. Each tells its own `chosen`.
for (const list of document.querySelectorAll("[role=tablist]")) {
  const tabs = [...list.querySelectorAll("[role=tab]")];
  const choose = (tab) => {
    for (const other of tabs) { other.setAttribute("aria-selected", String(other === tab)); other.tabIndex = other === tab ? 0 : -1; }
    tab.focus();
    tab.dispatchEvent(new Event("chosen"));
  };
  tabs.forEach((tab, place) => {
    tab.tabIndex = tab.getAttribute("aria-selected") === "true" ? 0 : -1;
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", (event) => {
      const to = { ArrowRight: place + 1, ArrowDown: place + 1, ArrowLeft: place - 1, ArrowUp: place - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (to === undefined) { return; }
      event.preventDefault();
      choose(tabs[(to + tabs.length) % tabs.length]);
    });
  });
}
