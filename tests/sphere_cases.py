"""Beliefs and systems for the sphere's tests and benchmark, kind ones and nasty ones."""

import numpy as np

import driftbandit as db
from driftbandit.kalman import Belief

KINDS = (
    "plain",
    "no noise",
    "singular",
    "singular, no noise",
    "zero mean",
    "hard",
    "not normal",
    "wide",
    "wider",
)


PLAYED = ("idea", "kode", "kalman_ucb", "kalman_oracle", "random")


def case(kind, d, rng):
    """A belief and a model of d states."""
    root = rng.standard_normal((d, d))
    cov = root @ root.T / d
    transition = rng.standard_normal((d, d))
    transition *= 0.9 / np.abs(np.linalg.eigvals(transition)).max()
    noise = np.exp(rng.uniform(-3, 2))
    mean = rng.standard_normal(d) * np.exp(rng.uniform(-3, 3))
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    if "no noise" in kind:
        noise = 0.0
    if "singular" in kind:
        root = rng.standard_normal((d, max(1, d // 2)))
        cov = root @ root.T
    if kind == "zero mean":
        mean = 0 * mean
    if kind == "hard":  # the mean says nothing about the leading eigenvector
        lead = np.linalg.eigh(cov)[1][:, -1]
        mean = mean - lead * (lead @ mean)
    if kind == "not normal":
        transition = np.triu(10 * rng.standard_normal((d, d)), 1) + 0.9 * np.eye(d)
    if kind == "wide":
        cov = (turn * 10.0 ** rng.uniform(-8, 4, d)) @ turn.T
        mean = mean * 10.0 ** rng.uniform(-4, 4)
    if kind == "wider":
        cov = (turn * 10.0 ** rng.uniform(-4, 4, d)) @ turn.T
        transition = turn.T @ np.diag(10.0 ** rng.uniform(-3, 0, d)) @ turn
        mean, noise = mean * 10.0 ** rng.uniform(-1, 1), 10.0 ** rng.uniform(-3, 3)
    cov = (cov + cov.T) / 2
    return Belief(mean, cov), db.LGDS(transition, np.eye(d), noise, np.eye(d))


def scores_of(name, belief, model):
    """The policy's own score of every row."""
    bonus = getattr(db.policies, name).bonus
    return lambda rows: rows @ belief.mean + bonus(belief.cov, model, rows)


def _plane():
    rng = np.random.default_rng(8)
    turn = rng.standard_normal((2, 2))
    turn *= 0.9 / np.abs(np.linalg.eigvals(turn)).max()
    return db.LGDS(turn, np.diag([0.5, 1.0]), 0.1, np.diag([2.0, 1.0]), np.array([1.0, -0.5]))


PLANE = _plane()
"""It starts from a mean, so that no first vector ties with its opposite."""
