"""BERT (Devlin et al. 2019), with Hugging Face's names and layers.

`head` is what stands on the encoder:

    pooler          `BertModel`: the body with its pooler, no loss (109,482,240 parameters for base)
    mlm             `BertForMaskedLM`: logits over the vocabulary for every token, tied to the word embeddings
    pretraining     `BertForPreTraining`: masked tokens and next sentence, what the paper, MLPerf and NVIDIA train
    masked          the same with logits of the masked tokens alone, 20 of 128, which Google's, NVIDIA's and MLPerf's
                    scripts gather first
    classification  `BertForSequenceClassification` with two labels
    squad           `BertForQuestionAnswering`: a start and an end position

Masked-token losses of all other heads are over all tokens, as Hugging Face computes them.
"""

from contextlib import nullcontext

from epochcast.describe.capture.zoo.attention_layers import join_heads, sequence_length, split_heads, token_ids
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.op_kinds import Gather, Matmul
from epochcast.describe.graph.tensor import DType, Tensor
from epochcast.errors import UnknownName

HEADS = ("pooler", "mlm", "pretraining", "masked", "classification", "squad")
# max_predictions_per_seq of Google's and NVIDIA's scripts: 20 of 128 tokens, 80 of 512.
_MASKED_FRACTION = 20 / 128


def bert(
    batch: int,
    input_shape: tuple[int, ...] | None = None,
    *,
    name: str,
    layers: int,
    width: int,
    heads: int,
    head: str = "pooler",
    vocabulary: int = 30522,
    positions: int = 512,
) -> Graph:
    """Post-norm encoder of `layers`, feed-forward four times as wide, exact gelu, dropout 0.1."""
    if head not in HEADS:
        raise UnknownName("BERT head", head, HEADS)
    length = sequence_length(name, input_shape, positions, positions)
    b = Builder(name, batch)
    with nullcontext() if head == "pooler" else b.scope("bert"):
        x = _embedded(b, length, width, vocabulary, positions)
        for index in range(layers):
            with b.scope(f"encoder.layer.{index}"):
                x = _layer(b, x, heads)
        pooled = _pooled(b, x) if head not in ("mlm", "squad") else x
    match head:
        case "pooler":
            return b.finish((x, pooled), loss="none", units_per_sample=length)
        case "classification":
            outputs: tuple[Tensor, ...] = (b.linear(b.dropout(pooled), 2, name="classifier"),)
        case "squad":
            logits = b.split(b.linear(x, 2, name="qa_outputs"), 2)
            outputs = tuple(b.copy("contiguous", t, t.shape[:2], name="qa_outputs") for t in logits)
        case "mlm":
            outputs = (_word_logits(b, x),)
        case _:
            with b.scope("cls"):
                relation = b.linear(pooled, 2, name="seq_relationship")
            outputs = (_word_logits(b, _masked(b, x) if head == "masked" else x), relation)
    return b.finish(outputs, units_per_sample=length)


def _embedded(b: Builder, length: int, width: int, vocabulary: int, positions: int) -> Tensor:
    with b.scope("embeddings"):
        x = b.embedding(token_ids(b, length), vocabulary, width, name="word_embeddings")
        kinds = b.embedding(token_ids(b, length, "token_type_ids"), 2, width, name="token_type_embeddings")
        places = b.constant("position_ids", (1, length), DType.INT64)
        x = b.add(b.add(x, kinds), b.embedding(places, positions, width, name="position_embeddings"))
        return b.dropout(b.layer_norm(x, name="LayerNorm"))


def _layer(b: Builder, x: Tensor, heads: int) -> Tensor:
    width = x.shape[-1]
    with b.scope("attention.self"):
        q, k, v = (split_heads(b, b.linear(x, width, name=part), heads) for part in ("query", "key", "value"))
        y = join_heads(b, b.attention(q, k, v, dropout=True, padded=True))
    with b.scope("attention.output"):
        x = b.layer_norm(b.add(b.dropout(b.linear(y, width, name="dense")), x), name="LayerNorm")
    y = b.elementwise("gelu", b.linear(x, 4 * width, name="intermediate.dense"))
    with b.scope("output"):
        return b.layer_norm(b.add(b.dropout(b.linear(y, width, name="dense")), x), name="LayerNorm")


def _pooled(b: Builder, x: Tensor) -> Tensor:
    first = b.view(x, (x.shape[0], x.shape[-1]), "select")
    return b.elementwise("tanh", b.linear(first, x.shape[-1], name="pooler.dense"))


def _masked(b: Builder, x: Tensor) -> Tensor:
    """The masked tokens of every sample, or room for them."""
    batch, length, width = x.shape
    count = max(1, round(length * _MASKED_FRACTION))
    places = b.input("masked_lm_positions", (count,), DType.INT64)
    return b.op(Gather(), [x, places], [(batch, count, width)], name="masked")[0]


def _word_logits(b: Builder, x: Tensor) -> Tensor:
    """A dense layer, gelu and norm, then the word embeddings as a linear layer with a bias of its own."""
    table = b.parameters["bert.embeddings.word_embeddings.weight"].tensor
    with b.scope("cls.predictions"):
        x = b.elementwise("gelu", b.linear(x, x.shape[-1], name="transform.dense"))
        x = b.layer_norm(x, name="transform.LayerNorm")
        bias = b.parameter("bias", (table.shape[0],))
        shape = (*x.shape[:-1], table.shape[0])
        return b.op(Matmul(transpose_b=True), [x], [shape], weights=[table, bias], name="decoder")[0]
