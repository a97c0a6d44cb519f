"""The model of single layers as the compressed JSON that `epochcast.predict.cost.layers_model` reads."""

import gzip
import json

from epochcast.predict.cost.layer_terms import TERMS
from epochcast.predict.cost.layers_model import FORMAT, LayersModel
from training.forests import forest_document

# Leaf values are stored in units of this: a sum of some hundred trees is then right to about 1e-4 of the seconds.
VALUE_STEP = 1e-5


def to_bytes(model: LayersModel) -> bytes:
    """JSON text, compressed, the same bytes for the same model."""
    document = {
        "format": FORMAT,
        "terms": TERMS,
        "card": dict(model.card),
        "unknown_widths": dict(model.unknown_widths),
        "setups": [
            {
                **{name: getattr(s, name) for name in ("kind", "device", "generation", "stack", "place", "rows")},
                "coefficients": [float(f"{c:.6g}") for c in s.coefficients],
                "widths": {name: [round(w, 4) for w in pair] for name, pair in s.widths.items()},
            }
            for s in model.setups
        ],
        "forests": {kind: forest_document(forest, VALUE_STEP) for kind, forest in model.forests.items()},
    }
    return gzip.compress(json.dumps(document, separators=(",", ":")).encode(), compresslevel=9, mtime=0)
