"""Rounds that nobody saw: a stretch of g of them costs log g.

    z(t+g) = F z(t) + ξ,   F = Γ^g,   Cov ξ = Σ_(s<g) Γ^s Q (Γ^s)ᵀ

by repeated squaring. What EM adds up over the rounds of a stretch are slopes of the likelihood
(Fisher's identity): each step's density is tilted by exp(−½ zᵀAz), and stretches are composed with
A, Γ and Q kept as variables, so that by the chain rule, at A = 0,

    ∂ℓ/∂A = −½ S₀₀,   ∂ℓ/∂Γ = Q⁻¹(S₁₀ − Γ S₀₀),   ∂ℓ/∂Q = ½ Q⁻¹(R − gQ)Q⁻¹,

where R = S₁₁ − Γ S₁₀ᵀ − S₁₀ Γᵀ + Γ S₀₀ Γᵀ. Solved for the sums, nothing is divided by Q.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["Stretch", "bits_of", "steps", "sums"]


class Stretch(NamedTuple):
    """The law of z(t+g) given z(t), tilted to first order in A."""

    transition: Any
    """F, d × d."""
    process_cov: Any
    """Cov ξ, d × d."""
    tilt: Any
    """J of exp(−½ zᵀJz), d × d: zero at A = 0."""
    size: Any
    """Logarithm of the factor in front."""


def bits_of(waits: np.ndarray) -> np.ndarray:
    """Binary digits of the lengths, the lowest first, u × b.

    Example:
        >>> bits_of(np.array([1, 6])).tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]
    """
    count = max(int(waits.max()).bit_length(), 1)
    return ((waits[:, None] >> np.arange(count)) & 1).astype(np.float64)


def _after(one: Stretch, two: Stretch) -> Stretch:
    """One stretch, and another after it."""
    F, Q, J, size = one
    shift = Q @ two.tilt
    moved = two.transition @ Q
    return Stretch(
        two.transition @ (F - shift @ F),
        moved @ two.transition.T + two.process_cov - moved @ two.tilt @ moved.T,
        J + F.T @ two.tilt @ F,
        size + two.size - 0.5 * jnp.trace(shift),
    )


def _long(transition: Any, process_cov: Any, tilt: Any, bits: Any) -> Stretch:
    """A stretch of as many rounds as the bits say."""
    d = transition.shape[0]
    zero = jnp.zeros((d, d))

    def double(carry: Any, bit: Any) -> Any:
        whole, power = carry
        longer = _after(whole, power)
        whole = Stretch(*(jnp.where(bit > 0, b, a) for a, b in zip(whole, longer, strict=True)))
        return (whole, _after(power, power)), None

    one = Stretch(transition, process_cov, tilt, jnp.zeros(()))
    nothing = Stretch(jnp.eye(d), zero, zero, jnp.zeros(()))
    return jax.lax.scan(double, (nothing, one), bits)[0][0]


def steps(transition: Any, process_cov: Any, bits: Any) -> tuple[Any, Any]:
    """F and Cov ξ of every length, u × d × d each."""
    tilt = jnp.zeros_like(transition)
    each = jax.vmap(lambda row: _long(transition, process_cov, tilt, row))(bits)
    return each.transition, each.process_cov


def sums(
    transition: Any, process_cov: Any, bits: Any, X: Any, Y: Any, M: Any, count: Any
) -> tuple[Any, Any, Any]:
    """What EM adds up over all rounds of the stretches of every length, u × d × d each.

    Args:
        transition: Γ.
        process_cov: Q.
        bits: u × b.
        X: Σ E z zᵀ where stretches of a length begin, u × d × d.
        Y: Σ E z ρᵀ, ρ = (Cov ξ)⁻¹ ξ, likewise.
        M: Σ (Cov ξ)⁻¹ − E ρρᵀ, likewise.
        count: how many stretches of each length there are, u.

    Returns:
        S₀₀, S₁₀ − Γ S₀₀ and R − gQ.
    """

    def pulled(row: Any, X: Any, Y: Any, M: Any, count: Any) -> Any:
        def law(Γ: Any, Q: Any, A: Any) -> Stretch:
            return _long(Γ, Q, A, row)

        _, pull = jax.vjp(law, transition, process_cov, jnp.zeros_like(transition))
        slope, noise, tilt = pull(Stretch(Y.T, -0.5 * M, -0.5 * X, count))
        square = -(tilt + tilt.T)
        return square, process_cov @ slope, process_cov @ (noise + noise.T) @ process_cov

    return jax.vmap(pulled)(bits, X, Y, M, count)
