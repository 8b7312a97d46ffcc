"""What is maximized over the unit sphere: ⟨b, m⟩ + u, in the coordinates of `frame`.

IDEA (P15) and lookahead depend on b through x = b / √(bᵀSb), by what its reward moves:

    IDEA        u = ‖T x‖
    lookahead   u = Σ_h w_h (E ‖m_h + T_h x ω‖ − ‖m_h‖),   m_h = Γ^h ẑ,   T_h = Γ^(h−1) T

Each objective has ``scores(rows)`` for many vectors at once and ``slopes(rows)``, the gradient and
the Hessian of u, for climbing. The gradient of u is at right angles to b: u does not depend on
b's length.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

from driftbandit.arrays import Array, dots, namespace
from driftbandit.kalman import Belief
from driftbandit.model import LGDS
from driftbandit.sphere import lengths
from driftbandit.sphere.frame import Frame

__all__ = ["Idea", "Lookahead", "Objective", "idea", "lookahead"]


class Objective(Protocol):
    """A score of unit vectors."""

    @property
    def frame(self) -> Frame:
        """The belief."""

    @property
    def forms(self) -> Array:
        """Forms D, n × d × d, near whose curves (`path`) the best vector lies."""

    @property
    def exact(self) -> bool:
        """Whether it lies on one of them."""

    def form_at(self, row: Array) -> Array:
        """The form on whose curve b lies, if b is the best vector."""

    def scores(self, rows: Array) -> Array:
        """⟨b, m⟩ + u of every row."""

    def slopes(self, rows: Array) -> tuple[Array, Array]:
        """Gradient, n × d, and Hessian, n × d × d, of u at every row."""


def _outer(left: Array, right: Array) -> Array:
    return left[:, :, None] * right[:, None, :]


def _by_row(x: Array, root: Array, frame: Frame, slope: Array, bent: Array) -> tuple[Array, Array]:
    """Gradient and Hessian by b from those by x = b/√s, s = bᵀSb.

    With z = Sx, γ = ⟨x, ∇⟩, p = ∇ − γz, k = ∇²x and ℓ = ½(⟨x, k⟩ + γ)z − k − p the chain rule gives

        ∇_b = p/√s,   ∇²_b = (∇² − γS + zℓᵀ + ℓzᵀ)/s.
    """
    z = x * frame.seen
    along = dots(x, slope)[:, None]
    p = slope - along * z
    k = (bent @ x[:, :, None])[:, :, 0]
    cross = _outer(z, 0.5 * (dots(x, k)[:, None] + along) * z - k - p)
    hessian = bent - along[:, :, None] * frame.diagonal + cross + cross.mT
    return p / root[:, None], hessian / (root * root)[:, None, None]


class Idea(NamedTuple):
    """u = ‖T x‖ (P15)."""

    frame: Frame
    form: Array
    """TᵀT, d × d."""

    @property
    def forms(self) -> Array:
        """TᵀT alone, whose root u is."""
        return self.form[None, :, :]

    @property
    def exact(self) -> bool:
        """Yes."""
        return True

    def form_at(self, row: Array) -> Array:
        """The same everywhere."""
        return self.form

    def scores(self, rows: Array) -> Array:
        """⟨b, m⟩ + ‖T x‖ of every row."""
        frame = self.frame
        moved = rows @ frame.moves.T
        variance = (rows * rows) @ frame.seen
        return rows @ frame.mean + namespace(rows).sqrt(dots(moved, moved) / variance)

    def slopes(self, rows: Array) -> tuple[Array, Array]:
        """With q = u², z = Sb, s = bᵀSb and C = D − qS: ∇u = Cb/us, zero where u is, and

        ∇²u = C/us − ∇u kᵀ − k ∇uᵀ,   k = 2z/s + ∇u/2u.
        """
        xp = namespace(rows)
        z = rows * self.frame.seen
        s = dots(rows, z)
        seen = rows @ self.form
        q = dots(rows, seen) / s
        u = xp.sqrt(xp.where(q > 0, q, math.inf))
        share = 1 / (u * s)
        gradient = (seen - q[:, None] * z) * share[:, None]
        cross = _outer(gradient, z * (2 / s)[:, None] + gradient * (0.5 / u)[:, None])
        C = self.form - q[:, None, None] * self.frame.diagonal
        return gradient, C * share[:, None, None] - cross - cross.mT


def idea(frame: Frame) -> Idea:
    """IDEA's objective."""
    return Idea(frame, frame.moves.T @ frame.moves)


