"""Networks of rows as their frameworks run them."""

from epochcast.measure.tables.run_table import read_runs


def test_hugging_faces_experts_run_in_a_loop_unless_a_library_groups_them() -> None:
    row = {
        "model": "ibm-granite/granite-3.0-3b-a800m-instruct",
        "device": "A100-80GB",
        "batch_per_gpu": 1,
        "input_shape": "seq512",
        "step_seconds": 1.0,
        "framework": "transformers",
    }
    notes = ("none", "moe-scattermoe-granite")
    looped, grouped = read_runs([{**row, "note": note} for note in notes])[0]
    assert (looped.reference.endswith(",loop=1"), grouped.reference.endswith(",loop=1")) == (True, False)
