"""Messages to webhooks: drift, finished, over budget, silent. JSON that Slack takes (`text`), and the facts."""

import json
import urllib.request
from collections.abc import Mapping
from typing import Any

from epochcast.errors import BadInput
from epochcast.observe.store.notices import Notice
from epochcast.observe.store.store_rows import RunRow
from epochcast.units import show_dollars, show_seconds

ANSWER_SECONDS = 5.0
SILENT = "silent"
"""The event of a run that stopped reporting."""


def check_webhook(url: str) -> str:
    """The address, if it is one; it comes from whoever starts the server, never from a request."""
    if not url.startswith(("http://", "https://")) or any(letter.isspace() for letter in url):
        raise BadInput(f"a webhook is an address that begins with http:// or https://, got {url[:100]!r}")
    return url


def key_of(run: RunRow, event: str, url: str) -> str:
    """What tells a message from others: a run drifts, ends and is over budget once, is silent once after a report."""
    since = f" since {run.seen_at_seconds:.0f}" if event == SILENT else ""
    return f"{run.key} {event}{since} {url}"


def message_of(run: RunRow, event: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The message."""
    return {"text": f"epochcast: {_sentence(run, event, facts)}", "event": event, "run": run.name, "facts": dict(facts)}


def _sentence(run: RunRow, event: str, facts: Mapping[str, Any]) -> str:
    match event:
        case "drift":
            ratio = facts.get("ratio")
            size = f" by a factor of {ratio:.2f}" if isinstance(ratio, int | float) else ""
            return f"the pace of {run.name} changed{size}"
        case "silent":
            return f"{run.name} has not reported for {show_seconds(facts['silent_seconds'])}"
        case "over budget":
            in_all = facts["dollars_in_all"]["mid"]
            return f"{run.name} will cost {show_dollars(in_all)}, its budget is {show_dollars(facts['budget_dollars'])}"
        case _:
            return f"{run.name} has {facts.get('state', 'ended')}"


def send(notice: Notice) -> bool:
    """Whether the message arrived."""
    body = json.dumps(dict(notice.message)).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "epochcast"}
    request = urllib.request.Request(notice.to, body, headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
            return 200 <= int(answer.status) < 300
    except (OSError, ValueError):
        return False
