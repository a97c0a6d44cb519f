"""The table of tokens."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import RenderableType

from epochcast.surfaces.render.table_parts import table

if TYPE_CHECKING:
    from epochcast.observe.store.access_tokens import Token


def tokens(rows: "Sequence[Token]") -> RenderableType:
    """Names, scopes, projects, and whether they still let somebody in."""
    cells = [
        (
            token.name,
            ", ".join(token.scopes),
            token.project or "all",
            datetime.fromtimestamp(token.added_at_seconds, UTC).date().isoformat(),
            "ended" if token.ended_at_seconds else "in use",
        )
        for token in rows
    ]
    return table("tokens", "token | may | project | made on | state", cells)
