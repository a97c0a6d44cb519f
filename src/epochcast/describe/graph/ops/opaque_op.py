"""Operators without a formula."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, ClassVar

from epochcast.describe.graph.checked_values import checked_like
from epochcast.describe.graph.op import Kind, Op
from epochcast.describe.graph.op_registry import register_op, registered_class

# Ops' worth of launches per row of decompositions, whose steps wait for each other. Assumed from their algorithms
# (Golub & Van Loan, Matrix Computations): Householder steps, and sweeps over them where eigenvalues are iterated.
_LAUNCHES_PER_ROW = {
    **dict.fromkeys(("_linalg_svd", "linalg_eig", "_linalg_eigvals"), 4),
    "_linalg_eigh": 2,
    **dict.fromkeys(("linalg_qr", "geqrf", "linalg_lu", "linalg_lu_factor_ex", "linalg_lstsq", "linalg_inv_ex"), 1),
    **dict.fromkeys(("_linalg_solve_ex", "_linalg_det", "_linalg_slogdet", "linalg_cholesky_ex"), 1),
}


@register_op
@dataclass(frozen=True, slots=True)
class Opaque(Kind):
    """An operator without a formula. Its bytes are known, its flops are not: costed by bytes, listed in the answer."""

    label: ClassVar[str] = "opaque"
    target: str = "unknown"

    @property
    def title(self) -> str:
        """The name that its framework calls it."""
        return self.target

    def launches(self, op: Op) -> int:
        """One, but for a decomposition: its rows are worked on one after the other."""
        per_row = _LAUNCHES_PER_ROW.get(self.target.removeprefix("aten.").partition(".")[0], 0)
        matrix_shape = op.inputs[0].shape[-2:] if per_row and op.inputs else ()
        return max(1, per_row * min(matrix_shape, default=1))


def kind_named(target: str, attributes: Mapping[str, Any] = MappingProxyType({})) -> Kind:
    """The registered operator that a framework calls `target`, with the attributes it has; else an opaque one."""
    kind = registered_class(target)
    if kind is None:
        return Opaque(target)
    values: dict[str, Any] = {
        field.name: checked_like(field.default, attributes[field.name], f"{target}: {field.name}")
        for field in fields(kind)
        if attributes.get(field.name) is not None
    }
    return kind(**values)
