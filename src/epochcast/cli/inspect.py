"""`epochcast inspect`"""

from pathlib import Path
from typing import Annotated

import typer

from epochcast.cli.app import Json, app, show
from epochcast.units import parse_shape


@app.command(epilog="Example: epochcast inspect vgg19 --no-bias")
def inspect(
    model: Annotated[
        str,
        typer.Argument(
            help="A zoo name, timm:NAME, torchvision:NAME, hf:CONFIG.json, file.py:factory, .onnx, .keras, .toml, .json"
        ),
    ],
    no_bias: Annotated[bool, typer.Option("--no-bias", help="Leave biases out of the parameter counts.")] = False,
    input_shape: Annotated[
        str | None, typer.Option("--input", help="Shape of one sample, like 3x224x224 (tokens: 512).")
    ] = None,
    no_aux: Annotated[bool, typer.Option("--no-aux", help="Drop auxiliary heads.")] = False,
    save: Annotated[Path | None, typer.Option(help="Write the model as a spec file.")] = None,
    as_json: Json = False,
) -> int:
    """Layers of a model: shapes, parameters, activations, flops, bytes, receptive field."""
    from epochcast import api, render
    from epochcast.capture.resolve import find_model

    found = find_model(model, None if input_shape is None else parse_shape(input_shape), aux=not no_aux)
    answer = api.inspect(found, count_bias=not no_bias)
    if save is not None:
        from epochcast.capture.spec import save_spec

        save_spec(found, save)
    show(answer.as_dict(), as_json, render.inspection(answer))
    return 0
