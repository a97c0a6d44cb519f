"""Tables in terminals of any width."""

from rich.console import Console, RenderableType

from epochcast.surfaces.render.table_parts import table

COLUMNS = "offer | cloud | > batch | > step | > cost"
ROWS = [("p3.2xlarge", "amazon", "1,024", "71.3 ms", "$103.31"), ("gpu_8x_a100_80gb_sxm4", "lambda", "64", "1 s", "$2")]


def drawn(view: RenderableType, width: int) -> list[str]:
    console = Console(width=width, highlight=False, color_system=None)
    with console.capture() as captured:
        console.print(view)
    return [line.rstrip() for line in captured.get().splitlines()]


def test_a_wide_terminal_has_every_column() -> None:
    text = "\n".join(drawn(table("offers", COLUMNS, ROWS, drop=("cloud", "batch")), 120))
    assert all(word in text for word in ("cloud", "batch", "amazon", "1,024"))
    assert "left out" not in text


def test_a_narrow_one_leaves_out_in_order_and_says_so() -> None:
    lines = drawn(table("offers", COLUMNS, ROWS, caption="prices", drop=("cloud", "batch")), 55)
    assert max(map(len, lines)) <= 55
    assert lines[-2:] == ["hidden to fit the terminal: cloud", "prices"]
    assert "1,024" in "\n".join(lines)


def test_numbers_stay_whole_and_texts_are_folded() -> None:
    lines = drawn(table("offers", COLUMNS, ROWS, drop=("cloud", "batch")), 38)
    assert max(map(len, lines)) <= 38
    assert "$103.31" in "\n".join(lines) and "71.3 ms" in "\n".join(lines)
    assert "hidden to fit the terminal: cloud; batch" in " ".join(lines)
    assert "gpu_8x_a100_80gb_sxm4" not in "\n".join(lines)  # folded


def test_a_column_that_is_not_there_is_not_missed() -> None:
    lines = drawn(table("offers", COLUMNS, ROWS, drop=("speed-up", "cloud")), 50)
    assert "speed-up" not in " ".join(lines)
