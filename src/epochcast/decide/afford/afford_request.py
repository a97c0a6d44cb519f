"""What `afford` is asked beside its models. Flags, keywords of `ec.afford` and the web API follow from the fields."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from epochcast.base.options import Option, check_fields, option, options_of
from epochcast.errors import BadInput
from epochcast.units import parse_counts, parse_dollars, parse_fraction, parse_names, parse_seconds

if TYPE_CHECKING:
    from epochcast.decide.plan.plan_request import PlanRequest

DEFAULT_SURE = 0.9
# Up to one of the largest machines that most clouds have.
AFFORDED_GPUS = (1, 2, 4, 8)


@dataclass(frozen=True, kw_only=True)
class AffordRequest:
    """The limits, what is compared, and which offers count."""

    budget_dollars: float | None = option(
        None,
        "Most it may cost, like $200.",
        unit="dollars",
        above=0,
        parse=parse_dollars,
        flag="--budget",
    )
    deadline_seconds: float | None = option(
        None,
        "When it must be done: 6h, 'Friday 5pm', 2026-11-20T18:00.",
        unit="seconds",
        above=0,
        parse=parse_seconds,
        flag="--deadline",
    )
    sure: float = option(
        DEFAULT_SURE,
        "Probability with which budget and deadline are to be met.",
        parse=parse_fraction,
        default_text="90%",
    )
    methods: tuple[str, ...] = option(
        (),
        "full, lora (of rank --lora, or 16) or full,lora [default: both for language models].",
        parse=parse_names,
        example="['full', 'lora']",
    )
    clouds: tuple[str, ...] = option((), "Only these clouds, like aws,gcp.", parse=parse_names, example="['aws']")
    devices: tuple[str, ...] = option((), "Only these devices, like A100,H100.", parse=parse_names, example="['A100']")
    regions: tuple[str, ...] = option(
        (), "Only these regions, like us-east-1,europe.", parse=parse_names, example="['europe']"
    )
    gpus: tuple[int, ...] = option(
        AFFORDED_GPUS,
        "Numbers of GPUs of one machine, like 1,8 or 1-8 (powers of two).",
        parse=parse_counts,
        default_text="1,2,4,8",
        example="[1, 8]",
    )

    def __post_init__(self) -> None:
        check_fields(self, AFFORD_OPTIONS)
        if self.budget_dollars is None and self.deadline_seconds is None:
            raise BadInput("what can be afforded depends on limits: give a budget like $200, or a deadline like 6h")

    def plan_request(self, *, is_language: bool = False) -> "PlanRequest":
        """The same question as a plan that counts epochs. Language models are also tried sharded and with activations
        recomputed, without which large ones fit nowhere.
        """
        from epochcast.decide.plan.plan_request import PlanRequest

        return PlanRequest(
            budget_dollars=self.budget_dollars,
            deadline_seconds=self.deadline_seconds,
            sure=self.sure,
            most_epochs=True,
            clouds=self.clouds,
            devices=self.devices,
            regions=self.regions,
            gpus=self.gpus,
            strategies=("ddp", "fsdp") if is_language else (),
            what_if=("checkpointing=full",) if is_language else (),
        )


AFFORD_OPTIONS: tuple[Option, ...] = options_of(AffordRequest)
