"""Errors a user can meet. Each message says what was asked, what was found and what would work.

Code that has to tell errors apart looks at their class and fields, never at their message.
"""

from collections.abc import Iterable
from difflib import get_close_matches

MOST_MESSAGE = 1000
"""Characters of a message; what is longer quotes a file, of which the beginning is enough."""


class EpochcastError(Exception):
    """Something about the request is wrong; the command line prints it as one line, exit code 2.

    >>> import epochcast as ec
    >>> try:
    ...     ec.place("no such GPU")
    ... except ec.EpochcastError as error:
    ...     print(type(error).__name__, error.exit_code)
    UnknownDevice 2
    """

    exit_code = 2

    def __init__(self, *args: object) -> None:
        super().__init__(*(_short(arg) for arg in args))

    @property
    def about(self) -> str:
        """The name, the value or the column that is wrong; empty where the error is about no single one."""
        return ""

    def __reduce__(self) -> tuple[object, ...]:
        """Pickled by its message and its fields, so that a worker process returns the whole error."""
        return restored, (type(self), self.args), self.__dict__ or None


def _short(message: object) -> object:
    if not isinstance(message, str) or len(message) <= MOST_MESSAGE:
        return message
    return f"{message[: MOST_MESSAGE - 103]} … {message[-100:]}"


def restored(kind: type[EpochcastError], args: tuple[object, ...]) -> EpochcastError:
    """An error of this class with a finished message; its fields are set by the caller."""
    error = kind.__new__(kind)
    error.args = args
    return error


# A longer name is none: it is not compared with those that are known.
_LONGEST_NAME = 200


class UnknownName(EpochcastError):
    """A name that is in no catalogue; the message offers the near ones, or all when there are few.

    >>> import epochcast as ec
    >>> try:
    ...     ec.place("V10")
    ... except ec.UnknownName as error:
    ...     print(error.what, error.name)
    device V10
    """

    def __init__(self, what: str, name: str, known_names: Iterable[str]) -> None:
        name = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"
        super().__init__(f"no {what} called {name!r}; {_offer(name, known_names)}")
        self.what, self.name = what, name

    @property
    def about(self) -> str:
        """The unknown name."""
        return self.name


class UnknownModel(UnknownName):
    """A model that the zoo, or the library that `what` names, does not have."""

    def __init__(self, name: str, known_names: Iterable[str], what: str = "model") -> None:
        super().__init__(what, name, known_names)


class UnknownDevice(UnknownName):
    """A device that the catalogue does not have."""

    def __init__(self, name: str, known_names: Iterable[str]) -> None:
        super().__init__("device", name, known_names)


class UnknownPrecision(UnknownName):
    """A precision that is neither one of ours nor an alias."""

    def __init__(self, name: str, known_names: Iterable[str]) -> None:
        super().__init__("precision", name, known_names)


class UnknownCompiler(UnknownName):
    """A compiler that is neither one of ours nor an alias."""

    def __init__(self, name: str, known_names: Iterable[str]) -> None:
        super().__init__("compiler", name, known_names)


def _offer(name: str, known_names: Iterable[str]) -> str:
    """The known names near to one that is not; all of them where they are few."""
    names = sorted(known_names)
    if not names:
        return "none are known"
    if len(names) <= 12:
        return "known: " + ", ".join(names)
    by_folded = {known_name.casefold(): known_name for known_name in names}
    near = get_close_matches(name.casefold(), list(by_folded), n=5, cutoff=0.5)
    return "near: " + ", ".join(by_folded[n] for n in near) if near else f"nothing near among the {len(names)} known"


class UnknownOption(UnknownName, TypeError):
    """A keyword, a key or a column that is none of the options.

    >>> import epochcast as ec
    >>> ec.forecast("resnet50", device="V100", batch=64, epoch=90)
    Traceback (most recent call last):
        ...
    epochcast.errors.UnknownOption: no option called 'epoch'; near: ...
    """

    def __init__(self, name: str, known_names: Iterable[str]) -> None:
        super().__init__("option", name, known_names)


class AmbiguousName(EpochcastError):
    """A name that could be several things; the message lists them.

    >>> import epochcast as ec
    >>> raise ec.AmbiguousName("device", "H100", ["H100-PCIE-80GB", "H100-SXM5-80GB"])
    Traceback (most recent call last):
        ...
    epochcast.errors.AmbiguousName: device 'H100' could be: H100-PCIE-80GB, H100-SXM5-80GB; name one of them
    """

    def __init__(self, what: str, name: str, candidates: Iterable[str]) -> None:
        those = sorted(candidates)
        advice = "name one of them" if len(those) > 1 else "name it in full"
        super().__init__(f"{what} {name!r} could be: {', '.join(those)}; {advice}")
        self.what, self.name = what, name

    @property
    def about(self) -> str:
        """The ambiguous name."""
        return self.name


