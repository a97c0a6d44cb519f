"""Documents that are right, from which damaged ones are made."""

import gzip
import io
import json
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

LAYERS: dict[str, Any] = {
    "name": "net",
    "input": [3, 16, 16],
    "loss": "cross_entropy",
    "layers": [
        {"type": "conv", "name": "stem", "channels": 8, "kernel": 3, "padding": 1, "stride": [1, 1], "groups": 1},
        {"type": "batch_norm", "affine": True},
        {
            "type": "block",
            "name": "stage",
            "repeat": 2,
            "layers": [
                {"type": "conv", "name": "a", "channels": 8, "kernel": 3, "padding": "same"},
                {"type": "relu"},
                {"type": "add", "from": ["a", "input"]},
            ],
        },
        {"type": "max_pool", "kernel": 2, "stride": 2},
        {"type": "upsample", "scale": 2},
        {"type": "pad", "padding": 1},
        {"type": "conv_transposed", "channels": 4, "kernel": 2, "stride": 2, "output_padding": 0},
        {"type": "depthwise_conv", "kernel": 3, "multiplier": 2},
        {"type": "group_norm", "groups": 2},
        {"type": "global_average_pool", "size": 2, "flatten": False},
        {"type": "opaque", "target": "mystery", "shape": [8, 4]},
        {"type": "reshape", "shape": [32]},
        {"type": "dropout", "rate": 0.1},
        {"type": "linear", "name": "head", "features": 10, "bias": True},
    ],
}
WORDS: dict[str, Any] = {
    "inputs": [{"name": "tokens", "shape": [16], "dtype": "int64"}],
    "unit": "tokens",
    "units_per_sample": 16,
    "outputs": ["out"],
    "layers": [
        {"type": "embedding", "name": "words", "rows": 100, "width": 32},
        {"type": "position"},
        {"type": "attention", "heads": 4, "kv_heads": 2, "head_width": 8, "causal": True},
        {"type": "layer_norm"},
        {"type": "lstm", "hidden": 16, "layers": 2, "bidirectional": True},
        {"type": "permute", "order": [2, 1]},
        {"type": "permute", "order": [2, 1]},
        {"type": "mean", "axes": [-1], "keep": True},
        {"type": "concatenate", "axis": 2, "from": ["mean", "lstm"]},
        {"type": "select", "axis": 1, "count": 4},
        {"type": "softmax", "log": True},
        {"type": "linear", "name": "out", "features": 8},
    ],
}


def saved_spec() -> dict[str, Any]:
    """A small network as `inspect --save` writes it."""
    from epochcast.describe.capture.spec import spec_model
    from epochcast.describe.capture.spec.saved_spec import saved_to_json
    from epochcast.describe.graph.recipe import Recipe

    model = spec_model(LAYERS, "net.json", "net")
    document: dict[str, Any] = json.loads(json.dumps(saved_to_json(model, Recipe(2))))
    return document


def trace_document() -> dict[str, Any]:
    """A step as the cache of captures keeps it."""
    from epochcast.describe.capture.spec import spec_model
    from epochcast.describe.graph.recipe import Recipe
    from epochcast.describe.graph.serialization import trace_to_json

    document: dict[str, Any] = json.loads(json.dumps(trace_to_json(spec_model(LAYERS, "n", "n").trace(Recipe(1)))))
    return document


def gzipped(document: Any) -> bytes:
    """As the cache of captures writes it."""
    return gzip.compress(json.dumps(document).encode(), mtime=0)


