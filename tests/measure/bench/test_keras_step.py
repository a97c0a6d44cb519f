import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from epochcast.measure.bench.bench_networks import find_network
from epochcast.measure.bench.keras_step import REPORT_NETWORKS

# In a process of its own: Keras keeps the backend it was first imported with, and other tests want torch.
SCRIPT = """
import json
from epochcast.measure.bench.campaign import measure
from epochcast.measure.bench.keras_step import REPORT_NETWORKS, keras_model
from epochcast.measure.bench.models_bench import question_of
from epochcast.describe.graph.recipe import Recipe
rows = {}
for mode in ("training", "forward_backward", "forward"):
    row = measure(question_of("mnist_cnn", Recipe(4, "adam", mode=mode), backend="keras", limit_seconds=0.3))
    rows[mode] = [row.failed, row.seconds]
failed = measure(question_of("resnet50", Recipe(4), backend="keras")).failed
print(json.dumps({"parameters": {n: keras_model(n).count_params() for n in REPORT_NETWORKS}, "rows": rows,
                  "failed": failed}))
"""


@pytest.mark.slow
@pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs TensorFlow")
def test_keras_trains_the_reports_networks_as_torch_does() -> None:
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout.splitlines()[-1])
    for name in REPORT_NETWORKS:
        module, _ = find_network(name).make()
        assert told["parameters"][name] == sum(p.numel() for p in module.parameters())
    assert all(failed is None and seconds > 0 for failed, seconds in told["rows"].values())
    assert told["failed"].startswith("no Keras network to train called 'resnet50'")
