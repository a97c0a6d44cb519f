"""`epochcast instances`: machines and prices; `update` refreshes them, `add` takes one's own."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epochcast.base.record import plain
from epochcast.surfaces.cli.command_line import NAMES, Json, Wide, command_group, show

if TYPE_CHECKING:
    from epochcast.hardware.instance import Instance
    from epochcast.hardware.own_machines import Purchase

instances_app = command_group(
    "instances",
    NAMES,
    invoke_without_command=True,
    epilog="Example: epochcast instances --clouds aws,gcp --devices H100 --regions europe",
    help="Rentable machines and their prices.",
)


@instances_app.callback()
def instances(
    context: typer.Context,
    clouds: Annotated[str | None, typer.Option(help="Only these clouds, like aws,gcp.")] = None,
    devices: Annotated[str | None, typer.Option(help="Only these devices, like A100,H100.")] = None,
    regions: Annotated[
        str | None, typer.Option(help="Prices of these regions, like us-east-1,europe; by default the cheapest.")
    ] = None,
    wide: Wide = False,
    as_json: Json = False,
) -> int:
    """List rentable machines with on-demand and spot prices: cheapest region, source and date."""
    from epochcast.errors import BadInput

    if context.invoked_subcommand is not None:
        if clouds or devices or regions:
            raise BadInput(f"options go behind the command: epochcast instances {context.invoked_subcommand} …")
        return 0
    from epochcast.base.current_time import now
    from epochcast.decide.plan.offers import rentable
    from epochcast.hardware.machines import instances as all_instances
    from epochcast.units import parse_names

    every = sorted({machine.cloud for machine in all_instances()})
    named = {
        option: parse_names(text)
        for option, text in (("clouds", clouds), ("devices", devices), ("regions", regions))
        if text is not None
    }
    rows = rentable(
        clouds=named.get("clouds", every),
        devices=named.get("devices", ()),
        regions=named.get("regions", ()),
        any_host=True,
    )
    today = now().date()

    def view() -> Any:
        from epochcast.surfaces import render

        return render.instances(rows, today)

    show(
        {"instances": [_entry(row) | {"price_age_days": row.age(today).days} for row in rows]}, as_json, view, wide=wide
    )
    return 0


@instances_app.command(epilog="Example: epochcast instances update")
def update(
    sources: Annotated[
        list[str] | None, typer.Argument(help="gpuhunt, skypilot, files or URLs of price lists [default: gpuhunt].")
    ] = None,
    cloud: Annotated[
        str | None, typer.Option(help="Whose prices a file has [default: its folder's or own name].")
    ] = None,
    read_on: Annotated[str | None, typer.Option(help="Day of the prices, like 2026-08-22 [default: today].")] = None,
    as_json: Json = False,
) -> int:
    """Refresh prices from gpuhunt's catalogue, SkyPilot's files, or your own; says what changed."""
    from epochcast.base.current_time import now
    from epochcast.hardware.own_machines import check_day
    from epochcast.hardware.price_update import update_prices

    if read_on is not None:
        check_day(read_on)
    answer = update_prices(tuple(sources or ()), now().date().isoformat(), cloud=cloud, read_on=read_on)

    def view() -> Any:
        from epochcast.surfaces import render

        return render.price_update(answer)

    show(answer.as_dict(), as_json, view)
    return 0


@instances_app.command("import", epilog="Example: epochcast instances import skypilot-catalog/catalogs/v7/*/vms.csv")
def import_files(
    files: Annotated[list[Path], typer.Argument(help="vms.csv files of github.com/skypilot-org/skypilot-catalog.")],
    cloud: Annotated[str | None, typer.Option(help="Whose prices; by default the folder's or file's name.")] = None,
    read_on: Annotated[
        str | None, typer.Option(help="When they were read, like 2026-08-22; by default the day of the file.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Refresh your prices from SkyPilot's catalogue files; lists skipped rows with the reason."""
    from epochcast.hardware.own_machines import import_catalogues, skipped_counts

    imported = import_catalogues(files, cloud=cloud, read_on=read_on)
    reasons = skipped_counts(imported.skipped)

    def view() -> str:
        lines = [
            f"{len(imported.machines)} machines of {len(imported.paths)} clouds: {', '.join(map(str, imported.paths))}"
        ]
        return "\n".join([*lines, *(f"{count} skipped: {reason}" for reason, count in reasons.items())])

    show(
        {
            "files": [str(path) for path in imported.paths],
            "instances": len(imported.machines),
            "reasons": reasons,
            "skipped": plain(imported.skipped),
        },
        as_json,
        view,
    )
    return 0