class Lookahead(NamedTuple):
    """u = Σ_h w_h (E ‖m_h + T_h x ω‖ − ‖m_h‖)."""

    frame: Frame
    weights: Array
    """w_h ≥ 0, H numbers."""
    squares: Array
    """A_h = ‖m_h‖², H numbers."""
    crosses: Array
    """e_h = T_hᵀ m_h, H × d: B_h = ⟨e_h, x⟩."""
    squared: Array
    """D_h = T_hᵀ T_h, H × d × d: C_h = xᵀ D_h x."""

    @property
    def exact(self) -> bool:
        """No: lengths depend on B_h too."""
        return False

    @property
    def forms(self) -> Array:
        """Σ w_h D_h, and the same of moves across m_h alone, which lengthen it most."""
        xp = namespace(self.squares)
        squares = xp.where(self.squares > 0, self.squares, 1.0)
        every = self._mixed(self.weights[None, :])[0]
        along = (self.crosses * (self.weights / squares)[:, None]).T @ self.crosses
        return xp.stack([every, every - along])

    def form_at(self, row: Array) -> Array:
        """Σ w_h (f_C D_h + f_B/(2B_h) e_h e_hᵀ), whose x has the gradient of u, f = E ‖m_h + …‖."""
        xp = namespace(row)
        x = row[None, :] / xp.sqrt((row * row) @ self.frame.seen)
        three, _ = self._three(x)
        length = lengths.with_derivatives(*three)
        still = three[1] == 0
        bend = xp.where(still, 0.0, length.b / xp.where(still, 1.0, 2 * three[1]))
        along = (self.crosses * (bend[0] * self.weights)[:, None]).T @ self.crosses
        return self._mixed(length.c * self.weights)[0] + along

    def _mixed(self, shares: Array) -> Array:
        """Σ_h s_h D_h of every row of shares, n × H: n × d × d."""
        xp = namespace(shares)
        H, d, _ = self.squared.shape
        return xp.reshape(shares @ xp.reshape(self.squared, (H, d * d)), (shares.shape[0], d, d))

    def _three(self, x: Array) -> tuple[tuple[Array, Array, Array], Array]:
        """A, B, C of every x and h, n × H, and D_h x, n × H × d."""
        along = x @ self.crosses.T
        seen = (x[:, None, None, :] @ self.squared)[:, :, 0, :]
        return (self.squares + 0 * along, along, dots(seen, x[:, None, :])), seen

    def scores(self, rows: Array) -> Array:
        """⟨b, m⟩ + u of every row."""
        xp = namespace(rows)
        x = rows / xp.sqrt((rows * rows) @ self.frame.seen)[:, None]
        three, _ = self._three(x)
        gained = lengths.expected_length(*three) - xp.sqrt(self.squares)
        return rows @ self.frame.mean + gained @ self.weights

    def slopes(self, rows: Array) -> tuple[Array, Array]:
        """By x, with y = D_h x: ∇ = Σ w (f_B e + 2f_C y), and ∇² by the chain rule once more."""
        xp = namespace(rows)
        root = xp.sqrt((rows * rows) @ self.frame.seen)
        x = rows / root[:, None]
        three, y = self._three(x)
        _, f_b, f_c, f_bb, f_bc, f_cc = (
            part * self.weights for part in lengths.with_derivatives(*three)
        )
        e = self.crosses
        slope = f_b @ e + 2 * xp.sum(f_c[:, :, None] * y, axis=1)
        left = f_bb[:, :, None] * e + 2 * f_bc[:, :, None] * y
        right = 2 * f_bc[:, :, None] * e + 4 * f_cc[:, :, None] * y
        bent = 2 * self._mixed(f_c) + e.T @ left + y.mT @ right
        return _by_row(x, root, self.frame, slope, bent)


def lookahead(frame: Frame, belief: Belief, model: LGDS, weights: Array) -> Lookahead:
    """Lookahead's objective with weights w_1 … w_H ≥ 0."""
    xp = namespace(frame.mean)
    ahead, moves = belief.mean / frame.unit, frame.moves
    squares, crosses, forms = [], [], []
    for h in range(weights.shape[0]):
        ahead = model.transition @ ahead
        moves = model.transition @ moves if h else moves
        squares.append(ahead @ ahead)
        crosses.append(moves.T @ ahead)
        forms.append(moves.T @ moves)
    return Lookahead(frame, weights, xp.stack(squares), xp.stack(crosses), xp.stack(forms))