def onnx_models() -> list[Any]:
    """A network of images and some arithmetic on shapes."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    def initializer(name: str, *shape: int) -> Any:
        return numpy_helper.from_array(np.zeros(shape, np.float32), name)

    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("BatchNormalization", ["c", "b", "b", "b", "b"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Shape", ["p"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n0"], axis=0),
        helper.make_node("Unsqueeze", ["n0", "axes"], ["n1"]),
        helper.make_node("Concat", ["n1", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["p", "target"], ["f"]),
        helper.make_node("Gemm", ["f", "v", "d"], ["y"], transB=1),
        helper.make_node("Softmax", ["y"], ["z"], axis=-1),
    ]
    first = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 16, 16])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, ["N", 10])],
        [
            initializer("w", 8, 3, 3, 3),
            initializer("b", 8),
            initializer("v", 10, 128),
            initializer("d", 10),
            numpy_helper.from_array(np.array(0), "zero"),
            numpy_helper.from_array(np.array([0]), "axes"),
            numpy_helper.from_array(np.array([-1]), "rest"),
        ],
    )
    sequence = helper.make_graph(
        [
            helper.make_node("Gather", ["table", "ids"], ["e"]),
            helper.make_node("LSTM", ["e", "W", "R"], ["h", "last"], hidden_size=8),
            helper.make_node("Squeeze", ["h", "axes"], ["q"]),
            helper.make_node("Transpose", ["q"], ["t"], perm=[1, 0, 2]),
            helper.make_node("MatMul", ["t", "m"], ["a"]),
            helper.make_node("Split", ["a"], ["a1", "a2"], axis=2, num_outputs=2),
            helper.make_node("Concat", ["a1", "a2"], ["cc"], axis=-1),
            helper.make_node("Slice", ["cc", "from", "to", "axes"], ["sl"]),
            helper.make_node("Expand", ["sl", "big"], ["ex"]),
            helper.make_node("Tile", ["ex", "big"], ["ti"]),
            helper.make_node("Pad", ["ti", "pads"], ["pa"]),
            helper.make_node("ReduceMean", ["pa"], ["o"], axes=[1], keepdims=0),
        ],
        "s",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, [4, "N"])],
        [helper.make_tensor_value_info("o", TensorProto.FLOAT, ["N", 12])],
        [
            initializer("table", 50, 6),
            initializer("W", 1, 32, 6),
            initializer("R", 1, 32, 8),
            initializer("m", 8, 12),
            numpy_helper.from_array(np.array([1]), "axes"),
            numpy_helper.from_array(np.array([0]), "from"),
            numpy_helper.from_array(np.array([2]), "to"),
            numpy_helper.from_array(np.array([1, 1, 1]), "big"),
            numpy_helper.from_array(np.array([0, 0, 0, 0, 0, 0]), "pads"),
        ],
    )
    return [helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]) for graph in (first, sequence)]


def keras_documents() -> list[Any]:
    """Configs as Keras 3 writes them: a list of layers, a graph of layers, a recurrent network."""
    import os

    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras
    from keras import layers

    inputs = keras.Input((16, 16, 3))
    x = layers.Conv2D(8, 3, padding="same", activation="relu")(inputs)
    x = layers.BatchNormalization()(x)
    y = layers.DepthwiseConv2D(3, padding="same")(x)
    x = layers.Add()([x, y])
    x = layers.MaxPooling2D()(x)
    x = layers.Conv2DTranspose(4, 2, strides=2)(x)
    x = layers.GlobalAveragePooling2D()(x)
    graph = keras.Model(inputs, layers.Dense(10, activation="softmax")(x))
    words = keras.Sequential(
        [
            keras.Input((12,), dtype="int32"),
            layers.Embedding(50, 16),
            layers.Bidirectional(layers.LSTM(8, return_sequences=True)),
            layers.TimeDistributed(layers.Dense(6)),
            layers.GRU(5),
            layers.Dropout(0.1),
            layers.Dense(2),
        ]
    )
    token = keras.Input((8, 16))
    attention = layers.MultiHeadAttention(2, 8)(token, token)
    inner = keras.Sequential([keras.Input((8, 16)), layers.Dense(16), layers.LayerNormalization()])
    z = layers.Concatenate()([inner(attention), token])
    z = layers.Reshape((16, 16))(z)
    z = layers.Permute((2, 1))(z)
    z = layers.ZeroPadding1D(1)(z)
    z = layers.Flatten()(z)
    other = keras.Model(token, layers.Dense(3)(z))
    return [json.loads(model.to_json()) for model in (graph, words, other)]


def keras_archive(config: bytes) -> bytes:
    """A .keras file around a config."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("metadata.json", '{"keras_version": "3.3.3", "date_saved": "2026-01-01@00:00:00"}')
        archive.writestr("config.json", config)
    return buffer.getvalue()


HF: list[Any] = [
    {
        "model_type": "bert",
        "architectures": ["BertForMaskedLM"],
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "vocab_size": 100,
        "max_position_embeddings": 64,
        "type_vocab_size": 2,
        "hidden_act": "gelu",
        "pad_token_id": 0,
    },
    {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 64,
        "vocab_size": 100,
        "max_position_embeddings": 64,
        "rope_theta": 10000.0,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
    },
    {
        "model_type": "vit",
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "image_size": 32,
        "patch_size": 8,
        "num_channels": 3,
    },
    {
        "model_type": "t5",
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 64,
        "num_layers": 1,
        "num_heads": 4,
        "vocab_size": 100,
        "feed_forward_proj": "gated-gelu",
    },
]

