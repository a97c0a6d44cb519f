from epochcast.measure.evaluate.refusals import refusals
from epochcast.measure.tables.run_table import FailedRow


def failures(*reasons: str) -> list[FailedRow]:
    return [FailedRow(index, f"net{index}", reason) for index, reason in enumerate(reasons)]


def test_reasons_that_differ_in_a_name_are_one() -> None:
    found = refusals(
        failures(
            "no device called 'abacus'; nothing near",
            "no device called 'slide rule'; nothing near",
            "no device called 'abacus'; nothing near",
            "no batch_per_gpu",
        )
    )
    assert [(r.rows, r.reason, r.examples) for r in found] == [
        (3, "a device that the catalogue does not have", ("abacus", "slide rule")),
        (1, "no batch_per_gpu", ("net3",)),
    ]
    assert "data sheet" in found[0].cure and "global_batch" in found[1].cure


def test_rows_that_all_say_the_same_keep_what_they_say() -> None:
    (found,) = refusals(failures("no model called 'nonet'; near: nin", "no model called 'nonet'; near: nin"))
    assert (found.reason, found.rows) == ("no model called 'nonet'; near: nin", 2)
    assert "timm:NAME" in found.cure


def test_a_reason_without_a_rule_stands_for_itself() -> None:
    (found,) = refusals(failures("the moon was full"))
    assert found.as_dict() == {"reason": "the moon was full", "rows": 1, "cure": "", "examples": ["net0"]}


def test_every_common_reason_has_a_cure() -> None:
    for reason in (
        "gpus must be a number, got 'many'",
        "the throughput counts furlongs; known: images",
        "litgpt: the row does not say how many tokens a sample has",
        "left out for its quality: suspect",
        "TP=3 times PP=1 times CP=1 does not divide 32 GPUs",
        "'os:getcwd' would run Python code, which is not allowed here",
    ):
        assert refusals(failures(reason))[0].cure, reason
