"""`epochcast afford`"""

from typing import Annotated

import typer

from epochcast.decide.afford.afford_request import AffordRequest
from epochcast.errors import OverLimit
from epochcast.surfaces.cli.command_line import Explain, Json, Wide, show
from epochcast.surfaces.cli.evaluate_command import progress_bar
from epochcast.surfaces.cli.job_flags import TypedOptions, options_command
from epochcast.surfaces.cli.plan_command import until_deadline


@options_command(
    epilog="Example: epochcast afford --budget 200 --deadline 'Friday 5pm' llama3_2_1b llama3_2_3b llama3_1_8b",
    request=AffordRequest,
    with_place=False,
    parsers={"deadline_seconds": until_deadline},
)
def afford(
    typed: TypedOptions,
    request: AffordRequest,
    models: Annotated[list[str], typer.Argument(help="Models to compare, such as the sizes of one family.")],
    explain: Explain = False,
    wide: Wide = False,
    as_json: Json = False,
) -> int:
    """Say what can be trained for a budget: epochs or tokens, by model size, full or LoRA."""
    from epochcast import api
    from epochcast.base.current_time import now

    with progress_bar("planning") as progress:
        answer = api.afford(
            models, request, today=now().date(), config=typed.config, progress=progress, **typed.options
        )
    show(answer.as_dict(), as_json, answer.__rich__, explain=explain, wide=wide)
    return 0 if answer.is_any else OverLimit.exit_code