RUN: dict[str, Any] = {
    "source": "mine",
    "model": "mnist_cnn",
    "device": "V100",
    "device_memory_bytes": 34359738368,
    "batch_per_gpu": 32,
    "global_batch": 64,
    "gpus": 2,
    "nodes": 1,
    "step_seconds": 0.01,
    "samples_per_second": 6400.0,
    "precision": "fp32",
    "optimizer": "sgd",
    "framework": "pytorch 1.12",
    "framework_version": "1.12",
    "mode": "training",
    "strategy": "ddp",
    "interconnect": "NVLink (DGX-1)",
    "input_shape": "1x28x28",
    "parameters": 1000000,
    "grad_accum": 1,
    "channels_last": "false",
    "quality": "good",
    "system": "box",
    "data": "synthetic",
    "compiled": "false",
    "checkpointing": "false",
    "note": "",
    "task": "",
    "unit": "samples",
    "layers": None,
    "hidden": None,
    "seq_length": None,
    "dp": None,
    "tp": None,
    "pp": None,
    "zero": None,
    "micro_batch": None,
}
LANGUAGE_RUN: dict[str, Any] = {
    **RUN,
    "model": "llama-tiny",
    "task": "pretraining",
    "device": "H100-SXM5-80GB",
    "device_memory_bytes": None,
    "framework": "nanotron",
    "precision": "bf16",
    "optimizer": "adamw",
    "input_shape": "seq64",
    "unit": "sequences",
    "batch_per_gpu": 4,
    "global_batch": 32,
    "gpus": 8,
    "dp": 4,
    "tp": 1,
    "pp": 2,
    "cp": 1,
    "ep": 1,
    "zero": 1,
    "micro_batch": 4,
    "sequence_length": 64,
    "layers": 2,
    "hidden": 64,
    "heads": 4,
    "kv_heads": 4,
    "ffn": 128,
    "vocab": 1000,
}
_OP: dict[str, Any] = dict.fromkeys(
    [
        "batch",
        "m",
        "n",
        "k",
        "hidden",
        "in_channels",
        "out_channels",
        "in_height",
        "in_width",
        "kernel_height",
        "kernel_width",
        "stride_height",
        "stride_width",
        "pad_height",
        "pad_width",
        "a_transposed",
        "b_transposed",
        "timesteps",
    ]
) | {"source": "mine", "device": "A100", "dtype": "float32", "phase": "forward", "seconds": 1e-4}
OPS: list[dict[str, Any]] = [
    {**_OP, "family": "matmul", "op": "linear", "batch": 1, "m": 64, "n": 64, "k": 64, "a_transposed": False},
    {**_OP, "family": "elementwise", "op": "add", "batch": 8, "hidden": 64},
    {
        **_OP,
        **{"family": "conv", "op": "conv2d", "batch": 8, "in_channels": 3, "out_channels": 8, "in_height": 16},
        **{"in_width": 16, "kernel_height": 3, "kernel_width": 3, "stride_height": 1, "stride_width": 1},
        **{"pad_height": 1, "pad_width": 1},
    },
    {**_OP, "family": "rnn", "op": "lstm", "batch": 8, "hidden": 64, "timesteps": 5},
]
_LAYER: dict[str, Any] = {
    "device": "V100",
    "batch_size": 8,
    "activation": "relu",
    "optimizer": "sgd",
    "backward_and_update": True,
    "precision_bits": 32,
    "seconds_median": 1e-3,
}
CONVOLUTION: dict[str, Any] = {
    **_LAYER,
    **{"input_size": 32, "kernel_size": 3, "stride": 1, "padding": "same", "channels_in": 3, "channels_out": 8},
    "use_bias": True,
}
DENSE: dict[str, Any] = {**_LAYER, "features_in": 64, "features_out": 32}
REPORT: dict[str, Any] = {
    "model": "mnist_cnn_3conv",
    "device": "P100-PCIe",
    "strategy": "single",
    "gpu_count": 1,
    "optimizer": "sgd",
    "batch_size_per_replica": 2,
    "samples_per_epoch": 60000,
    "steps_per_epoch": 30000,
    "epoch": None,
    "epochs_in_time": 10,
    "seconds": 591.6581,
    "note": "total of 10 epochs",
}

CAMPAIGN: dict[str, Any] = {
    "models": ["mnist_cnn", "resnet18"],
    "batches": [4, 16],
    "optimizers": ["sgd"],
    "precisions": ["fp32"],
    "modes": ["training", "forward"],
    "backend": "torch",
    "data": "synthetic",
    "repetitions": 2,
    "seconds": "10s",
    "inputs": {"resnet18": "3x32x32"},
    "runs": [{"models": ["vgg11"], "batches": [2]}],
}
JOB_FILE: dict[str, Any] = {
    "defaults": {"device": "A100", "precision": "amp"},
    "job": [
        {
            "name": "a",
            "model": "mnist_cnn",
            "batch": 32,
            "samples": 1000,
            "epochs": 2,
            "gpus": 4,
            "nodes": 1,
            "strategy": "ddp",
            "optimizer": "adam",
            "input_shape": "1x28x28",
            "accumulate": 2,
            "freeze": ["conv*"],
            "loader_seconds": "8ms",
            "price": "2.5",
        }
    ],
}
SHEET: dict[str, Any] = {
    "name": "my laptop",
    "memory": "16 GiB",
    "bandwidth": "576 GB/s",
    "fp32": "33 TFLOPS",
    "fp16": "66 TFLOPS",
    "compute_units": 76,
    "generation": "ada",
    "watts": 150,
    "power_limit": 100,
    "clock": "2.1 GHz",
    "l2": "48 MiB",
    "year": 2023,
}
SHEET_LIKE: dict[str, Any] = {"like": "RTX 4090", "power_limit": "300 W", "memory": "24 GiB", "fp32": "70 TFLOPS"}


