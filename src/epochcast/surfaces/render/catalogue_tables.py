"""Tables of lists: models, devices, instances, data sets, links, topologies, jobs of a job file, tokens."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from epochcast.describe.capture.model_reference import CONFIG, ModelReference
from epochcast.describe.datasets import Dataset
from epochcast.hardware.device import Device
from epochcast.hardware.instance import FRESH, Instance
from epochcast.hardware.link import Link
from epochcast.hardware.topology import Topology
from epochcast.predict.forecast.job_file import NamedJob
from epochcast.surfaces.render.table_parts import shape, table
from epochcast.units import show_bytes, show_count, show_dollars, show_seconds

if TYPE_CHECKING:
    from epochcast.observe.store.access_tokens import Token


def models(rows: Iterable[Mapping[str, Any]]) -> RenderableType:
    """The built-in models, with their counts where the rows have them."""
    listed = list(rows)
    if not any("parameters" in row for row in listed):
        return table("models", "model | what it is", [(row["name"], row["title"]) for row in listed])
    cells = [
        (
            row["name"],
            row["title"],
            shape(row["input_shape"]),
            f"{row['parameters']:,}",
            show_count(row["forward_flops_per_sample"], "FLOP"),
        )
        for row in listed
    ]
    return table("models", "model | what it is | input | > parameters | > forward", cells, drop=("input",))


def hub_models(rows: Iterable[Mapping[str, Any]]) -> RenderableType:
    """The Hub ids that are known, and what they are here."""
    cells = [(row["id"], _built_as(row["model"]), show_count(row["parameters"])) for row in rows]
    return table(
        "models of the Hugging Face Hub",
        "id | is | > parameters",
        cells,
        caption="the part behind the slash will do; case and punctuation do not count",
    )


def _built_as(reference: str | None) -> str:
    """The zoo's name, or whose configuration is captured."""
    if reference is None:
        return "by its sizes"
    return reference.partition("(")[0] if ModelReference.of(reference).prefix == CONFIG else reference


def devices(rows: Iterable[Device]) -> RenderableType:
    """The catalogue of devices."""
    cells = [
        (
            d.name,
            d.generation,
            str(d.year),
            show_count(d.peak("fp32"), "FLOP/s"),
            show_count(d.peak("fp16"), "FLOP/s"),
            show_bytes(d.memory_bytes),
            show_count(d.memory_bytes_per_second, "B/s"),
            "yes" if d.verified else "no",
        )
        for d in rows
    ]
    columns = "device | generation | > year | > fp32 | > fp16 | > memory | > bandwidth | checked"
    return table(
        "devices", columns, cells, caption="dense peaks, from the data sheets", drop=("year", "checked", "generation")
    )


def instances(rows: Iterable[Instance], today: date) -> RenderableType:
    """The catalogue of instances."""
    listed = list(rows)
    cells = [
        (
            i.name,
            i.cloud,
            i.device + (" ?" if i.board_is_assumed else ""),
            str(i.gpus),
            show_dollars(i.dollars_per_hour),
            "" if i.spot_dollars_per_hour is None else show_dollars(i.spot_dollars_per_hour),
            i.region,
            str(i.cpus or "?"),
            show_bytes(i.host_memory_bytes) if i.host_memory_bytes else "?",
            i.priced_on + (" (old)" if i.is_stale(today) else ""),
        )
        for i in listed
    ]
    columns = "instance | cloud | device | > GPUs | > per hour | > spot | region | > CPUs | > memory | priced on"
    return table(
        "instances",
        columns,
        cells,
        caption="list prices of that day, in the cheapest region; ?: the seller lists only the GPU family; "
        f"old: more than {FRESH.days} days before today",
        drop=("CPUs", "memory", "region", "spot", "priced on"),
    )


def datasets(rows: Iterable[Dataset]) -> RenderableType:
    """The catalogue of data sets."""
    cells = [
        (
            d.name,
            d.task,
            f"{d.training_samples:,}",
            f"{d.validation_samples:,}",
            f"{d.unit}s",
            shape(d.sample_shape),
            show_bytes(d.bytes_per_sample),
        )
        for d in rows
    ]
    columns = "data set | task | > training | > validation | of | sample | > on disk, each"
    return table("data sets", columns, cells, drop=("on disk, each", "validation", "sample"))


def links(rows: Iterable[Link]) -> RenderableType:
    """The catalogue of links."""
    cells = [
        (
            link.name,
            show_count(link.bandwidth_bytes_per_second, "B/s"),
            show_count(link.sustained_bytes_per_second, "B/s"),
            show_seconds(link.latency_seconds),
            "yes" if link.verified else "no",
        )
        for link in rows
    ]
    columns = "link | > bandwidth | > sustained | > latency | checked"
    return table("links", columns, cells, caption="in one direction; sustained: by gradients in training")


def topologies(rows: Iterable[Topology]) -> RenderableType:
    """The catalogue of machines."""
    cells = [
        (
            machine.name,
            f"{machine.gpus} × {machine.device}",
            _inner_links(machine),
            machine.outer_link,
            str(machine.cpus),
            "yes" if machine.verified else "no",
        )
        for machine in rows
    ]
    columns = "machine | GPUs | inside | between machines | > CPUs | checked"
    return table("topologies", columns, cells, drop=("CPUs", "checked"))


def _inner_links(machine: Topology) -> str:
    """The links between its GPUs, level by level where there are several: 4 by nvlink2, 2 quads by nvlink2."""
    if not machine.parts:
        return machine.inner_link
    parts = [f"{part.count} {part.name}s by {part.link}" for part in machine.parts]
    return ", ".join([f"{machine.part_gpus} by {machine.inner_link}", *parts])


def jobs(file: str, rows: Sequence[tuple[NamedJob, str]]) -> RenderableType:
    """A row a job: what it trains, where, and what is wrong with it."""
    cells = [(job.name, str(job.job.model), _where(job), _batch(job), problem or "fine") for job, problem in rows]
    return table(f"jobs of {file}", "name | model | where | > batch | check", cells or [("no jobs", "", "", "", "")])


def _where(job: NamedJob) -> str:
    device = job.where.device
    return "" if device is None else f"{job.where.gpus} × {device}"


def _batch(job: NamedJob) -> str:
    if job.job.global_batch is not None:
        return f"{job.job.global_batch:,} in total"
    return "" if job.job.batch is None else f"{job.job.batch:,} per GPU"


def tokens(rows: "Sequence[Token]") -> RenderableType:
    """Names, scopes, projects, and whether they still let somebody in."""
    cells = [
        (
            token.name,
            ", ".join(token.scopes),
            token.project or "all",
            datetime.fromtimestamp(token.added_at_seconds, UTC).date().isoformat(),
            "ended" if token.ended_at_seconds else "in use",
        )
        for token in rows
    ]
    return table("tokens", "token | may | project | made on | state", cells)
