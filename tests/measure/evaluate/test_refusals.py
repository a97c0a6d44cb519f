import inspect
import pickle

from epochcast.errors import (
    BadInput,
    CodeNotAllowed,
    EpochcastError,
    InvalidLayout,
    UnknownDevice,
    UnknownModel,
)
from epochcast.measure.evaluate.refusals import RULES, refusals
from epochcast.measure.tables import row_errors
from epochcast.measure.tables.row_errors import (
    DoubtfulRow,
    FailedRow,
    InvalidCell,
    MissingCell,
    UnknownSampleLength,
    UnknownUnit,
)


def failures(*errors: EpochcastError) -> list[FailedRow]:
    return [FailedRow.because(index, f"net{index}", error) for index, error in enumerate(errors)]


def test_reasons_that_differ_in_a_name_are_one() -> None:
    unknown = [UnknownDevice(name, ()) for name in ("abacus", "slide rule", "abacus")]
    devices, batch = refusals(failures(*unknown, MissingCell("batch_per_gpu")))
    assert (devices.rows, devices.reason) == (3, "a device that the catalogue does not have")
    assert devices.examples == ("abacus", "slide rule")
    assert (batch.rows, batch.reason, batch.examples) == (1, "no batch_per_gpu", ("net3",))
    assert "data sheet" in devices.cure and "global_batch" in batch.cure


def test_rows_that_all_say_the_same_keep_what_they_say() -> None:
    (group,) = refusals(failures(UnknownModel("nonet", ["nin"]), UnknownModel("nonet", ["nin"])))
    assert (group.reason, group.rows) == ("no model called 'nonet'; known: nin", 2)
    assert "timm:NAME" in group.cure


def test_an_error_without_a_rule_stands_for_itself() -> None:
    (group,) = refusals(failures(BadInput("the moon was full")))
    assert group.as_dict() == {"reason": "the moon was full", "rows": 1, "cure": "", "examples": ["net0"]}


def test_a_message_that_reads_like_another_error_is_not_grouped_with_it() -> None:
    groups = refusals(failures(UnknownDevice("abacus", ()), BadInput("no device called 'abacus'; none are known")))
    assert [(group.rows, bool(group.cure)) for group in groups] == [(1, True), (1, False)]


def test_every_common_reason_has_a_cure() -> None:
    common = (
        InvalidCell("gpus", "a number", "'many'"),
        UnknownUnit("furlongs", "images"),
        UnknownSampleLength("litgpt: the row does not say how many tokens a sample has"),
        DoubtfulRow("suspect"),
        InvalidLayout("TP=3 times PP=1 times CP=1 does not divide 32 GPUs"),
        CodeNotAllowed("os:getcwd"),
    )
    assert [str(error) for error in common if not refusals(failures(error))[0].cure] == []


def test_every_error_of_rows_has_a_rule() -> None:
    own = {
        kind
        for _, kind in inspect.getmembers(row_errors, inspect.isclass)
        if issubclass(kind, EpochcastError) and kind.__module__ == row_errors.__name__
    }
    assert own - {MissingCell} <= set(RULES)


def test_errors_of_rows_keep_their_fields_across_processes() -> None:
    error = pickle.loads(pickle.dumps(MissingCell("step_seconds", "samples_per_second")))
    assert str(error) == "neither step_seconds nor samples_per_second"
    assert (error.columns, error.about) == (("step_seconds", "samples_per_second"), "step_seconds")