def profile_text() -> bytes:
    """A calibration as `calibrate --save` writes it."""
    from epochcast.hardware.profile import Profile, save_profile

    with TemporaryDirectory() as folder:
        path = Path(folder) / "p.toml"
        save_profile(
            Profile(
                device="V100",
                stack="pytorch",
                source="a test",
                date="2026-01-01",
                rows=3,
                relative_to="learned",
                gemm_fraction={"fp32": 0.9},
                launch_seconds=1e-5,
                compute_factor=1.1,
                memory_factor=0.9,
                class_factor={"conv": 1.1},
                step_spread=(0.9, 1.1),
                precisions=("fp32",),
            ),
            path,
        )
        return path.read_bytes()


def measurement_lines() -> list[Any]:
    """A measurement file: a machine, ops of it, and a step."""
    from epochcast.describe.capture.spec import spec_model
    from epochcast.describe.graph.recipe import Recipe
    from epochcast.describe.graph.serialization import ops_to_json, recipe_to_json
    from epochcast.hardware.host_device import detect_host

    trace = spec_model(LAYERS, "n", "n").trace(Recipe(2))
    lines: list[Any] = [
        {
            "kind": "machine",
            "machine": "m",
            "facts": {"cpu": detect_host().name, "device": "cpu", "torch": "2.13.0", "threads": 2},
        }
    ]
    for number, op in enumerate(trace.template.base[:24]):
        lines.append(
            {
                "kind": "op",
                "key": f"op{number}",
                "machine": "m",
                "question": {"device": "cpu", "ops": ops_to_json([op])},
                "seconds": 1e-4 * (1 + number),
                "low_seconds": 1e-4 * (1 + number),
                "spread": 0.1,
                "repeats": 5,
                "peak_bytes": None,
                "failed": None,
                "details": {"date": "2026-01-01"},
            }
        )
    lines.append(
        {
            "kind": "model",
            "key": "step",
            "machine": "m",
            "question": {
                "device": "cpu",
                "backend": "torch",
                "model": "mnist_cnn",
                "input": None,
                "recipe": recipe_to_json(Recipe(4)),
                "data": "synthetic",
                "part": "step",
                "repetition": 0,
            },
            "seconds": 0.01,
            "low_seconds": 0.009,
            "repeats": 3,
            "failed": None,
            "details": {"reference": "mnist_cnn", "input_shape": [1, 28, 28]},
        }
    )
    for size_bytes in (1024, 2**20):
        ask = {"device": "cpu", "backend": "gloo", "collective": "all_reduce", "ranks": 2, "size_bytes": size_bytes}
        row = {"kind": "collective", "key": f"all_reduce{size_bytes}", "machine": "m", "question": ask}
        lines.append({**row, "seconds": 1e-4 + 1e-9 * size_bytes, "repeats": 3, "failed": None, "details": {}})
    return json.loads(json.dumps(lines))  # type: ignore[no-any-return]


# Of DeepSpeed, Accelerate, `TrainingArguments` and LightningCLI.
CONFIGS: list[Any] = [
    {
        "train_batch_size": 16,
        "train_micro_batch_size_per_gpu": 4,
        "gradient_accumulation_steps": 4,
        "optimizer": {"type": "AdamW", "params": {"lr": 0.001}},
        "fp16": {"enabled": True},
        "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},
        "activation_checkpointing": {"partition_activations": True},
    },
    {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": "FSDP",
        "fsdp_config": {"fsdp_sharding_strategy": "FULL_SHARD", "fsdp_offload_params": False},
        "mixed_precision": "bf16",
        "num_machines": 1,
        "num_processes": 2,
        "dynamo_config": {"dynamo_backend": "INDUCTOR"},
    },
    {
        "output_dir": "out",
        "per_device_train_batch_size": 8,
        "gradient_accumulation_steps": 2,
        "num_train_epochs": 3,
        "max_steps": -1,
        "optim": "adamw_torch",
        "bf16": True,
        "gradient_checkpointing": True,
        "dataloader_num_workers": 4,
    },
    {
        "trainer": {
            "max_epochs": 5,
            "devices": 2,
            "num_nodes": 1,
            "precision": "16-mixed",
            "strategy": "ddp",
            "accumulate_grad_batches": 2,
        },
        "model": {"class_path": "net.Net"},
        "data": {"batch_size": 32},
    },
]
