"""The clock of Keras 3's bars, which write what remains of an epoch in whole seconds."""

import pytest

from epochcast.observe.logs.log_reader import LogReader

BAR = "\r{done:3d}/773 ━━━━━━━━━━━━━━━━━━━━ {rest} {per}ms/step - accuracy: 0.1 - loss: 2.3"


def test_a_slow_first_step_is_not_taken_for_the_pace_of_the_others() -> None:
    """By hand: 109 ms for the first, which compiles, then 7 ms each; 400 steps take 2.8 s."""
    lines = [BAR.format(done=1, rest="1:23", per=109)]
    lines += [BAR.format(done=done, rest=f"{(773 - done) * 7 // 1000}s", per=7) for done in range(8, 401, 8)]
    reader = LogReader()
    seen = [*reader.feed("".join(["Epoch 1/3\n", *lines, "\n"]).encode()), *reader.close()]
    assert seen[-1].step == 400
    assert seen[-1].clock_seconds == pytest.approx(400 * 0.007, rel=0.05)
