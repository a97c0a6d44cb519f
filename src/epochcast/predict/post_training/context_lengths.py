"""The context of a decoder: the most tokens of a prompt and its response together (`context_lengths.toml`).

Networks with a table of positions refuse longer texts themselves, networks with rotary positions run on and write
nonsense. The longest name that a reference begins with counts.
"""

from collections.abc import Mapping

from epochcast.base import catalogue_rows as rows
from epochcast.base.caching import remembered
from epochcast.errors import BadInput

FILE = "context_lengths.toml"


class LongerThanContext(BadInput):
    """A prompt and its longest response are longer than the context of the model."""

    def __init__(self, model: str, context: int, prompt: int, response: int) -> None:
        room = max(0, context - prompt)
        super().__init__(
            f"{model} has a context of {context:,} tokens, and a prompt of {prompt:,} with a response of up to "
            f"{response:,} needs {prompt + response:,}: use at most max={room} in --response"
        )
        self.model = model
        self.context = context
        self.needed = prompt + response


@remembered(1)
def _contexts() -> Mapping[str, int]:
    document = rows.parse(rows.shipped(FILE, __file__), FILE)
    contexts: dict[str, int] = {}
    for names, tokens in rows.read(document, "context", FILE, _row):
        for name in names:
            if contexts.setdefault(name, tokens) != tokens:
                raise BadInput(f"{FILE}: two contexts of {name}")
    return contexts


def _row(row: rows.CatalogueRow) -> tuple[tuple[str, ...], int]:
    row.text("source")
    return row.texts("names"), row.count("tokens")


def context_tokens(model: str) -> int | None:
    """The context of a model by its name or reference; None where nobody wrote it down."""
    names = [name for name in _contexts() if model.startswith(name)]
    return _contexts()[max(names, key=len)] if names else None


def check_context(model: str, prompt: int, response: int) -> None:
    """Raise where a prompt and its longest response are longer than the model's context."""
    context = context_tokens(model)
    if context is not None and prompt + response > context:
        raise LongerThanContext(model, context, prompt, response)
