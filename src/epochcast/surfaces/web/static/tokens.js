// Who may use the server: tokens are made, revoked, and show when they were last used.
import { ask, by, element, roughly, say, send } from "./common.js";
import { table } from "./table.js";

const ago = (at) => (at ? `${roughly(Date.now() / 1000 - at)} ago` : "never");

function failed(error) { by("fault").hidden = false; say("fault", error.message); }

async function load() {
  const told = await ask("/api/v1/tokens");
  by("fault").hidden = true;
  const rows = told.tokens.map((token) => [token.name, token.project ?? "all", token.scopes.join(", "), ago(token.added_at_seconds), ago(token.used_at_seconds), token.ended_at_seconds ? `revoked ${ago(token.ended_at_seconds)}` : [revoker(token)]]);
  by("tokens").replaceChildren(rows.length ? table("Tokens", ["Name", "Project", "May", "Created", "Last used", ""], rows) : element("p", { class: "hint" }, "No token yet."));
  by("projects").replaceChildren(...told.projects.map((one) => element("option", { value: one.project })));
  const projects = told.projects.map((one) => [[element("a", { href: `/runs?project=${encodeURIComponent(one.project)}` }, one.project)], one.runs.toLocaleString("en")]);
  by("listed").replaceChildren(projects.length ? table("Projects", ["Project", "Runs"], projects) : element("p", { class: "hint" }, "No project yet: runs belong to everybody who may read."));
}

function revoker(token) {
  const button = element("button", { type: "button", class: "danger", "aria-label": `Revoke ${token.name}` }, "Revoke");
  button.addEventListener("click", async () => {
    if (!confirm(`Revoke ${token.name}? Programs that use it get status 401 from now on.`)) { return; }
    const answer = await fetch(`/api/v1/tokens/${encodeURIComponent(token.name)}`, { method: "DELETE" });
    if (answer.ok) { load().catch(failed); } else { failed(new Error((await answer.json()).detail)); }
  });
  return button;
}

by("add").addEventListener("submit", async (event) => {
  event.preventDefault();
  const scopes = ["read", "write"].filter((scope) => by(scope).checked);
  try {
    const made = await send("POST", "/api/v1/tokens", { name: by("name").value.trim(), project: by("project").value.trim() || null, scopes });
    by("made").hidden = false;
    say("secret", made.token);
    by("name").value = "";
    await load();
  } catch (error) { failed(error); }
});
load().catch(failed);
