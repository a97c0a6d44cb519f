"""Transformers, recurrent networks, recommenders against what was published: parameters to the unit, flops to 1 %."""

from importlib.util import find_spec
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.every import every

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.capture.zoo.decoder import decoder
from epochcast.describe.capture.zoo.dlrm import KAGGLE_ROWS, TERABYTE_ROWS
from epochcast.describe.capture.zoo.encoder import bert
from epochcast.describe.capture.zoo.sequences import SEQUENCES
from epochcast.describe.graph.backward import differentiable
from epochcast.describe.graph.op import Graph, Phase
from epochcast.describe.graph.op_kinds import Attention, Elementwise, Loss, Matmul
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.tensor import DType, grad
from epochcast.errors import BadInput, UnknownName


def transformer_xl(layers: int, width: int, tokens: int, clusters: tuple[int, ...], narrowing: int = 1) -> float:
    """Per layer 2T states are projected thrice, 2T distances once for both samples of the batch, tokens once; three
    products of attention; d → 4d → d. All tokens are scored against 19,997 words, of the next clusters only their own;
    narrow words need a projection, when they are read and when they are scored.
    """
    layer = 2 * 2 * tokens * (3 + 1 / 2) * width**2 + 2 * tokens * width**2 + 3 * 2 * 2 * tokens**2 * width
    layer += 2 * tokens * 8 * width**2
    widths = [width // narrowing**index for index in range(4)]
    words = (19_997, 20_000, 160_000, 67_738)
    scored = (tokens, *clusters[1:])
    scores = sum(2 * t * w * d for t, w, d in zip(scored, words, widths, strict=True))
    if narrowing > 1:
        scores += sum(2 * (t + c) * width * d for t, c, d in zip(scored, clusters, widths, strict=True))
    return float(layers * layer + scores) / 1e9


class Published(NamedTuple):
    """`gflops` are billions of flops of matrix work in one sample's forward pass; a multiply-add is two."""

    parameters: int
    gflops: float
    source: str


def dense(layers: int, width: int, tokens: int, *, logits: int = 0) -> float:
    """2·N·T + 4·L·T²·d with N = 12·L·d² (Kaplan et al. 2020, table 1), and 2·T·d·V where there are logits."""
    return (2 * 12 * layers * width**2 * tokens + 4 * layers * tokens**2 * width + 2 * tokens * width * logits) / 1e9


def llama(layers: int, width: int, key_width: int, ffn: int, vocabulary: int, tokens: int) -> float:
    """2·T·(2d² + 2d·d_kv + 3d·f) + 4·T²·d per layer, and the logits."""
    weights = 2 * width**2 + 2 * width * key_width + 3 * width * ffn
    return (layers * (2 * tokens * weights + 4 * tokens**2 * width) + 2 * tokens * width * vocabulary) / 1e9


TORCHVISION = "torchvision 0.28, meta of the weights: num_params, _ops in multiply-adds"
DEIT = "Touvron et al. 2021, table 1: 5M and 22M; timm's results list 5.72M, 1.26 GMAC and 22.05M, 4.61 GMAC"
HUB = "Hugging Face transformers, parameters of the network in the checkpoint's configuration"
HAND = "by hand, below"

PUBLISHED = {
    "vit_ti_16": Published(5_717_416, 2 * 1.26, DEIT),
    "vit_s_16": Published(22_050_664, 2 * 4.61, DEIT),
    "vit_b_16": Published(86_567_656, 2 * 17.564, TORCHVISION),
    "vit_b_32": Published(88_224_232, 2 * 4.409, TORCHVISION),
    "vit_l_16": Published(304_326_632, 2 * 61.555, TORCHVISION),
    "vit_l_32": Published(306_535_400, 2 * 15.378, TORCHVISION),
    "swin_t": Published(28_288_354, 2 * 4.491, TORCHVISION),
    "swin_s": Published(49_606_258, 2 * 8.741, TORCHVISION),
    "swin_b": Published(87_768_224, 2 * 15.431, TORCHVISION),
    "bert_base": Published(109_482_240, dense(12, 768, 512), HUB),
    "bert_base_mlm": Published(109_514_298, dense(12, 768, 512, logits=30522 + 768), HUB),
    "bert_base_pretraining": Published(110_106_428, dense(12, 768, 512, logits=30522 + 768), HUB),
    "bert_base_masked": Published(110_106_428, dense(12, 768, 512, logits=(30522 + 768) * 80 // 512), HUB),
    "bert_base_classification": Published(109_483_778, dense(12, 768, 512), HUB),
    "bert_base_squad": Published(108_893_186, dense(12, 768, 512), HUB),
    "bert_large": Published(335_141_888, dense(24, 1024, 512), HUB),
    "bert_large_mlm": Published(335_174_458, dense(24, 1024, 512, logits=30522 + 1024), HUB),
    "bert_large_pretraining": Published(336_226_108, dense(24, 1024, 512, logits=30522 + 1024), HUB),
    "bert_large_masked": Published(336_226_108, dense(24, 1024, 512, logits=(30522 + 1024) * 80 // 512), HUB),
    "bert_large_classification": Published(335_143_938, dense(24, 1024, 512), HUB),
    "bert_large_squad": Published(334_094_338, dense(24, 1024, 512), HUB),
    "gpt2": Published(124_439_808, dense(12, 768, 1024, logits=50257), HUB),
    "gpt2_medium": Published(354_823_168, dense(24, 1024, 1024, logits=50257), HUB),
    "gpt2_large": Published(774_030_080, dense(36, 1280, 1024, logits=50257), HUB),
    "gpt2_xl": Published(1_557_611_200, dense(48, 1600, 1024, logits=50257), HUB),
    "gpt3_xl": Published(2_879_554_560, dense(24, 3072, 2048, logits=50257), HAND),
    "gpt3_1_3b": Published(1_315_723_264, dense(24, 2048, 2048, logits=50257), HAND),
    "gpt3_2_7b": Published(2_651_553_280, dense(32, 2560, 2048, logits=50257), HAND),
    "opt_125m": Published(125_239_296, dense(12, 768, 2048, logits=50272), HUB),
    "opt_1_3b": Published(1_315_758_080, dense(24, 2048, 2048, logits=50272), HUB),
    "opt_2_7b": Published(2_651_596_800, dense(32, 2560, 2048, logits=50272), HUB),
    "llama2_7b": Published(6_738_415_616, llama(32, 4096, 4096, 11008, 32000, 4096), HUB),
    "llama2_13b": Published(13_015_864_320, llama(40, 5120, 5120, 13824, 32000, 4096), HUB),
    "llama2_70b": Published(68_976_648_192, llama(80, 8192, 1024, 28672, 32000, 4096), HUB),
    "llama3_8b": Published(8_030_261_248, llama(32, 4096, 1024, 14336, 128256, 8192), HUB),
    "llama3_70b": Published(70_553_706_496, llama(80, 8192, 1024, 28672, 128256, 8192), HUB),
    "llama3_2_1b": Published(1_235_814_400, llama(16, 2048, 512, 8192, 128256, 8192), HUB),
    "llama3_2_3b": Published(3_212_749_824, llama(28, 3072, 1024, 8192, 128256, 8192), HUB),
    "tinyllama_1_1b": Published(1_100_048_384, llama(22, 2048, 256, 5632, 32000, 2048), HUB),
    "mistral_7b": Published(7_241_732_096, llama(32, 4096, 1024, 14336, 32000, 4096), HUB),
    "t5_small": Published(60_506_624, 71.605, HUB + "; flops " + HAND),
    "t5_base": Published(222_903_552, 257.194, HUB + "; flops " + HAND),
    "switch_xl_4": Published(5_267_615_744, 2816.927, HAND),
    "transformer": Published(63_082_496, 4.067, "Vaswani et al. 2017, table 3: 65M; " + HAND),
    "transformer_big": Published(214_245_376, 13.774, "Vaswani et al. 2017, table 3: 213M; " + HAND),
    "deepspeech2": Published(41_187_968, 51.853, HAND),
    "transformer_algoperf": Published(133_591_040, 73.14866, HAND),
    "conformer_algoperf": Published(32_321_536, 2 * 39.748608, HAND),
    "conformer_algoperf_layernorm": Published(32_321_536, 2 * 39.748608, HAND),
    "deepspeech_algoperf": Published(15_237_632, 2 * 30.199808, HAND),
    "dit_xl_2": Published(675_129_632 - 256 * 1152, 2 * 118.64, "Peebles & Xie 2023, table 1; positions are constant"),
    "dlrm_algoperf": Published(539_267_457, 0.004972288, HAND),
    "gnmt": Published(160_671_297, 8.162, "MLPerf, GNMT v2: 160M; " + HAND),
    "lstm_lm": Published(66_034_000, 3.57, "Zaremba et al. 2014, section 4.1: 66M; " + HAND),
    "lstm": Published(66_034_000, 3.57, "the same"),
    "dlrm": Published(540_677_217, 0.000972, "Naumov et al. 2019: about 540M; " + HAND),
    "dlrm_mlperf": Published(24_036_595_969, 0.004919, "MLPerf: 24 billion; " + HAND),
    "ncf": Published(31_832_577, 0.000213, HAND),
    "ncf_ml1m": Published(1_602_657, 0.000086144, HAND),
    "lstm_wikitext2": Published(13_987_678, 0.510692, HAND),
    "transformer_multi30k": Published(45_750_784, 2.95951, HAND),
    "transformer_xl_base": Published(
        191_696_384, transformer_xl(16, 512, 192, (154, 10, 24, 4)), "192 million; " + HAND
    ),
    "transformer_xl_large": Published(283_882_912, transformer_xl(18, 1024, 384, (308, 20, 47, 9), 4), HAND),
}

every_network = every("name", PUBLISHED)


def graph(name: str, batch: int = 1, *input_shape: int) -> Graph:
    return zoo_model(name, input_shape or None).graph(batch)


def matrix_flops(made: Graph) -> int:
    return sum(op.work.flops for op in made.ops if op.op_class.is_matrix)


def test_the_table_holds_every_network() -> None:
    pairs = {"clip_vit_b_32", "clip_vit_b_16", "clip_vit_l_14"}  # held by tests of Hub ids
    assert set(PUBLISHED) | pairs == set(SEQUENCES)


@every_network
def test_parameters_are_the_published_ones(name: str) -> None:
    assert graph(name).parameter_count == PUBLISHED[name].parameters, PUBLISHED[name].source


@every_network
def test_forward_flops_are_the_published_ones(name: str) -> None:
    flops = matrix_flops(graph(name, 2)) / 2
    assert flops == pytest.approx(PUBLISHED[name].gflops * 1e9, rel=0.01), PUBLISHED[name].source


@every_network
def test_every_parameter_gets_a_gradient(name: str) -> None:
    trace = zoo_model(name).trace(Recipe(4, mode="forward_backward"))
    made = {tensor.name for op in trace.ops for tensor in op.outputs}
    assert [p.name for p in trace.parameters if grad(p.tensor).name not in made] == []
    assert trace.opaque == ()


@every_network
def test_training_is_about_three_forward_passes(name: str) -> None:
    """Two products backward for each forward, none for the image; fused attention makes its scores again (2.5)."""
    flops = zoo_model(name).trace(Recipe(4, mode="forward_backward")).flops
    assert 2.95 <= flops["matrix"] / flops["forward"] <= 3.25


# Counts nobody published to the unit, from the tables of the papers.


def gpt_count(layers: int, width: int, positions: int) -> int:
    """Tokens and positions; per layer 12·d² weights and 13·d biases and norms; the last norm."""
    return (50257 + positions) * width + layers * (12 * width**2 + 13 * width) + 2 * width


@pytest.mark.parametrize(
    ("name", "layers", "width", "paper"), [("gpt3_1_3b", 24, 2048, 1.3e9), ("gpt3_2_7b", 32, 2560, 2.7e9)]
)
def test_gpt3_counts_follow_from_table_2_1(name: str, layers: int, width: int, paper: float) -> None:
    assert graph(name).parameter_count == gpt_count(layers, width, 2048) == pytest.approx(paper, rel=0.03)


def test_gpt3_xl_keeps_the_heads_of_table_2_1_and_says_so() -> None:
    """24 heads of 128 are 3,072 wide; the table's 2,048 would need 16."""
    made = graph("gpt3_xl")
    assert made.parameter_count == gpt_count(24, 24 * 128, 2048)
    assert "3,072" in made.notes[0]


def test_the_translation_transformer_follows_from_section_5_1() -> None:
    """A shared table of 37,000; attention 4d²+4d, feed-forward 2df+f+d, norms 2d each; six layers on both sides."""

    def count(d: int, f: int) -> int:
        attention, feed_forward, norm = 4 * d * d + 4 * d, 2 * d * f + f + d, 2 * d
        encoder, decoder_ = attention + feed_forward + 2 * norm, 2 * attention + feed_forward + 3 * norm
        return 37000 * d + 6 * (encoder + decoder_)

    assert graph("transformer").parameter_count == count(512, 2048) == pytest.approx(65e6, rel=0.03)
    assert graph("transformer_big").parameter_count == count(1024, 4096) == pytest.approx(213e6, rel=0.01)


def test_transformer_flops_by_hand() -> None:
    """2·T per weight of the layers and the output; 4·T²·d for each of 18 attentions. T = 32."""
    per_layer = (4 * 512**2 + 2 * 512 * 2048) + (8 * 512**2 + 2 * 512 * 2048)
    by_hand = 2 * 32 * (6 * per_layer + 37000 * 512) + 18 * 4 * 32**2 * 512
    assert matrix_flops(graph("transformer")) == by_hand


@pytest.mark.parametrize(
    ("name", "layers", "d", "inner", "ffn"), [("t5_small", 6, 512, 512, 2048), ("t5_base", 12, 768, 768, 3072)]
)
def test_t5_flops_by_hand(name: str, layers: int, d: int, inner: int, ffn: int) -> None:
    """Three attentions and two feed-forward layers per pair of layers, T = 512 on both sides, 32,128 words."""
    by_hand = 2 * 512 * (layers * (3 * 4 * d * inner + 2 * 2 * d * ffn) + d * 32128) + 3 * layers * 4 * 512**2 * inner
    assert matrix_flops(graph(name)) == by_hand == pytest.approx(PUBLISHED[name].gflops * 1e9, rel=1e-4)


def test_switch_xl_4_by_hand() -> None:
    """T5 3B's shape (d 1024, 32 heads of 128, feed-forward 16384, 24+24 layers), four experts in every second layer."""
    attention, feed_forward = 4 * 1024 * 4096, 2 * 1024 * 16384
    norms = (24 * 2 + 1 + 24 * 3 + 1) * 1024
    experts = 24 * (4 * feed_forward + 4 * 1024)
    count = 32128 * 1024 + 72 * attention + 24 * feed_forward + experts + norms + 2 * 32 * 32
    assert graph("switch_xl_4").parameter_count == count


def test_experts_are_filled_to_their_capacity() -> None:
    """Of 512 tokens each of four experts takes 64, so a mixture costs half a feed-forward layer, and the router."""
    attention = 2 * 512 * 4 * 1024 * 4096 + 4 * 512**2 * 4096
    feed_forward = 2 * 2 * 1024 * 16384
    mixture = 4 * 64 * feed_forward + 2 * 512 * 1024 * 4
    by_hand = 72 * attention + 24 * 512 * feed_forward + 24 * mixture + 2 * 512 * 1024 * 32128
    assert matrix_flops(graph("switch_xl_4")) == by_hand


def test_short_sequences_leave_experts_room() -> None:
    """Of 16 tokens each of four experts takes four."""
    wi = next(op for op in graph("switch_xl_4", 3, 16).ops if op.layer.endswith("expert_0.wi"))
    assert wi.output.shape == (3 * 4, 16384)


def test_deepspeech2_by_hand() -> None:
    """161 frequencies leave 81 and 41; directions are added, so every GRU but the first reads 800."""
    convolutions = (32 * 41 * 11 + 32) + (32 * 32 * 21 * 11 + 32) + 2 * 64
    gru = [2 * (3 * 800 * (width + 800) + 2 * 3 * 800) for width in (32 * 41, 800, 800, 800, 800)]
    assert graph("deepspeech2").parameter_count == convolutions + sum(gru) + 5 * 2 * 800 + 800 * 29


def test_deepspeech2_flops_by_hand() -> None:
    """Ten seconds are 1,001 frames, 501 behind the first convolution; 2 flops per weight and place it is used at."""
    convolutions = 41 * 11 * 32 * (81 * 501) + 32 * 21 * 11 * 32 * (41 * 501)
    gru = sum(2 * 3 * 800 * (width + 800) for width in (32 * 41, 800, 800, 800, 800))
    assert matrix_flops(graph("deepspeech2")) == 2 * (convolutions + 501 * (gru + 800 * 29))


def test_deepspeech2_sees_every_second_frame() -> None:
    made = graph("deepspeech2", 2, 1, 161, 400)
    assert made.outputs[0].shape == (2, 200, 29)
    assert Loss("ctc") in [op.kind for op in zoo_model("deepspeech2").trace(Recipe(4)).ops]


def test_algoperfs_translation_transformer_by_hand() -> None:
    """Attention is 4d² + 4d, twice in a decoder layer, feed-forward 2d² + 2d, norms 2d; 256 tokens."""
    d, tokens, words = 1024, 256, 32_000
    attention, feed_forward = 4 * d * d + 4 * d, 2 * d * d + 2 * d
    layers = 6 * (3 * attention + 2 * feed_forward + 5 * 2 * d)
    assert graph("transformer_algoperf").parameter_count == layers + words * d
    macs = tokens * (6 * (3 * 4 + 2 * 2) * d * d + words * d) + 6 * 3 * 2 * tokens**2 * d
    assert matrix_flops(graph("transformer_algoperf")) == 2 * macs


def test_algoperfs_speech_networks_by_hand() -> None:
    """2,000 frames of 80 frequencies become 500 of 512 features; 1,024 word pieces."""
    d, frames = 512, 500
    shared = 9 * d + d + 9 * d * d + d + 20 * d * d + d + 2 * d + 1024 * d + 1024
    shared_macs = 1000 * 40 * 9 * d + frames * 20 * 9 * d * d + frames * (20 * d * d + 1024 * d)
    halves, attention = 2 * (8 * d * d + 5 * d + 2 * d), 4 * d * d + 4 * d + 2 * d
    block = halves + attention + 3 * (d * d + d) + 5 * d + 4 * d + 2 * d
    assert graph("conformer_algoperf").parameter_count == shared + 4 * block
    macs = shared_macs + 4 * (frames * (23 * d * d + 5 * d) + 2 * frames**2 * d)
    assert matrix_flops(graph("conformer_algoperf")) == 2 * macs
    lstm = 2 * (4 * 256 * (d + 256) + 2 * 4 * 256)
    assert graph("deepspeech_algoperf").parameter_count == shared + 4 * (lstm + 2 * d) + 3 * (d * d + 3 * d)
    macs = shared_macs + frames * (4 * 2 * 4 * 256 * (d + 256) + 3 * d * d)
    assert matrix_flops(graph("deepspeech_algoperf")) == 2 * macs


def test_algoperfs_recommender_by_hand() -> None:
    """One table; 27 vectors of 128, whose 378 products with each other and themselves go on with the first."""
    bottom = 13 * 512 + 512 * 256 + 256 * 128
    top = 506 * 1024 + 1024 * 1024 + 1024 * 512 + 512 * 256 + 256
    biases = 512 + 256 + 128 + 1024 + 1024 + 512 + 256 + 1
    assert graph("dlrm_algoperf").parameter_count == 4_194_304 * 128 + bottom + top + biases
    assert matrix_flops(graph("dlrm_algoperf")) == 2 * (bottom + top + 27 * 27 * 128)


def test_a_diffusion_transformer_by_hand() -> None:
    """28 blocks of 18d² + 15d with their steering, 256 tokens of d = 1,152; patches of 16 in, 32 out."""
    d, tokens = 1152, 256
    block = 6 * d * d + 6 * d + 4 * d * d + 4 * d + 8 * d * d + 5 * d
    ends = 16 * d + d + 256 * d + d + d * d + d + 1001 * d + 2 * d * d + 2 * d + 32 * d + 32
    assert graph("dit_xl_2").parameter_count == 28 * block + ends
    macs = 28 * (6 * d * d + tokens * 12 * d * d + 2 * tokens**2 * d) + tokens * 48 * d + 256 * d + 3 * d * d
    assert matrix_flops(graph("dit_xl_2")) == 2 * macs


def test_lstm_language_model_by_hand() -> None:
    """Two layers of 4 gates, 1500 wide, two biases each; 10,000 words in and out; 35 words of 2 flops per weight."""
    layers = 2 * (4 * 1500 * 3000 + 2 * 4 * 1500)
    made = graph("lstm_lm")
    assert made.parameter_count == 10000 * 1500 + layers + 1500 * 10000 + 10000
    assert matrix_flops(made) == 35 * 2 * (2 * 4 * 1500 * 3000 + 1500 * 10000)


def test_gnmt_by_hand() -> None:
    """One shared table of 32,320; one bidirectional and seven other LSTMs of 1,024 or 2,048 inputs; the attention."""

    def lstm(width: int) -> int:
        return 4 * 1024 * (width + 1024) + 2 * 4 * 1024

    encoder = 2 * lstm(1024) + lstm(2048) + 2 * lstm(1024)
    decoder_ = lstm(1024) + 3 * lstm(2048)
    attention = 2 * 1024**2 + 1024 + 1024 + 1
    assert graph("gnmt").parameter_count == 32320 * 1024 + encoder + decoder_ + attention + 1024 * 32320 + 32320


def test_gnmt_flops_by_hand() -> None:
    """32 words on each side: 2 flops per weight and word; for each of 32x32 pairs two products with a vector."""
    encoder = 4 * 1024 * (2 * 2048 + 3072 + 2 * 2048)
    decoder_ = 4 * 1024 * (2048 + 3 * 3072)
    words = 32 * (encoder + decoder_ + 2 * 1024**2 + 1024 * 32320)
    assert matrix_flops(graph("gnmt")) == 2 * (words + 32 * 32 * 2 * 1024)


@pytest.mark.parametrize(
    ("name", "rows", "bottom", "top"),
    [
        ("dlrm", KAGGLE_ROWS, (13, 512, 256, 64, 16), (367, 512, 256, 1)),
        ("dlrm_mlperf", TERABYTE_ROWS, (13, 512, 256, 128), (479, 1024, 1024, 512, 256, 1)),
    ],
)
def test_dlrm_is_its_tables_and_two_small_networks(
    name: str, rows: tuple[int, ...], bottom: tuple[int, ...], top: tuple[int, ...]
) -> None:
    """27 vectors have 351 pairs; with the dense vector they enter the top network."""
    weights = sum(a * b for sizes in (bottom, top) for a, b in pairwise(sizes))
    biases = sum(bottom[1:]) + sum(top[1:])
    made = graph(name)
    assert made.parameter_count == sum(rows) * bottom[-1] + weights + biases
    assert matrix_flops(made) == 2 * weights + 2 * 27 * 27 * bottom[-1]


def test_criteo_has_the_known_number_of_categories() -> None:
    assert (len(KAGGLE_ROWS), sum(KAGGLE_ROWS)) == (26, 33_762_577)
    assert (len(TERABYTE_ROWS), sum(TERABYTE_ROWS)) == (26, 187_767_399)


def test_ncf_by_hand() -> None:
    """Factors of 64, feed-forward embeddings of 128, layers 256-256-128-64, one logit on 64 + 64."""
    tables = (138493 + 26744) * (64 + 128)
    assert graph("ncf").parameter_count == tables + (256 * 257) + (128 * 257) + (64 * 129) + 129


def test_ncf_on_a_million_ratings_by_hand() -> None:
    """Factors of 32, feed-forward embeddings of 128, layers 256-128-64-32, one logit on 32 + 32."""
    tables = (6040 + 3706) * (32 + 128)
    assert graph("ncf_ml1m").parameter_count == tables + (128 * 257) + (64 * 129) + (32 * 65) + 65
    assert matrix_flops(graph("ncf_ml1m")) == 2 * (128 * 256 + 64 * 128 + 32 * 64 + 64)


def test_the_word_language_model_example_by_hand() -> None:
    """Tables of 33,278 words on both sides, two LSTM layers of 200 with two biases, a bias per word."""
    assert graph("lstm_wikitext2").parameter_count == 2 * 33278 * 200 + 33278 + 2 * 4 * 200 * (400 + 2)
    assert matrix_flops(graph("lstm_wikitext2")) == 2 * 35 * (2 * 4 * 200 * 400 + 200 * 33278)


def test_a_smaller_vocabulary_is_all_that_multi30k_changes() -> None:
    large, small = graph("transformer"), graph("transformer_multi30k")
    assert large.parameter_count - small.parameter_count == (37000 - 3149) * 512
    assert matrix_flops(large) - matrix_flops(small) == 2 * 32 * (37000 - 3149) * 512


# How they run.


def functions(made: Graph, layer: str) -> list[str]:
    return [op.kind.function for op in made.ops if op.layer.startswith(layer) and isinstance(op.kind, Elementwise)]


def test_gpt2_writes_its_gelu_out_in_eight_kernels() -> None:
    activation = functions(graph("gpt2"), "transformer.h.0.mlp.act")
    assert activation == ["scale", "pow", "scale", "add", "scale", "tanh", "add", "mul"]


def test_scaling_by_a_constant_needs_nothing_saved() -> None:
    ops = zoo_model("gpt2", (16,)).trace(Recipe(4, mode="forward_backward")).ops
    scalings = [op for op in ops if op.kind == Elementwise("scale") and op.phase is Phase.BACKWARD]
    assert {len(op.inputs) for op in scalings} == {1}


def test_gpt2_stores_its_weights_in_by_out() -> None:
    product = next(op for op in graph("gpt2").ops if op.layer == "transformer.h.0.attn.c_attn")
    assert product.kind == Matmul(transpose_b=False)
    assert product.weights[0].shape == (768, 2304)


def test_llama_shares_keys_and_values_between_heads() -> None:
    attention = next(op for op in graph("llama3_8b", 2, 64).ops if isinstance(op.kind, Attention))
    assert [t.shape for t in attention.inputs] == [(2, 32, 64, 128), (2, 8, 64, 128), (2, 8, 64, 128)]
    assert attention.kind == Attention(causal=True)


def test_repeating_shared_heads_keeps_the_flops_of_eager_attention() -> None:
    """Forward QKᵀ and PV, backward twice that: 12·T²·d per layer."""
    make = zoo_model("tinyllama_1_1b", (64,))
    eager = make.trace(Recipe(2, mode="forward_backward", attention="eager")).flops["matrix"]
    fused = make.trace(Recipe(2, mode="forward_backward")).flops["matrix"]
    scores_again = 2 * 22 * 2 * 64**2 * 2048
    assert fused - eager == scores_again


def test_language_models_read_integers_and_count_sequences() -> None:
    made = graph("gpt2", 4, 128)
    assert made.inputs[0].shape == (4, 128)
    assert made.inputs[0].dtype is DType.INT64
    assert (made.unit, made.units_per_sample) == ("samples", 128)
    assert made.outputs[0].shape == (4, 128, 50257)


def test_the_loss_of_a_language_model_is_over_every_token_and_word() -> None:
    trace = zoo_model("bert_base_mlm", (128,)).trace(Recipe(4))
    loss = next(op for op in trace.ops if op.layer == "loss")
    assert loss.inputs[0].shape == (4, 128, 30522)


def test_tied_outputs_add_to_one_gradient() -> None:
    ops = zoo_model("gpt2", (16,)).trace(Recipe(4, mode="forward_backward")).ops
    sums = [op for op in ops if op.name.endswith("accumulate") and op.output.shape == (50257, 768)]
    assert len(sums) == 1


def test_a_decoder_can_be_made_to_measure() -> None:
    """Two tables of 100x16; per layer 16·(16 + 8 + 8 + 16) + 3·16·32 weights and two norms; the last norm."""
    tiny = decoder(2, (8,), name="tiny", layers=3, width=16, heads=4, kv_heads=2, ffn=32, vocabulary=100)
    assert tiny.parameter_count == 2 * 1600 + 3 * (16 * 48 + 3 * 16 * 32 + 32) + 16
    tied = decoder(2, (8,), name="tiny", layers=3, width=16, heads=4, kv_heads=2, ffn=32, vocabulary=100, tied=True)
    assert tiny.parameter_count - tied.parameter_count == 1600


@settings(max_examples=20, deadline=None)
@given(
    layers=st.integers(1, 3),
    each=st.sampled_from([8, 16]),
    groups=st.integers(1, 3),
    per_group=st.integers(1, 3),
    tokens=st.integers(1, 40),
)
def test_any_decoder_costs_two_flops_per_weight_and_token_besides_attention(
    layers: int, each: int, groups: int, per_group: int, tokens: int
) -> None:
    heads = groups * per_group
    width = heads * each
    made = decoder(
        1, (tokens,), name="any", layers=layers, width=width, heads=heads, kv_heads=groups, ffn=24, vocabulary=50
    )
    weights = sum(p.elements for p in made.parameters if len(p.tensor.shape) == 2) - 50 * width
    assert matrix_flops(made) == 2 * tokens * weights + 4 * layers * tokens**2 * width


@settings(max_examples=15, deadline=None)
@given(name=st.sampled_from(["vit_ti_16", "swin_t", "bert_base", "t5_small", "gnmt", "dlrm"]), batch=st.integers(1, 64))
def test_flops_grow_with_the_batch(name: str, batch: int) -> None:
    assert matrix_flops(graph(name, batch)) == batch * matrix_flops(graph(name, 1))


def test_parameters_of_other_image_sizes_differ_by_their_positions() -> None:
    """384 pixels make 577 tokens instead of 197; torchvision lists 86,567,656 at 224 for the same network."""
    assert graph("vit_b_16", 1, 3, 384, 384).parameter_count - 86_567_656 == (577 - 197) * 768


def test_swin_pads_to_whole_windows() -> None:
    """At 256 pixels the first stage is 64 wide, padded to 70: a hundred windows."""
    made = graph("swin_t", 1, 3, 256, 256)
    qkv = next(op for op in made.ops if op.layer == "features.1.0.attn.qkv")
    assert qkv.output.shape == (100, 49, 288)


def test_everything_is_reached_by_a_gradient_except_inputs() -> None:
    made = graph("switch_xl_4", 2, 32)
    reached = differentiable(made)
    assert made.outputs[0].name in reached
    assert not {t.name for t in made.inputs} & reached


# What a user may get wrong.


def test_too_many_tokens_name_the_number_of_positions() -> None:
    with pytest.raises(BadInput, match="bert_base has 512 positions, got 1024 tokens"):
        graph("bert_base", 1, 1024)


def test_an_image_is_no_number_of_tokens() -> None:
    with pytest.raises(BadInput, match="gpt2 takes one number of tokens as its input, got 3x224x224"):
        graph("gpt2", 1, 3, 224, 224)


def test_an_image_must_divide_into_patches() -> None:
    with pytest.raises(BadInput, match="vit_b_16 cuts images into 16x16 patches, got 3x225x224"):
        graph("vit_b_16", 1, 3, 225, 224)


def test_a_recommender_takes_no_image() -> None:
    with pytest.raises(BadInput, match="dlrm takes one number of dense features, got 3x224x224"):
        graph("dlrm", 1, 3, 224, 224)


def test_key_value_heads_must_divide_the_heads() -> None:
    with pytest.raises(BadInput, match="tiny: 3 key-value heads do not divide 4 heads"):
        decoder(1, (8,), name="tiny", layers=1, width=16, heads=4, kv_heads=3, ffn=32, vocabulary=100)


def test_a_width_must_divide_into_heads() -> None:
    with pytest.raises(BadInput, match="odd: 7 heads do not divide a width of 16"):
        bert(1, (8,), name="odd", layers=1, width=16, heads=7)


def test_an_unknown_head_names_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="no BERT head called 'ner'; known: classification, masked, mlm"):
        bert(1, name="mine", layers=1, width=16, heads=4, head="ner")


# Against torchvision and Hugging Face, on `meta`.


@pytest.fixture(scope="module")
def torchvision() -> Any:
    """Also where its compiled half does not load (beside a CPU torch): none of it is needed."""
    pytest.importorskip("torch")
    if find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed")
    from epochcast.describe.capture.torch.torchvision_shim import import_torchvision

    return import_torchvision()


@pytest.fixture(scope="module")
def transformers(torchvision: Any) -> Any:
    """Hugging Face imports torchvision where it is installed, so that comes first."""
    return pytest.importorskip("transformers")


def shapes(model: Any) -> dict[str, tuple[int, ...]]:
    return {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}


def our_shapes(name: str) -> dict[str, tuple[int, ...]]:
    return {p.name: p.tensor.shape for p in graph(name).parameters}


@every("name", ["vit_b_16", "vit_b_32", "vit_l_16", "vit_l_32", "swin_t", "swin_s", "swin_b"])
def test_parameters_have_torchvisions_names_and_shapes(name: str, torchvision: Any) -> None:
    import torch

    with torch.device("meta"):
        assert our_shapes(name) == shapes(torchvision.models.get_model(name, weights=None))


BERT_LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
OPT = {
    "hidden_size": 2048,
    "num_hidden_layers": 24,
    "num_attention_heads": 32,
    "ffn_dim": 8192,
    "word_embed_proj_dim": 2048,
}
LLAMA3 = {"vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336, "num_key_value_heads": 8}
LLAMA3_2 = {"vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 8192, "num_key_value_heads": 8}
TINY = {"intermediate_size": 5632, "hidden_size": 2048, "num_hidden_layers": 22, "num_key_value_heads": 4}
T5_BASE = {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12}
SWITCH = {"d_model": 1024, "d_kv": 128, "d_ff": 16384, "num_layers": 24, "num_decoder_layers": 24, "num_heads": 32}
SWITCH |= {"num_sparse_encoder_layers": 12, "num_sparse_decoder_layers": 12, "num_experts": 4, "expert_capacity": 64}
HUGGING_FACE: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bert_base": ("BertModel", "BertConfig", {}),
    "bert_base_mlm": ("BertForMaskedLM", "BertConfig", {}),
    "bert_base_classification": ("BertForSequenceClassification", "BertConfig", {}),
    "bert_base_squad": ("BertForQuestionAnswering", "BertConfig", {}),
    "bert_large_pretraining": ("BertForPreTraining", "BertConfig", BERT_LARGE),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", {}),
    "gpt2_medium": ("GPT2LMHeadModel", "GPT2Config", {"n_layer": 24, "n_embd": 1024, "n_head": 16}),
    "opt_1_3b": ("OPTForCausalLM", "OPTConfig", OPT),
    "llama2_7b": ("LlamaForCausalLM", "LlamaConfig", {}),
    "llama3_8b": ("LlamaForCausalLM", "LlamaConfig", LLAMA3),
    "llama3_2_1b": (
        "LlamaForCausalLM",
        "LlamaConfig",
        {**LLAMA3_2, "num_hidden_layers": 16, "tie_word_embeddings": True},
    ),
    "tinyllama_1_1b": ("LlamaForCausalLM", "LlamaConfig", TINY),
    "mistral_7b": ("MistralForCausalLM", "MistralConfig", {}),
    "t5_small": ("T5ForConditionalGeneration", "T5Config", {}),
    "t5_base": ("T5ForConditionalGeneration", "T5Config", T5_BASE),
    "switch_xl_4": ("SwitchTransformersForConditionalGeneration", "SwitchTransformersConfig", SWITCH),
}


def hugging_face(transformers: Any, name: str) -> Any:
    import torch

    network, config, settings_ = HUGGING_FACE[name]
    with torch.device("meta"):
        return getattr(transformers, network)(getattr(transformers, config)(**settings_))


@every("name", HUGGING_FACE)
def test_parameters_have_hugging_faces_names_and_shapes(name: str, transformers: Any) -> None:
    assert our_shapes(name) == shapes(hugging_face(transformers, name))


@pytest.mark.parametrize("name", ["bert_base_mlm", "gpt2", "tinyllama_1_1b", "t5_small"])
def test_flops_are_those_torch_counts_forward_and_backward(name: str, transformers: Any) -> None:
    """On `meta` torch runs attention step by step: eager agrees exactly, fused differs by the scores it makes again."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    ids = torch.zeros(2, 128, dtype=torch.long, device="meta")
    model = hugging_face(transformers, name).train()
    both = {"decoder_input_ids": ids} if name == "t5_small" else {}
    with FlopCounterMode(display=False) as counter:
        logits = model(ids, **both).logits
        forward = counter.get_total_flops()
        logits.sum().backward()
    for attention, tolerance in (("eager", 1e-9), ("flash", 0.01)):
        ours = zoo_model(name, (128,)).trace(Recipe(2, mode="forward_backward", attention=attention)).flops
        assert ours["forward"] == pytest.approx(forward, rel=1e-9)
        assert ours["matrix"] == pytest.approx(counter.get_total_flops(), rel=tolerance)


def test_a_head_of_masked_tokens_has_logits_for_a_sixth_of_them() -> None:
    """20 of 128 tokens, 80 of 512, as Google's scripts mask; the parameters are those of the whole head."""
    for tokens, masked in ((128, 20), (512, 80)):
        whole, part = (zoo_model(f"bert_base_{head}", (tokens,)).graph(2) for head in ("pretraining", "masked"))
        assert part.parameter_count == whole.parameter_count
        assert (whole.outputs[0].shape, part.outputs[0].shape) == ((2, tokens, 30522), (2, masked, 30522))
