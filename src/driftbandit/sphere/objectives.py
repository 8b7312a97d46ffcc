"""What is maximized over the unit sphere: ⟨b, m⟩ + u, in the coordinates of `frame`.

IDEA (P15) and lookahead depend on b through x = b / √(bᵀSb), by what its reward moves:

    IDEA        u = ‖T x‖
    lookahead   u = Σ_h w_h (E ‖m_h + T_h x ω‖ − ‖m_h‖),   m_h = Γ^h ẑ,   T_h = Γ^(h−1) T

Each objective has ``scores(rows)`` for many vectors at once and, for climbing, ``slopes(rows)``:
the gradient of u, which is at right angles to b, since u does not depend on b's length, and its
Hessian between tangents, ∇²u + b ∇uᵀ + ∇u bᵀ, which takes b to zero.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

from driftbandit.arrays import Array, dots, namespace
from driftbandit.gaussian import lengths
from driftbandit.kalman import Belief
from driftbandit.model import LGDS
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
    def points(self) -> int:
        """How many of every curve to look at."""

    def rough(self) -> Objective:
        """The same to five digits, where that takes less time."""

    def scores(self, rows: Array) -> Array:
        """⟨b, m⟩ + u of every row."""

    def slopes(self, rows: Array) -> tuple[Array, Array]:
        """Gradient, n × d, and Hessian between tangents, n × d × d, of u at every row."""


def _outer(left: Array, right: Array) -> Array:
    return left[:, :, None] * right[:, None, :]


def _by_row(x: Array, root: Array, frame: Frame, slope: Array, bent: Array) -> tuple[Array, Array]:
    """`Objective.slopes` from gradient and Hessian by x = b/√s, s = bᵀSb.

    With z = Sx, γ = ⟨x, ∇⟩, p = ∇ − γz, k = ∇²x and ℓ = ½(⟨x, k⟩ + γ)z − k − p the chain rule gives

        ∇_b = p/√s,   ∇²_b = (∇² − γS + zℓᵀ + ℓzᵀ)/s,   b ∇_bᵀ = x pᵀ.
    """
    z = x * frame.seen
    along = dots(x, slope)[:, None]
    p = slope - along * z
    k = (bent @ x[:, :, None])[:, :, 0]
    ell = (0.5 * (dots(x, k)[:, None] + along)) * z - k - p
    square = (root * root)[:, None]
    cross = _outer(z / square, ell) + _outer(x, p)
    hessian = (bent - along[:, :, None] * frame.diagonal) / square[:, :, None]
    return p / root[:, None], hessian + cross + cross.mT


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
    def points(self) -> int:
        """Enough: with 8 to 24 the same vector in all but one of 18 600 random cases."""
        return 8

    def rough(self) -> Idea:
        """Itself."""
        return self

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
        k = z * (2 / s)[:, None] + gradient * (0.5 / u)[:, None]
        cross = _outer(gradient, k - rows)
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
    """D_h = T_hᵀ T_h, d × H × d: C_h = xᵀ D_h x."""

    coarse: bool = False
    """Whether lengths have five digits instead of ten."""

    @property
    def points(self) -> int:
        """More than IDEA needs, since its curves come near the best vector only."""
        return 10

    def rough(self) -> Lookahead:
        """With lengths of five digits."""
        return self._replace(coarse=True)

    @property
    def forms(self) -> Array:
        """Σ w_h D_h, and the same of moves across m_h alone, which lengthen it most."""
        xp = namespace(self.squares)
        squares = xp.where(self.squares > 0, self.squares, 1.0)
        every = self._mixed(self.weights[None, :])[0]
        unit = self.crosses / xp.sqrt(squares)[:, None]
        along = (unit * self.weights[:, None]).T @ unit
        return xp.stack([every, every - along])

    def _mixed(self, shares: Array) -> Array:
        """Σ_h s_h D_h of every row of shares, n × H: n × d × d."""
        return namespace(shares).permute_dims(shares @ self.squared, (1, 0, 2))

    def _three(self, x: Array) -> tuple[tuple[Array, Array, Array], Array]:
        """A, B, C of every x and h, n × H, and D_h x, n × H × d."""
        xp = namespace(x)
        d, H, _ = self.squared.shape
        seen = xp.reshape(x @ xp.reshape(self.squared, (d, H * d)), (x.shape[0], H, d))
        return (self.squares, x @ self.crosses.T, dots(seen, x[:, None, :])), seen

    def scores(self, rows: Array) -> Array:
        """⟨b, m⟩ + u of every row."""
        xp = namespace(rows)
        x = rows / xp.sqrt((rows * rows) @ self.frame.seen)[:, None]
        three, _ = self._three(x)
        gained = lengths.expected_length(*three, coarse=self.coarse) - xp.sqrt(self.squares)
        return rows @ self.frame.mean + gained @ self.weights

    def slopes(self, rows: Array) -> tuple[Array, Array]:
        """By x, with y = D_h x: ∇ = Σ w (f_B e + 2f_C y), and ∇² by the chain rule once more."""
        xp = namespace(rows)
        root = xp.sqrt((rows * rows) @ self.frame.seen)
        x = rows / root[:, None]
        three, y = self._three(x)
        f_b, f_c, f_bb, f_bc, f_cc = lengths.derivatives(*three, self.weights, self.coarse)
        e, twice = self.crosses, 2 * f_c
        slope = f_b @ e + (twice[:, None, :] @ y)[:, 0, :]
        mixed = (2 * f_bc)[:, :, None]
        left = f_bb[:, :, None] * e + mixed * y
        right = mixed * e + (4 * f_cc)[:, :, None] * y
        bent = self._mixed(twice) + e.T @ left + y.mT @ right
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
    return Lookahead(frame, weights, xp.stack(squares), xp.stack(crosses), xp.stack(forms, axis=1))
