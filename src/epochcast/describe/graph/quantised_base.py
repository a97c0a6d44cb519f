"""A frozen base in few bits, as a rewrite of a step: how its weights are stored and what a product with one allocates.

    name      bytes of n values in rows of `columns`                 as
    nf4       n/2 + 4·n/64                                           bitsandbytes, `load_in_4bit`: float32 scales
    nf4-dq    n/2 + n/64 + 4·n/(64·256)                              with `bnb_4bit_use_double_quant` (QLoRA)
    int8      n + 4·rows                                             bitsandbytes, `load_in_8bit` (LLM.int8())
    gptq      n/2 + 2·n/128 + n/256 + 4·columns                      int32 words, half scales, packed zeros, `g_idx`
    awq       n/2 + 2·n/128 + n/256                                  the same without `g_idx`
    w8        n + 4·rows                                             8 bits for weights alone (quanto, torchao)
    sdnq      as w8                                                  SDNQ's int8 with rotated inputs (SimpleTuner)
    fp8       as w8                                                  torchao's fp8 weights and inputs, eager
    nf4-old   as nf4                                                 bitsandbytes before 0.43.2 (July 2024), which keeps
                                                                     inputs of products for backward (its pull 1270)

Only weights of linear layers are quantised, without the one that scores a vocabulary (transformers'
`llm_int8_skip_modules`); embeddings and norms are not, either.

What a product allocates (bitsandbytes/autograd/_functions.py, 0.50): four bits are dequantised to the format of the
product, forward and backward, one layer at a time; so are GPTQ's and AWQ's. Eight bits multiply int8 copies of the
input into int32 sums forward, and dequantise the weight to the format of the input backward; the input is kept for
that. The forward product of eight bits is timed in half, with the weight read as if it were dequantised. Where only
weights have eight bits (`w8`), they are dequantised as four bits are.

What a product starts besides (`forward_launches`, `backward_launches`): libraries that quantise inputs by operators of
PyTorch, one after another, without a compiler. torchao's tensors go through Python's dispatch for each of them (scale
of the input, cast, transposes, scaled product); SDNQ rotates the input, finds its scale and rounds it, and dequantises
for the gradient. Counted as the seconds that a product takes longer than without, divided by those of a launch, on the
U-Nets of Stable Diffusion 1.x and SDXL (SimpleTuner's sweep: 185 and 750 products on an H100, which takes as long as an
L40S): 1.2 and 1.3 ms forward, none backward (torchao); 0.8 forward and 0.7 backward (SDNQ); launches of 62 µs.

The results of bitsandbytes' layers have the format of their input (`Linear4bit.forward`). That matters because of what
PEFT's `prepare_model_for_kbit_training` does: everything that bitsandbytes left in half becomes float32, so that the
residual stream, and what layers make of it, is in float32 (`casts_rest`). GPTQ's and AWQ's models stay in half.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from epochcast.describe.graph.half_precision import ADAPTED, LIKE
from epochcast.describe.graph.language_model import head_weights
from epochcast.describe.graph.op import Gradient, Op, Parameter, Phase
from epochcast.describe.graph.op_kinds import Copy, HostLoop, Matmul, View
from epochcast.describe.graph.precision import Method, Precision, precision_with
from epochcast.describe.graph.tensor import DType, Tensor
from epochcast.errors import BadInput, UnknownName

FOUR, EIGHT = 4, 8
NOT_QUANTISED = "none"
BLOCK, NESTED_BLOCK = 64, 256
"""Values that share a scale, and scales that share one (bitsandbytes' defaults for four bits)."""
GROUP = 128
"""Input values that share a scale and a zero (`group_size` of GPTQ's and AWQ's published models)."""


@dataclass(frozen=True, slots=True)
class BaseFormat:
    """`casts_rest`: what is not quantised becomes float32. `answers_alike`: results have the format of the input.
    `keeps_input`: the input of a product waits for the backward pass. `has_double_scales`: scales are quantised, too;
    `has_order`: an index for every input; `multiplies_bytes`: forward products are of 8-bit integers. `…_launches`:
    kernels that the host starts for a product besides those that are listed.
    """

    name: str
    bits: int
    label: str
    casts_rest: bool
    answers_alike: bool
    keeps_input: bool = False
    has_double_scales: bool = False
    has_order: bool = False
    multiplies_bytes: bool = False
    forward_launches: int = 0
    backward_launches: int = 0

    def stored_bytes(self, tensor: Tensor) -> int:
        """A weight with its scales."""
        values, columns = tensor.elements, tensor.shape[-1]
        packed = -(-values * self.bits // 8)
        if self.bits == EIGHT:
            return packed + DType.FLOAT32.bytes * (values // columns)
        if self.casts_rest:  # bitsandbytes
            scales = -(-values // BLOCK)
            nested = scales + DType.FLOAT32.bytes * -(-scales // NESTED_BLOCK)
            return packed + (nested if self.has_double_scales else DType.FLOAT32.bytes * scales)
        groups = -(-values // GROUP)
        order = DType.INT32.bytes * columns if self.has_order else 0
        return packed + DType.FLOAT16.bytes * groups + -(-groups * self.bits // 8) + order


_BITSANDBYTES = {"casts_rest": True, "answers_alike": True}
_GROUPED = {"casts_rest": False, "answers_alike": False}
BASES: Mapping[str, BaseFormat] = {
    base.name: base
    for base in (
        BaseFormat("nf4", FOUR, "4-bit base (NF4)", **_BITSANDBYTES),
        BaseFormat("nf4-dq", FOUR, "4-bit base (NF4, double quantisation)", has_double_scales=True, **_BITSANDBYTES),
        BaseFormat("nf4-old", FOUR, "4-bit base (NF4, old bitsandbytes)", keeps_input=True, **_BITSANDBYTES),
        BaseFormat("int8", EIGHT, "8-bit base (LLM.int8())", keeps_input=True, multiplies_bytes=True, **_BITSANDBYTES),
        BaseFormat("w8", EIGHT, "8-bit base (weights alone)", **_GROUPED),
        BaseFormat("sdnq", EIGHT, "8-bit base (SDNQ)", forward_launches=12, backward_launches=11, **_GROUPED),
        BaseFormat("fp8", EIGHT, "8-bit base (torchao fp8)", forward_launches=20, **_GROUPED),
        BaseFormat("gptq", FOUR, "4-bit base (GPTQ)", has_order=True, **_GROUPED),
        BaseFormat("awq", FOUR, "4-bit base (AWQ)", **_GROUPED),
    )
}
OF_BITS: Mapping[int, BaseFormat] = {FOUR: BASES["nf4"], EIGHT: BASES["int8"]}
"""What bitsandbytes keeps in so many bits."""


def find_base(name: str) -> str:
    """The name of a format, or of none, as we call it."""
    key = name.strip().casefold().replace("_", "-")
    if key != NOT_QUANTISED and key not in BASES:
        raise UnknownName("quantised base", name, (NOT_QUANTISED, *BASES))
    return key


def joined_base(quantize: str, *, four_bit: bool, eight_bit: bool, is_old: bool = False) -> str:
    """One format of three options that say it: `four_bit` is nf4 unless `quantize` names another of four bits.
    `is_old`: the libraries are those of before July 2024.
    """
    base = _joined(quantize, four_bit=four_bit, eight_bit=eight_bit)
    return "nf4-old" if is_old and base == "nf4" else base


def _joined(quantize: str, *, four_bit: bool, eight_bit: bool) -> str:
    base = find_base(quantize)
    if four_bit and eight_bit:
        raise BadInput("`four_bit` and `eight_bit` exclude each other")
    bits = FOUR if four_bit else EIGHT if eight_bit else None
    if bits is None:
        return base
    if base == NOT_QUANTISED:
        return OF_BITS[bits].name
    if BASES[base].bits != bits:
        raise BadInput(f"`quantize` {base} is not kept in {bits} bits")
    return base


def precision_of_base(precision: str, weights: str | None, base: str) -> Precision:
    """The precision of a step with a quantised base, as the usual trainer runs it: under autocast, what is not
    quantised in float32 (PEFT with bitsandbytes) or in half (GPTQ, AWQ). Weights that are given count: `bf16` is pure.
    """
    asked = precision_with(precision, weights)
    is_half = asked.products in _HALVES and asked.method in (Method.STORED, Method.AUTOCAST)
    if base == NOT_QUANTISED or weights is not None or not is_half:
        return asked
    half = _HALVES[asked.products]
    return precision_with(f"amp_{half}", "fp32" if BASES[base].casts_rest else half)


_HALVES = {DType.FLOAT16: "fp16", DType.BFLOAT16: "bf16"}


def with_quantised_base(
    ops: Iterable[Op], parameters: Iterable[Parameter], base: BaseFormat, products: DType
) -> tuple[Op, ...]:
    """The step with the frozen weights of linear layers quantised; `products` is the format of products."""
    all_ops = tuple(ops)
    frozen = {p.name for p in parameters if not p.trainable and len(p.tensor.shape) > 1}
    linear, elsewhere = set[str](), set[str]()
    for op in all_ops:
        (linear if isinstance(op.kind, Matmul) else elsewhere).update(t.name for t in (*op.inputs, *op.weights))
    heads = head_weights(all_ops)
    # Beside quantised layers PEFT leaves the cast of the input to autocast (peft/tuners/lora/bnb.py, gptq.py).
    all_ops = tuple(replace(op, kind=View()) if op.kind == View(ADAPTED) else op for op in all_ops)
    return with_packed(all_ops, dict.fromkeys((frozen & linear) - elsewhere - heads, base), products)


def with_packed(
    all_ops: Iterable[Op], packed: Mapping[str, BaseFormat], products: DType | None = None
) -> tuple[Op, ...]:
    """The step with these weights quantised, by their names; without `products` those are in the weights' own."""
    new_ops: list[Op] = []
    product_inputs: dict[str, Tensor] = {}  # the input of the product with a weight, by the weight's name
    for op in all_ops:
        weight = next((t for t in (*op.inputs, *op.weights) if t.name in packed), None)
        if weight is None or op.phase is Phase.UPDATE:
            new_ops.append(op)
            continue
        base = packed[weight.name]
        if op.gradient is Gradient.NONE:
            product_inputs[weight.name] = op.inputs[0]
        elif base.keeps_input and weight.name in product_inputs:
            new_ops.append(_keep_until(op, product_inputs[weight.name]))
        new_ops.extend(_unpacked_product(op, weight, base, products))
    return tuple(new_ops)


def _unpacked_product(op: Op, weight: Tensor, base: BaseFormat, products: DType | None) -> list[Op]:
    """The product with the weight in front of it, and for eight bits what the product itself allocates."""
    copy, new_ops = _dequantised(op, weight, base, products)
    inputs, weights_read = (_reading_copy(side, copy, weight) for side in (op.inputs, op.weights))
    outputs, behind = op.outputs, list[Op]()
    if op.gradient is Gradient.NONE and op.phase is Phase.FORWARD:
        if base.multiplies_bytes:
            scratch = _int8_scratch(op)
            new_ops.append(Op(f"{op.name}.quantize", Copy("quantize"), op.inputs[:1], scratch, (), op.phase, op.layer))
            behind.append(Op(f"{op.name}.summed", View("kept"), scratch, scratch[:1], (), op.phase, op.layer))
        if base.answers_alike:
            outputs = (replace(op.output, name=f"{op.output.name}@product"),)
            like = (outputs[0], op.inputs[0])
            behind.append(Op(f"{op.name}.alike", View(LIKE), like, op.outputs, (), op.phase, op.layer))
    return [*_started(op, base), *new_ops, replace(op, inputs=inputs, weights=weights_read, outputs=outputs), *behind]


def _started(op: Op, base: BaseFormat) -> list[Op]:
    """What the library starts for the product besides."""
    count = base.forward_launches if op.gradient is Gradient.NONE else base.backward_launches
    if not count:
        return []
    name = f"{op.name}.library"
    done = Tensor((1,), DType.INT32, name)
    return [Op(name, HostLoop(once=count, reads_back=False), op.inputs[:1], (done,), (), op.phase, op.layer)]


def _dequantised(op: Op, weight: Tensor, base: BaseFormat, products: DType | None) -> tuple[Tensor, list[Op]]:
    """The copy of a weight that a product reads, and the ops that write it: from half where the product is wider."""
    stored = Tensor((base.stored_bytes(weight),), DType.UINT8, weight.name)
    name = f"{weight.name}@written:{op.name}"
    target = weight.dtype if products is None or products.bytes < DType.FLOAT16.bytes else products
    half = weight.copy(name, target if target.bytes == DType.FLOAT16.bytes else DType.FLOAT16)
    ops = [Op(f"{op.name}.dequantize", Copy("cast"), (stored,), (half,), (), op.phase, op.layer)]
    if half.dtype is target:
        return half, ops
    wide = weight.copy(f"{name}:wide", target)
    return wide, [*ops, Op(f"{op.name}.written", Copy("cast"), (half,), (wide,), (), op.phase, op.layer)]


def _int8_scratch(op: Op) -> tuple[Tensor, Tensor]:
    """The input in int8 and the sums in int32."""
    return (
        Tensor(op.inputs[0].shape, DType.INT8, f"{op.name}.int8"),
        Tensor(op.output.shape, DType.INT32, f"{op.name}.int32"),
    )


def _keep_until(op: Op, product_input: Tensor) -> Op:
    """An op that runs nothing: it keeps the tensor in memory until here."""
    saved = product_input.copy(f"{product_input.name}@kept", product_input.dtype)
    return Op(f"{op.name}.kept", View("kept"), (product_input,), (saved,), (), op.phase, op.layer)


def _reading_copy(tensors: tuple[Tensor, ...], copy: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
    return tuple(replace(copy, shape=t.shape) if t.name == weight.name else t for t in tensors)
