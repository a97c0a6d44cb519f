"""A short text that is the same for the same job: a digest of the job as it is written down.

Options at their defaults are left out, so that an option that is new changes the digest of no job.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from epochcast.base.record import plain
from epochcast.predict.forecast.job import JOB_OPTIONS

_DEFAULTS: Mapping[str, Any] = {option.name: plain(option.default) for option in JOB_OPTIONS}


def fingerprint(job: Mapping[str, Any]) -> str:
    """Of a job as `Job.as_dict` gives it; options at their defaults are left out."""
    options = {name: value for name, value in job.items() if name not in _DEFAULTS or value != _DEFAULTS[name]}
    return sha256(json.dumps(options, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:32]
