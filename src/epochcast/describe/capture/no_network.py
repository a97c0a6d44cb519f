"""The process that runs the user's code reaches no other machine: a capture needs no weights and no data.

A constructor that fetches weights would try for minutes where there is no network, and fetch gigabytes where there is
one. Names and addresses of other machines are refused by an audit hook, which libraries that retry after an `OSError`
do not catch. Hugging Face's libraries run offline: they still find what is in their cache.

Keras uses TensorFlow by default; without TensorFlow, an installed backend is chosen.
"""

import json
import os
import socket
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from epochcast.errors import BadInput

_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE")
_LOOPBACK = ("", "localhost", "localhost.localdomain", "::1", "0.0.0.0", "::")
_BACKENDS = ("torch", "jax")
# What Hugging Face's libraries raise for a file that is not in the cache.
_NOT_CACHED = ("LocalEntryNotFoundError", "OfflineModeIsEnabled")


class WantsNetwork(BadInput):
    """The user's code tries to download something."""

    def __init__(self, model: str, host: str = "") -> None:
        place = f" from {host}" if host else ""
        super().__init__(
            f"{model} tries to download{place}; a forecast needs no weights: build the model without them "
            "(pretrained=False, weights=None, or from_config instead of from_pretrained)"
        )


def stay_offline(model: str) -> None:
    """From now on this process reaches only itself; `model` is named in the error. It cannot be undone."""
    for name in _OFFLINE:
        os.environ.setdefault(name, "1")
    local_hosts = {*_LOOPBACK, socket.gethostname()}

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("socket.getaddrinfo", "socket.gethostbyname"):
            host = arguments[0]
        elif event == "socket.connect" and isinstance(arguments[1], tuple):  # a text is a socket of Unix
            host = arguments[1][0]
        else:
            return
        name = host.decode(errors="replace") if isinstance(host, bytes) else host
        if isinstance(name, str) and name not in local_hosts and not name.startswith("127."):
            raise WantsNetwork(model, name)

    sys.addaudithook(audit)


def check_not_cached(model: str, problem: BaseException) -> None:
    """Raise `WantsNetwork` where an error comes from a file that Hugging Face's cache does not have."""
    cause: BaseException | None = problem
    while cause is not None:
        if isinstance(cause, WantsNetwork):
            raise cause from None
        if {kind.__name__ for kind in type(cause).__mro__} & set(_NOT_CACHED):
            raise WantsNetwork(model, "huggingface.co") from None
        cause = cause.__cause__ or cause.__context__


def choose_keras_backend() -> None:
    """An installed backend for Keras where TensorFlow, its default, is absent and nothing is said."""
    if "KERAS_BACKEND" in os.environ or _is_installed("tensorflow") or _is_configured():
        return
    backend = next((name for name in _BACKENDS if _is_installed(name)), None)
    if backend is not None:
        os.environ["KERAS_BACKEND"] = backend


def _is_configured() -> bool:
    """Whether keras.json names another backend than TensorFlow, which Keras writes there by itself."""
    folder = Path(os.environ.get("KERAS_HOME") or Path.home() / ".keras")
    try:
        configured = json.loads((folder / "keras.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(configured, dict) and configured.get("backend", "tensorflow") != "tensorflow"


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False
