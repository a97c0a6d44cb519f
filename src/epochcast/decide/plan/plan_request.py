"""What `plan` is asked beside its job. Flags, keywords of `ec.plan` and the web API follow from the fields."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from epochcast.base.options import Option, check_fields, option, options_of
from epochcast.errors import BadInput
from epochcast.predict.forecast.where import PLACE_OPTIONS
from epochcast.units import parse_counts, parse_dollars, parse_fraction, parse_names, parse_seconds, parse_size

if TYPE_CHECKING:
    from epochcast.decide.plan.choice import PlanLimits
    from epochcast.decide.plan.offers import OffersInOrder
    from epochcast.decide.plan.plan_terms import PlanTerms
    from epochcast.decide.plan.spot import Spot

# Up to two of the largest machines that most clouds have.
OFFERED_GPUS = (1, 2, 4, 8, 16)
MOST_EPOCHS_SURE = 0.95
_STRATEGIES = next(place_option.help for place_option in PLACE_OPTIONS if place_option.name == "strategy")


def _number_text(value: object) -> str | None:
    """A critical batch may be given as a number."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def parse_augment_epochs(text: str) -> dict[int, int]:
    """Copies of each sample with their epochs: 1:100,4:45,16:25."""
    epochs: dict[int, int] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,6})\s*[:=]\s*(\d{1,6})\s*", part)
        if match is None or not (int(match[1]) and int(match[2])):
            raise BadInput(f"copies and their epochs are written 1:100,4:45,16:25; got {text!r}")
        if int(match[1]) in epochs:
            raise BadInput(f"epochs with {int(match[1])} copies are given twice: {text!r}")
        epochs[int(match[1])] = int(match[2])
    return epochs


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """The limits of a plan, the offers that count, the batch, what else is tried, and what else is paid.

    `batch` is the job's, over all GPUs; without it every GPU takes the largest power of two that it holds. A `Job` may
    have a batch per GPU instead. `batch_policy` says otherwise (`plan_terms.BatchPolicy`). `spot` is the number of
    interruptions per hour and machine. `most_epochs` asks how many epochs the limits allow, `augment_epochs` has the
    epochs to an accuracy by copies of each sample.
    """

    batch: int | None = option(
        None,
        "Samples per step over all GPUs; without it, the largest power of two each GPU holds.",
        least=1,
        example="1024",
        flag=None,
    )
    deadline_seconds: float | None = option(
        None,
        "Choose the cheapest that finishes within this time, like 6h.",
        unit="seconds",
        above=0,
        parse=parse_seconds,
        flag="--deadline",
    )
    budget_dollars: float | None = option(
        None,
        "Choose the fastest that costs at most this, like $100.",
        unit="dollars",
        above=0,
        parse=parse_dollars,
        flag="--budget",
    )
    sure: float | None = option(
        None,
        "Probability with which deadline and budget are to be met, like 90% [default: by expected values].",
        parse=parse_fraction,
    )
    objective: str | None = option(None, "What to choose: cheapest, fastest or knee (most time saved per dollar).")
    most_epochs: bool = option(
        False, "Find how many epochs fit in the budget or before the deadline, 95% sure unless --sure says otherwise."
    )
    clouds: tuple[str, ...] = option(
        (),
        "Only these clouds, like aws,gcp; your own machines and marketplaces count only if named.",
        parse=parse_names,
        example="['aws']",
    )
    devices: tuple[str, ...] = option((), "Only these devices, like A100,H100.", parse=parse_names, example="['A100']")
    regions: tuple[str, ...] = option(
        (),
        "Only these regions, like us-east-1,europe [default: the cheapest].",
        parse=parse_names,
        example="['europe']",
    )
    gpus: tuple[int, ...] = option(
        OFFERED_GPUS,
        "Numbers of GPUs, in whole machines of one kind, like 1,8 or 1-64 (powers of two).",
        parse=parse_counts,
        default_text="1,2,4,8,16",
        example="[1, 2, 4, 8]",
    )
    nodes: tuple[int, ...] = option(
        (),
        "Numbers of machines used together, like 2 or 1-4 [default: 1; several where one meets no limit].",
        parse=partial(parse_counts, what="machines"),
        example="[1, 2]",
    )
    max_age_seconds: float | None = option(
        None,
        "Leave out prices older than this, like 30d [default: a note names those older than 90 days].",
        unit="seconds",
        above=0,
        parse=partial(parse_seconds, unit="d"),
        flag="--max-age",
    )
    any_host: bool = option(False, "Include machines with few CPUs or little host memory per GPU.")
    strategies: tuple[str, ...] = option(
        (),
        f"{_STRATEGIES} Names may be listed, like ddp,zero3; the option may be repeated.",
        flag="--strategy",
        example="['ddp', 'zero3']",
    )
    batch_policy: str | None = option(
        None,
        "fixed (--batch is the job's), scale (--batch is each GPU's) or auto (what each GPU holds; --batch is the one "
        "the epochs are meant for).",
    )
    max_global_batch: int | None = option(None, "Upper limit of the global batch.", least=1)
    critical_batch: str | None = option(
        None,
        "Larger batches need more epochs: the critical batch, like 15k, imagenet or loss=2.6.",
        named=_number_text,
    )
    what_if: tuple[str, ...] = option(
        (),
        "Also try these settings, like precision=amp,bf16 or compile=inductor; may be repeated.",
        example="['precision=amp,bf16']",
    )
    augment_epochs: Mapping[int, int] | None = option(
        None,
        "Time to an accuracy: copies of each sample with the epochs that reach it, like 1:100,4:45,16:25.",
        parse=parse_augment_epochs,
        example="{1: 100, 4: 45}",
    )
    spot: float | None = option(
        None, "Spot prices, with this many interruptions per hour and machine, like 0.1.", unit="interruptions per hour"
    )
    checkpoint_seconds: float | None = option(
        None,
        "Time to write a checkpoint on spot machines, like 30s [default: its size at 1 GB/s].",
        unit="seconds",
        parse=partial(parse_seconds, unit="s"),
        flag="--checkpoint",
    )
    restart_seconds: float | None = option(
        None,
        "Time from a spot interruption to the next step [default: 5m].",
        unit="seconds",
        parse=partial(parse_seconds, unit="m"),
        flag="--restart",
    )
    billing: str | None = option(None, "Billed by second, minute or hour [default: the cloud's].")
    boot_seconds: float | None = option(
        None,
        "Boot time of a rented machine; it is billed [default: 2m].",
        unit="seconds",
        least=0,
        parse=partial(parse_seconds, unit="m"),
        flag="--boot",
    )
    image_seconds: float | None = option(
        None,
        "Time to pull the container image onto a rented machine [default: 200s, 5 GB].",
        unit="seconds",
        least=0,
        parse=partial(parse_seconds, unit="m"),
        flag="--image-pull",
    )
    data_seconds: float | None = option(
        None,
        "Time to copy the data onto a rented machine [default: the dataset's size at 200 MB/s].",
        unit="seconds",
        least=0,
        parse=partial(parse_seconds, unit="m"),
        flag="--data-transfer",
    )
    storage_bytes: float = option(
        0.0,
        "Storage during the job, like 500GB, at --storage-price.",
        unit="bytes",
        parse=parse_size,
        flag="--storage",
    )
    storage_dollars_per_gigabyte_month: float = option(
        0.0, "Dollars per GB and month, like $0.08.", parse=parse_dollars, flag="--storage-price"
    )
    egress_bytes: float = option(
        0.0,
        "Data downloaded at the end, like 20GB, at --egress-price.",
        unit="bytes",
        parse=parse_size,
        flag="--egress",
    )
    egress_dollars_per_gigabyte: float = option(
        0.0, "Dollars per GB, like $0.09.", parse=parse_dollars, flag="--egress-price"
    )

    def __post_init__(self) -> None:
        check_fields(self, PLAN_OPTIONS)
        if self.augment_epochs is not None:
            object.__setattr__(self, "augment_epochs", _whole_numbers(self.augment_epochs))
        if self.spot is None and (self.checkpoint_seconds is not None or self.restart_seconds is not None):
            raise BadInput(
                "`checkpoint_seconds` and `restart_seconds` are about interruptions: give their rate with `spot`, "
                "like 0.1"
            )

    @property
    def has_policy(self) -> bool:
        """Whether `batch` is that of a batch policy, instead of the global batch of the job."""
        return self.batch_policy is not None or self.max_global_batch is not None

    @property
    def limits(self) -> "PlanLimits":
        """How long the job may take and what it may cost."""
        from epochcast.decide.plan.choice import PlanLimits

        # The most epochs at expected values would exceed the limits in half of all cases.
        sure = MOST_EPOCHS_SURE if self.sure is None and self.most_epochs else self.sure
        return PlanLimits(self.deadline_seconds, self.budget_dollars, sure)

    @property
    def interruptions(self) -> "Spot | None":
        """Interruptions of spot machines; None where machines are not taken back."""
        from epochcast.decide.plan.spot import RESTART_SECONDS, Spot

        if self.spot is None:
            return None
        restart = RESTART_SECONDS if self.restart_seconds is None else self.restart_seconds
        return Spot(self.spot, self.checkpoint_seconds, restart)

    def offers(self) -> "OffersInOrder":
        """The offers that count: those to look at first, and several machines for where one meets no limit."""
        from epochcast.decide.plan.offers import offers, one_machine_first

        offered = offers(
            self.gpus,
            clouds=self.clouds,
            devices=self.devices,
            regions=self.regions,
            spot=self.spot is not None,
            any_host=self.any_host,
        )
        return one_machine_first(offered, self.nodes, () if self.gpus == OFFERED_GPUS else self.gpus)

    def terms(self, data_bytes: float | None = None) -> "PlanTerms":
        """Everything beside job, offers and limits, looked up and checked. `data_bytes` are copied to every machine."""
        from epochcast.decide.plan.billing import Extras
        from epochcast.decide.plan.learning import critical_batch
        from epochcast.decide.plan.plan_terms import PlanTerms, policy_of, what_if_in
        from epochcast.decide.plan.startup import STARTUP, startup_of

        startup = startup_of(self.boot_seconds, self.image_seconds, self.data_seconds, data_bytes)
        extras = {**{name: getattr(self, name) for name in Extras.__slots__}, **startup}
        return PlanTerms(
            policy_of(self.batch_policy, self.batch, self.max_global_batch),
            None if self.critical_batch is None else critical_batch(self.critical_batch),
            what_if_in(self.what_if),
            Extras(**extras),
            self.interruptions,
            tuple((self.augment_epochs or {}).items()),
            tuple(name for name in STARTUP if getattr(self, name) is None),
        )


def _whole_numbers(epochs: Mapping[int, int]) -> dict[int, int]:
    """JSON has the copies as texts."""
    try:
        return {int(copies): int(each) for copies, each in epochs.items()}
    except (TypeError, ValueError, OverflowError):
        raise BadInput(f"augment_epochs must have numbers of copies and epochs, got {epochs!r}") from None


PLAN_OPTIONS: tuple[Option, ...] = options_of(PlanRequest)
