"""A post-training job: its step part by part, the memory of each phase, time and cost."""

from rich.console import Group, RenderableType
from rich.text import Text

from epochcast.describe.graph.precision import OF_HALF_WEIGHTS
from epochcast.predict.post_training.post_training import PostTraining
from epochcast.surfaces.render.notes_view import Notes
from epochcast.surfaces.render.table_parts import INTERVAL, Cells, interval_cells, rate, table
from epochcast.units import show_bytes, show_dollars, show_seconds

_PARTS = {
    "generation": "generation",
    "reward": "reward",
    "old_logprobs": "old log-probabilities",
    "reference": "reference log-probabilities",
    "values": "values of the critic",
    "update_critic": "update of the critic",
    "update": "update of the policy",
    "weight_sync": "weights to the engine",
}


def post_training(answer: PostTraining) -> RenderableType:
    """The forecast of a post-training job."""
    parts = [(_part(answer, each.name), show_seconds(each.seconds), f"{each.share:.0%}") for each in answer.parts]
    memory = [(each.phase, show_bytes(each.bytes), "fits" if each.fits else "does not fit") for each in answer.memory]
    pieces: list[RenderableType] = [
        table(_title(answer), f"| > expected | {INTERVAL} |", _rows(answer)),
        table("one step", "part | > time | > share", parts),
        table("memory of a GPU", f"phase | > peak | of {show_bytes(answer.memory_bytes)}", memory),
    ]
    if answer.assumed:
        pieces.append(Text("assumed: " + ", ".join(f"{name} {value}" for name, value in answer.assumed.items())))
    pieces.append(Notes(answer.warnings))
    return Group(*pieces)


def _part(answer: PostTraining, name: str) -> str:
    is_wait = name == "generation" and answer.staleness > 0
    return "waiting for generation" if is_wait else _PARTS[name]


def _title(answer: PostTraining) -> str:
    where = answer.device if answer.gpus == 1 else f"{answer.gpus} × {answer.device}"
    split = f"{answer.generation_gpus} GPUs generate" if answer.generation_gpus else "colocated"
    words = [f"{answer.algorithm} of {answer.model} on {where}", answer.strategy]
    words.append(OF_HALF_WEIGHTS.get(answer.precision, answer.precision))
    if answer.lora:
        words.append(f"LoRA rank {answer.lora}")
    if answer.engine is not None:
        words.append(f"{answer.engine}, {split}")
    words.append(f"{answer.prompts_per_step:,} prompts, {answer.responses_per_step:,} responses a step")
    return " · ".join(words)


def _rows(answer: PostTraining) -> Cells:
    speed = f"{rate(answer.tokens_per_second_per_gpu)} tokens/s per GPU"
    yield "step", *interval_cells(answer.step_seconds, show_seconds), speed
    if answer.overlapped_seconds:
        yield "", show_seconds(answer.overlapped_seconds), "", "of generation run beside the update"
    if answer.total_seconds is not None and answer.steps is not None:
        yield "job", *interval_cells(answer.total_seconds, show_seconds), f"{answer.steps:,} steps"
    else:
        yield "job", "unknown", "", "give the prompts of the dataset: --samples"
    fits = "fits" if answer.fits else "does not fit"
    yield "memory", *interval_cells(answer.peak_bytes, show_bytes), f"of {show_bytes(answer.memory_bytes)}: {fits}"
    if answer.dollars_per_hour is None:
        yield "cost", "unknown", "", "no list price known: give the price of a GPU-hour"
        return
    price = f"{show_dollars(answer.dollars_per_hour)}/h, {answer.price_source}"
    yield "cost", *(interval_cells(answer.dollars, show_dollars) if answer.dollars else ("unknown", "")), price