class BadInput(EpochcastError, ValueError):
    """A value that makes no sense: a negative batch, a shape that does not fit, a broken file.

    >>> import epochcast as ec
    >>> try:
    ...     ec.Job("resnet50", batch=0)
    ... except ec.BadInput as error:
    ...     print(error)
    batch must be at least 1, got 0
    """


class MissingUnit(BadInput):
    """A bare number where only a unit says how much it is: 6 may be seconds or hours. `option` is where it stands."""

    def __init__(self, text: str, example: str, option: str = "") -> None:
        super().__init__(f"{option} {text}: give a unit, for example {example}".lstrip())
        self.text, self.example = text, example


class InvalidOption(BadInput):
    """A value that an option cannot have. `problem` follows the name of the option: " must be …" or ": …"."""

    def __init__(self, option: str, problem: str) -> None:
        super().__init__(f"{option}{problem}")
        self.problem = problem


class InvalidField(BadInput):
    """A value that a field of a record cannot have: which record, which field, what was given, what is allowed."""

    def __init__(self, record: str, name: str, given: object, allowed: str, message: str = "") -> None:
        inside = "" if record == name else f" (in {record})"
        super().__init__(message or f"{name} must be {allowed}, got {given!r}{inside}")
        self.record, self.name, self.given, self.allowed = record, name, given, allowed

    @property
    def about(self) -> str:
        """The field."""
        return self.name


class UnknownField(InvalidField):
    """A key that a record does not have; the message offers the near ones, or all when there are few."""

    def __init__(self, record: str, name: str, value: object, known_names: Iterable[str]) -> None:
        name = str(name)[:_LONGEST_NAME]
        message = f"{record} has no field {name!r}; {_offer(name, known_names)}"
        super().__init__(record, name, value, "a field of it", message)


class UnpublishedDevice(BadInput):
    """A device that the catalogue leaves out on purpose, for example because it has no public data sheet."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"device {name!r} is not in the catalogue: {reason}")
        self.name = name

    @property
    def about(self) -> str:
        """The device."""
        return self.name


class NoBuilder(BadInput):
    """A known network that epochcast cannot build."""


class CodeNotAllowed(BadInput):
    """A model reference that would run Python code where that is not allowed."""

    def __init__(self, reference: str) -> None:
        super().__init__(
            f"{reference!r} would run Python code, which is not allowed here; use a zoo name or a model file"
        )


class InvalidLayout(BadInput):
    """Degrees of parallelism or batches that do not divide over the GPUs, the replicas or the network."""


class EndsProgram(BadInput):
    """The user's code ends the program instead of making a model; argparse does so without its arguments.

    `is_silent`: it ends with an exit code alone; what it printed last then says why.
    """

    def __init__(self, program: str, ending: SystemExit) -> None:
        last_words = ending.code.strip() if isinstance(ending.code, str) else ""
        super().__init__(
            f"{program} ends the program{f': {last_words}' if last_words else f' (SystemExit: {ending.code})'}"
        )
        self.is_silent = not last_words
        """Whether it gave only an exit code; what it printed last then says why."""


def install_command(extra: str) -> str:
    """What installs the packages of an extra, typed in the checkout: epochcast is on no package index."""
    return f"pip install '.[{extra}]'"


class MissingExtra(EpochcastError):
    """An optional package is absent; the message says what to install.

    >>> import epochcast as ec
    >>> print(ec.MissingExtra("plot", "altair"))
    this needs altair; in the checkout of epochcast type: pip install '.[plot]'
    """

    def __init__(self, extra: str, package: str | None = None) -> None:
        needs = package or extra
        super().__init__(f"this needs {needs}; in the checkout of epochcast type: {install_command(extra)}")


class DoesNotFit(EpochcastError):
    """The job needs more memory than the device has.

    >>> import epochcast as ec
    >>> ec.DoesNotFit.exit_code
    4
    """

    exit_code = 4


class OverLimit(EpochcastError):
    """Nothing stays within the deadline, the budget or the limit that was given.

    >>> import epochcast as ec
    >>> ec.OverLimit.exit_code
    3
    """

    exit_code = 3
