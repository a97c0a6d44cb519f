"""What people ask, and what is known of the GPU they ask about: the two sides of the page's table."""

import re
from collections.abc import Iterable

import polars as pl

from epochcast.describe.capture.model_reference import CONFIG, DETECTORS, LIBRARIES, SIZES, ModelReference
from epochcast.describe.capture.zoo import ZOO
from epochcast.hardware.device import Device
from epochcast.measure.tables.run_table import MeasuredRun, read_runs
from epochcast.measure.tables.table_files import with_known_columns
from epochcast.predict.cost.spreads import MEASURED, OPERATORS, SISTER, UNSEEN

VISION, ONE_NODE, SEVERAL_NODES = "vision training", "LLM training, one node", "LLM training, several nodes"
ADAPTERS, DIFFUSION, FORWARD, OTHER = "fine-tuning with adapters", "diffusion", "forward passes", "other training"
QUESTIONS = (VISION, ONE_NODE, SEVERAL_NODES, ADAPTERS, DIFFUSION, FORWARD, OTHER)

KNOWN, SISTER_BOARD, NOT_MEASURED = "known", "sister or operators", "not measured"
KNOWLEDGE = {MEASURED: KNOWN, SISTER: SISTER_BOARD, OPERATORS: SISTER_BOARD, UNSEEN: NOT_MEASURED}
"""By the evidence that the forecast has of a device for a kind of step (`predict.cost.spreads`)."""

# Modules of the zoo by what their networks are for; those of the others see images.
_DIFFUSION_MODULES = frozenset({"diffusion"})
_LANGUAGE_MODULES = frozenset({"gpt", "decoder", "encoder", "t5", "parallel_blocks", "transformer_xl"})
_OTHER_MODULES = frozenset({"recurrent", "transformer", "dlrm"})
_IMAGE_SIZES = 3

CLASSES = ("data centre, Ampere and newer", "GeForce and RTX, Ampere and newer", "Volta and Turing", "AMD", "older")
_NEW = ("ampere", "ada", "hopper", "blackwell")
_GEFORCE = re.compile(r"RTX|GeForce")


def gpu_class(device: Device) -> str:
    """One of CLASSES, the GPUs people rent first."""
    if device.vendor == "AMD":
        return CLASSES[3]
    if device.generation in _NEW:
        return CLASSES[1] if _GEFORCE.search(device.name) else CLASSES[0]
    return CLASSES[2] if device.generation in ("volta", "turing") else CLASSES[4]


def question_of(run: MeasuredRun) -> str:
    """One of QUESTIONS."""
    return asked_in(run.job.mode, _training_question(run))


def asked_in(mode: str, training_question: str) -> str:
    """What a step in some mode asks of a network of which a training step asks this."""
    return FORWARD if mode == "forward" and training_question != DIFFUSION else training_question


def _training_question(run: MeasuredRun) -> str:
    reference = ModelReference.of(run.reference)
    entry = ZOO.get(run.reference)
    module, sizes = entry.module if entry else "", len(run.input_shape or ())
    if module in _DIFFUSION_MODULES:
        return DIFFUSION
    if run.job.lora:
        return ADAPTERS
    is_sequence = not entry and not reference.prefix and sizes == 1
    if module in _LANGUAGE_MODULES or reference.prefix in (CONFIG, SIZES) or is_sequence:
        return SEVERAL_NODES if run.nodes > 1 else ONE_NODE
    if entry:
        return OTHER if module in _OTHER_MODULES else VISION
    is_image = sizes == _IMAGE_SIZES or reference.prefix in (*LIBRARIES, *DETECTORS)
    return VISION if is_image else OTHER


def questions_of(tables: Iterable[pl.DataFrame]) -> dict[tuple[str, str], str]:
    """What training steps of each source and model ask; one row of each device is read."""
    questions: dict[tuple[str, str], str] = {}
    for table in tables:
        kinds = with_known_columns(table).unique(["source", "model", "device"], keep="first", maintain_order=True)
        for run in read_runs(kinds.to_dicts())[0]:
            questions.setdefault((run.source, run.model), _training_question(run))
    return questions