@instances_app.command(epilog="Example: epochcast instances add lab-a6000 --device 'RTX A6000' --gpus 4 --price 2.5/h")
def add(
    name: Annotated[str, typer.Argument(help="Name of the machine.")],
    device: Annotated[str, typer.Option(help="Its GPU, a name from `epochcast devices`.")],
    gpus: Annotated[int, typer.Option(help="Number of GPUs.")] = 1,
    price: Annotated[str | None, typer.Option(help="Dollars per hour of the machine, like 2.5/h.")] = None,
    purchase: Annotated[str | None, typer.Option(help="Purchase price like $250k, instead of --price.")] = None,
    years: Annotated[float, typer.Option(help="Years over which the purchase is written off.")] = 3.0,
    power: Annotated[str | None, typer.Option(help="Power draw, like 6.5kW.")] = None,
    electricity: Annotated[str | None, typer.Option(help="Electricity price, like 0.15/kWh.")] = None,
    utilization: Annotated[str, typer.Option(help="Part of all hours the machine is in use, like 70%.")] = "100%",
    cpus: Annotated[int | None, typer.Option(help="CPUs [default: 8 per GPU].")] = None,
    memory: Annotated[str | None, typer.Option(help="Host memory, like 512GiB [default: 64 GiB per GPU].")] = None,
    link: Annotated[str | None, typer.Option(help="Link between such machines, a name from `epochcast links`.")] = None,
    inner_link: Annotated[str | None, typer.Option(help="Link between its GPUs [default: the device's own].")] = None,
    cloud: Annotated[str, typer.Option(help="Cloud name for --clouds.")] = "own",
    as_json: Json = False,
) -> int:
    """Add or replace your own machine, by hourly price or by purchase price."""
    from epochcast.base.current_time import now
    from epochcast.hardware.own_machines import Description, add_machine, own_machine
    from epochcast.units import parse_size

    host_memory_bytes = None if memory is None else parse_size(memory)
    description = Description(name, device, gpus, cpus, host_memory_bytes, link, inner_link, cloud)
    machine = own_machine(description, _payment(price, purchase, years, power, electricity, utilization), now().date())
    path = add_machine(machine)

    def view() -> str:
        return f"{name}: {gpus} × {machine.device} at ${machine.dollars_per_hour:.2f} per hour, written to {path}"

    show({"file": str(path), "instance": _entry(machine)}, as_json, view)
    return 0


@instances_app.command(epilog="Example: epochcast instances remove lab-a6000")
def remove(
    name: Annotated[str, typer.Argument(help="Name of the machine.")],
    as_json: Json = False,
) -> int:
    """Remove one of your own machines."""
    from epochcast.hardware.own_machines import remove_machine

    path = remove_machine(name)

    def view() -> str:
        return f"{name} is no longer in {path}"

    show({"file": str(path), "name": name}, as_json, view)
    return 0


def _payment(
    price: str | None, purchase: str | None, years: float, power: str | None, electricity: str | None, used: str
) -> "float | Purchase":
    from epochcast.errors import BadInput
    from epochcast.hardware.own_machines import Purchase
    from epochcast.units import (
        parse_dollars,
        parse_dollars_per_hour,
        parse_dollars_per_kilowatt_hour,
        parse_fraction,
        parse_watts,
    )

    if (price is None) == (purchase is None):
        raise BadInput("a machine has one price: --price per hour, or --purchase with --years")
    if price is not None:
        return parse_dollars_per_hour(price)
    assert purchase is not None
    if (power is None) != (electricity is None):
        raise BadInput("electricity costs power times its price: give --power and --electricity")
    watts = 0.0 if power is None else parse_watts(power)
    per_kilowatt_hour = 0.0 if electricity is None else parse_dollars_per_kilowatt_hour(electricity)
    return Purchase(parse_dollars(purchase), years, watts, per_kilowatt_hour, parse_fraction(used))


def _entry(machine: "Instance") -> dict[str, Any]:
    """A machine as JSON, its regions as a list."""
    return {**plain(machine), "regions": plain(machine.regions)}
