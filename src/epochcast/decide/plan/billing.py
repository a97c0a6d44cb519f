"""What a stay on rented machines costs: time as it is billed, storage and traffic.

    dollars = machines' dollars per hour · billed seconds / 3600 + storage + traffic out
    billed  = max(least, ⌈seconds/unit⌉·unit)
    storage = gigabytes · dollars per gigabyte and month · hours / 730.5

Sellers bill by the second unless said otherwise (CLOUDS); a machine is paid for while it boots, pulls its image and
copies the data.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, isfinite

from epochcast.errors import BadInput, UnknownName
from epochcast.interval import Interval

HOURS_PER_MONTH = 730.5


@dataclass(frozen=True, slots=True)
class Billing:
    """The unit of time that is paid for, whole; and the least that a machine is paid for."""

    unit_seconds: float = 1.0
    least_seconds: float = 0.0

    def billed_seconds(self, seconds: float) -> float:
        """Seconds that are paid for; a second itself is not rounded."""
        units = ceil(seconds / self.unit_seconds) * self.unit_seconds if self.unit_seconds > 1 else seconds
        return max(self.least_seconds, units)


UNITS: Mapping[str, Billing] = {"second": Billing(), "minute": Billing(60.0), "hour": Billing(3600.0)}

# Amazon: "billed on one second increments, with a minimum of 60 seconds" (aws.amazon.com/about-aws/whats-new/2017/10,
# EC2 per-second billing). Google followed in the same month with the same minimum (techpubs.info on both). Others are
# taken as by the second: nothing was found that says otherwise, and for jobs of hours it hardly counts.
CLOUDS: Mapping[str, Billing] = {"aws": Billing(1.0, 60.0), "gcp": Billing(1.0, 60.0)}


def billing_of(cloud: str, unit: str | None = None) -> Billing:
    """How a cloud bills, or as the user says."""
    if unit is None:
        return CLOUDS.get(cloud, UNITS["second"])
    if unit not in UNITS:
        raise UnknownName("billing unit", unit, UNITS)
    return UNITS[unit]


@dataclass(frozen=True, slots=True)
class Extras:
    """What a job needs beside its machines. Prices are per gigabyte (10⁹ bytes), of storage also per month."""

    billing: str | None = None
    boot_seconds: float = 0.0
    storage_bytes: float = 0.0
    storage_dollars_per_gigabyte_month: float = 0.0
    egress_bytes: float = 0.0
    egress_dollars_per_gigabyte: float = 0.0
    image_seconds: float = 0.0
    data_seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.billing is not None:
            billing_of("", self.billing)
        for name in self.__slots__[1:]:
            value = getattr(self, name)
            if not (isfinite(value) and value >= 0):
                raise BadInput(f"{name} must be at least 0, got {value:g}")
        for kind in ("storage", "egress"):
            price = "storage_dollars_per_gigabyte_month" if kind == "storage" else "egress_dollars_per_gigabyte"
            if getattr(self, f"{kind}_bytes") and not getattr(self, price):
                raise BadInput(f"{kind} costs what its seller asks: give its price, too")
            if getattr(self, price) and not getattr(self, f"{kind}_bytes"):
                raise BadInput(f"a price of {kind} without its bytes: give how much there is, too")

    @property
    def startup_seconds(self) -> float:
        """From the order of a machine to the first step: boot, image and data."""
        return self.boot_seconds + self.image_seconds + self.data_seconds

    def dollars(self, seconds: float, dollars_per_hour: float, cloud: str) -> float:
        """The equations above."""
        billed = billing_of(cloud, self.billing).billed_seconds(seconds)
        storage = self.storage_bytes / 1e9 * self.storage_dollars_per_gigabyte_month * seconds / 3600 / HOURS_PER_MONTH
        return dollars_per_hour * billed / 3600 + storage + self.egress_bytes / 1e9 * self.egress_dollars_per_gigabyte

    def interval_dollars(self, seconds: Interval, dollars_per_hour: float, cloud: str) -> Interval:
        """The same of uncertain seconds."""
        low, mid, high = (
            self.dollars(end, dollars_per_hour, cloud) for end in (seconds.low, seconds.mid, seconds.high)
        )
        return Interval(low, mid, high, seconds.coverage)


NO_EXTRAS = Extras()
