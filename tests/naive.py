"""Slow textbook loops that every fast path of the library is checked against.

Pure NumPy in float64: explicit inverses, explicit loops, no batching, nothing imported from the
library. P1, P5, ... are the project's ids for the paper's items. Notation: transition G (d, d),
process_cov Q (d, d), reward_std sigma, initial_cov Sigma0 (d, d) or None, arms C (k, d), one arm
per row; `mean` and `cov` describe z(t) given the rewards before round t.
"""

import itertools
import math

import numpy as np
import scipy.integrate
import scipy.optimize
import scipy.stats


def highest(expected, bonuses=None):
    """Place of the first score m + u that is the highest but for 256 roundings of the parts."""
    bonuses = np.zeros(len(expected)) if bonuses is None else bonuses
    scores = [m + u for m, u in zip(expected, bonuses, strict=True)]
    sizes = [abs(m) + abs(u) for m, u in zip(expected, bonuses, strict=True)]
    top = int(np.argmax(scores))
    if math.isinf(scores[top]):
        return top
    widths = [256 * 2.0**-52 * (size + sizes[top]) for size in sizes]
    tied = [np.isfinite(x) and scores[top] - x <= w for x, w in zip(scores, widths, strict=True)]
    return tied.index(True)


def random_system(entries, rng, d, k):
    """P20: G = 0.9 T / rho(T), Q = R R', sigma = |r| and the arms, and how many were redrawn."""
    redraws = 0
    T = entries(rng, (d, d))
    while not (radius := max(abs(np.linalg.eigvals(T)))) > 0:
        T, redraws = entries(rng, (d, d)), redraws + 1
    R, r = entries(rng, (d, d)), float(entries(rng, ()))
    arms = entries(rng, (k, d))
    while zero := [i for i in range(k) if not arms[i].any()]:
        arms[zero], redraws = entries(rng, (len(zero), d)), redraws + len(zero)
    return 0.9 / radius * T, R @ R.T, abs(r), arms, redraws


def stationary_cov(transition, process_cov):
    """P3: Z = G Z G' + Q, as the linear system (I - G kron G) vec(Z) = vec(Q)."""
    d = len(transition)
    system = np.eye(d * d) - np.kron(transition, transition)
    return np.linalg.solve(system, process_cov.reshape(d * d)).reshape(d, d)


def state_cov(transition, process_cov, initial_cov, rounds):
    """P3: Z(t+1) = G Z(t) G' + Q, applied `rounds` times from Z(0) = Sigma0."""
    cov = np.array(initial_cov, dtype=float)
    for _ in range(rounds):
        cov = transition @ cov @ transition.T + process_cov
    return cov


def prior_cov(transition, process_cov, initial_cov):
    """P1: covariance of z(0): Sigma0 if given, else the stationary covariance."""
    if initial_cov is not None:
        return np.array(initial_cov, dtype=float)
    return stationary_cov(transition, process_cov)


def observability_gramian(transition, arms_played):
    """P3: sum over tau = 0..n-1 of (G')^tau a_tau a_tau' G^tau."""
    d = len(transition)
    gramian = np.zeros((d, d))
    for tau in range(len(arms_played)):
        power = np.linalg.matrix_power(transition, tau)
        gramian = gramian + power.T @ np.outer(arms_played[tau], arms_played[tau]) @ power
    return gramian


def kalman_step(mean, cov, transition, process_cov, reward_std, arm, reward):
    """P5, the long way: S = a'Pa + sigma^2, K = P a S^-1; correct, then predict.

    z(t|t) = z + K (X - a'z), P(t|t) = P - K a'P; z+ = G z(t|t), P+ = G P(t|t) G' + Q.
    S = 0 means that the reward was known before: K = 0.
    """
    row = arm.reshape(1, -1)
    s = row @ cov @ row.T + reward_std**2
    gain = np.zeros((len(mean), 1))
    if s[0, 0] > 0.0:
        gain = cov @ row.T @ np.linalg.inv(s)
    filtered_mean = mean + gain[:, 0] * (reward - arm @ mean)
    filtered_cov = cov - gain @ row @ cov
    return transition @ filtered_mean, transition @ filtered_cov @ transition.T + process_cov


def riccati_step(cov, transition, process_cov, reward_std, arm):
    """P5: g(P, a) = G P G' + Q - G P a a' P G' / (a'Pa + sigma^2)."""
    s = arm @ cov @ arm + reward_std**2
    predicted = transition @ cov @ transition.T + process_cov
    if s <= 0.0:
        return predicted
    direction = transition @ cov @ arm
    return predicted - np.outer(direction, direction) / s


def log_likelihood(mean, cov, transition, process_cov, reward_std, arms_played, rewards):
    """P5: sum over t of log N(X_t; a_t'z(t|t-1), a_t'P(t|t-1)a_t + sigma^2).

    A reward of variance 0 has no density; it adds nothing.
    """
    total = 0.0
    for t in range(len(rewards)):
        arm = arms_played[t]
        s = arm @ cov @ arm + reward_std**2
        innovation = rewards[t] - arm @ mean
        if s > 0.0:
            total += -0.5 * (math.log(2.0 * math.pi * s) + innovation**2 / s)
        mean, cov = kalman_step(mean, cov, transition, process_cov, reward_std, arm, rewards[t])
    return total


def _joint_states(mean, cov, transition, process_cov, rounds):
    """P1: E z_t = G^t mean, and Cov(z_s, z_t) = Cov(z_s) (G')^(t-s) for s <= t, as two lists."""
    means = [np.linalg.matrix_power(transition, t) @ mean for t in range(rounds)]
    covs = [[None] * rounds for _ in range(rounds)]
    for s in range(rounds):
        own = state_cov(transition, process_cov, cov, s)
        for t in range(s, rounds):
            covs[s][t] = own @ np.linalg.matrix_power(transition, t - s).T
            covs[t][s] = covs[s][t].T
    return means, covs


def joint_log_likelihood(mean, cov, transition, process_cov, reward_std, arms_played, rewards):
    """P1, P5: log N(X; mu, W), W_st = a_s'Cov(z_s, z_t)a_t + sigma^2 [s = t], no recursion."""
    n = len(rewards)
    means, covs = _joint_states(mean, cov, transition, process_cov, n)
    residual = np.zeros(n)
    joint = np.zeros((n, n))
    for s in range(n):
        residual[s] = rewards[s] - arms_played[s] @ means[s]
        for t in range(n):
            joint[s, t] = arms_played[s] @ covs[s][t] @ arms_played[t]
        joint[s, s] += reward_std**2
    _, log_det = np.linalg.slogdet(joint)
    squares = residual @ np.linalg.inv(joint) @ residual
    return -0.5 * (n * math.log(2.0 * math.pi) + log_det + squares)


def smooth(mean, cov, transition, process_cov, reward_std, arms_played, rewards):
    """P1, P5: law of every z_t given ALL rewards, by conditioning one big Gaussian.

    z = all states stacked, X = H z + noise; W = H Cov(z) H' + sigma^2 I;
    E[z|X] = Ez + Cov(z) H' W^-1 (X - H Ez), Cov(z|X) = Cov(z) - Cov(z) H' W^-1 H Cov(z).
    """
    n, d = arms_played.shape
    means, covs = _joint_states(mean, cov, transition, process_cov, n)
    prior_mean = np.concatenate(means)
    prior = np.block(covs)
    read_out = np.zeros((n, n * d))
    for t in range(n):
        read_out[t, t * d : (t + 1) * d] = arms_played[t]
    joint = read_out @ prior @ read_out.T + reward_std**2 * np.eye(n)
    gain = prior @ read_out.T @ np.linalg.inv(joint)
    posterior_mean = prior_mean + gain @ (rewards - read_out @ prior_mean)
    posterior = prior - gain @ read_out @ prior
    smoothed_means = np.zeros((n, d))
    smoothed_covs = np.zeros((n, d, d))
    for t in range(n):
        block = slice(t * d, (t + 1) * d)
        smoothed_means[t] = posterior_mean[block]
        smoothed_covs[t] = posterior[block, block]
    return smoothed_means, smoothed_covs


def riccati_fixed_point(transition, process_cov, reward_std, arms_seen, iterations=5000):
    """P9, P17: P = G P G' + Q - G P C'(C P C' + sigma^2 I)^-1 C P G', iterated from Q + I.

    One row in `arms_seen` gives P_a, all arms give P_A.
    """
    P = process_cov + np.eye(len(transition))
    for _ in range(iterations):
        gain = oracle_gain(P, arms_seen, reward_std)
        P = transition @ (P - gain @ arms_seen @ P) @ transition.T + process_cov
    return P


def oracle_gain(P, arms, reward_std):
    """P9: K = P C'(C P C' + sigma^2 I)^-1, a pseudo-inverse since sigma may be 0."""
    inner = arms @ P @ arms.T + reward_std**2 * np.eye(len(arms))
    return P @ arms.T @ np.linalg.pinv(inner)


# Bonuses u(a | P) of the general form (P12).


def bonus_kode(cov, transition, process_cov, reward_std, arms):
    """P19: u = 0."""
    return np.zeros(len(arms))


def bonus_kalman_ucb(cov, transition, process_cov, reward_std, arms, width=1.0):
    """P13: u = width sqrt(a'Pa)."""
    bonus = np.zeros(len(arms))
    for i in range(len(arms)):
        bonus[i] = width * math.sqrt(max(arms[i] @ cov @ arms[i], 0.0))
    return bonus


def bonus_idea(cov, transition, process_cov, reward_std, arms):
    """P15: u = sqrt(trace(G P a a' P G' / (a'Pa + sigma^2))), 0 if the denominator is 0."""
    bonus = np.zeros(len(arms))
    for i in range(len(arms)):
        s = arms[i] @ cov @ arms[i] + reward_std**2
        if s > 0.0:
            gained = transition @ cov @ np.outer(arms[i], arms[i]) @ cov @ transition.T / s
            bonus[i] = math.sqrt(np.trace(gained))
    return bonus


# Policies: each takes model = (G, Q, sigma, Sigma0), arms (k, d), rewards (n, k), uniforms (n,)
# and the horizon it is told, and returns the n arms it plays. Ties go to the lowest index.


def _typical_cov(transition, process_cov, initial_cov, rounds):
    """P3: Z, the stationary covariance if rho(G) < 1, else Z(rounds)."""
    if np.max(np.abs(np.linalg.eigvals(transition))) < 1.0:
        return stationary_cov(transition, process_cov)
    return state_cov(transition, process_cov, initial_cov, rounds)


def reward_scale(transition, process_cov, reward_std, initial_cov, arms, rounds):
    """P18: R = sqrt(max_a a'Za + sigma^2)."""
    Z = _typical_cov(transition, process_cov, initial_cov, rounds)
    return math.sqrt(max(a @ Z @ a for a in arms) + reward_std**2)


def _scale(model, arms, rounds):
    transition, process_cov, reward_std, initial_cov = model
    return reward_scale(transition, process_cov, reward_std, initial_cov, arms, rounds)


def _play_optimistic(bonus, model, arms, rewards, parameters):
    """P12: a_t = argmax <a, z(t|t-1)> + u(a | P(t|t-1)), then the Kalman step of P5."""
    transition, process_cov, reward_std, initial_cov = model
    mean = np.zeros(len(transition))
    cov = prior_cov(transition, process_cov, initial_cov)
    played = []
    for t in range(len(rewards)):
        u = bonus(cov, transition, process_cov, reward_std, arms, **parameters)
        arm = highest([arms[i] @ mean for i in range(len(arms))], u)
        played.append(arm)
        mean, cov = kalman_step(
            mean, cov, transition, process_cov, reward_std, arms[arm], rewards[t, arm]
        )
    return played


def _play_kode(model, arms, rewards, uniforms, rounds):
    """P19: the general form with u = 0."""
    return _play_optimistic(bonus_kode, model, arms, rewards, {})


def _play_kalman_ucb(model, arms, rewards, uniforms, rounds, width=1.0):
    """P13: the general form with u = width sqrt(a'Pa)."""
    return _play_optimistic(bonus_kalman_ucb, model, arms, rewards, {"width": width})


def _play_idea(model, arms, rewards, uniforms, rounds):
    """P15: the general form with u = |G P a| / sqrt(a'Pa + sigma^2)."""
    return _play_optimistic(bonus_idea, model, arms, rewards, {})


def _play_kalman_oracle(model, arms, rewards, uniforms, rounds):
    """P9: a_t = argmax <a, z~>; z~ <- G z~ + G K (X_t - C z~), X_t all k rewards."""
    transition, process_cov, reward_std, _ = model
    P = riccati_fixed_point(transition, process_cov, reward_std, arms)
    gain = oracle_gain(P, arms, reward_std)
    estimate = np.zeros(len(transition))
    played = []
    for t in range(len(rewards)):
        played.append(highest([a @ estimate for a in arms]))
        innovation = rewards[t] - arms @ estimate
        estimate = transition @ estimate + transition @ gain @ innovation
    return played


def _play_sliding_window_ucb(model, arms, rewards, uniforms, rounds, window=None, delta=0.1):
    """P18: argmax mean_a + sqrt(2 R^2 log(1/delta) / N_a) over rounds t-window..t-1.

    Arms without a play in the window come first. Default window:
    min(N, ceil(2 sqrt(N log N))), at least 1.
    """
    R = _scale(model, arms, rounds)
    if window is None:
        window = max(1, min(rounds, math.ceil(2.0 * math.sqrt(rounds * math.log(rounds)))))
    played = []
    for t in range(len(rewards)):
        index = np.zeros(len(arms))
        for i in range(len(arms)):
            seen = [rewards[s, i] for s in range(max(0, t - window), t) if played[s] == i]
            if len(seen) == 0:
                index[i] = np.inf
            else:
                width = math.sqrt(2.0 * R**2 * math.log(1.0 / delta) / len(seen))
                index[i] = sum(seen) / len(seen) + width
        played.append(highest(index))
    return played


def _play_ucb(model, arms, rewards, uniforms, rounds, delta=0.1):
    """P18: argmax mean_a + sqrt(2 R^2 log(1/delta) / N_a); arms never played come first."""
    return _play_ucb_within(_scale(model, arms, rounds), rewards, delta)


def _play_ucb_within(R, rewards, delta=0.1):
    k = rewards.shape[1]
    counts = np.zeros(k)
    sums = np.zeros(k)
    played = []
    for t in range(len(rewards)):
        index = np.zeros(k)
        for i in range(k):
            if counts[i] == 0:
                index[i] = np.inf
            else:
                width = math.sqrt(2.0 * R**2 * math.log(1.0 / delta) / counts[i])
                index[i] = sums[i] / counts[i] + width
        arm = highest(index)
        counts[arm] += 1
        sums[arm] += rewards[t, arm]
        played.append(arm)
    return played


def _play_discounted_ucb(model, arms, rewards, uniforms, rounds, gamma=None, xi=0.6):
    """argmax mean_a + 2 R sqrt(xi log(sum_b N_b) / N_a), N_a = sum of gamma^(t-s) over plays s.

    t is the last round played, mean_a = sum of gamma^(t-s) X_s / N_a; a log below 0 counts as 0.
    Arms never played come first. Default gamma: 1 - sqrt(1/N) / 4.
    """
    R = _scale(model, arms, rounds)
    if gamma is None:
        gamma = 1.0 - math.sqrt(1.0 / rounds) / 4.0
    played = []
    for t in range(len(rewards)):
        counts = np.zeros(len(arms))
        sums = np.zeros(len(arms))
        for s in range(t):
            counts[played[s]] += gamma ** (t - 1 - s)
            sums[played[s]] += gamma ** (t - 1 - s) * rewards[s, played[s]]
        index = np.zeros(len(arms))
        for i in range(len(arms)):
            if counts[i] == 0:
                index[i] = np.inf
            else:
                log_total = max(math.log(np.sum(counts)), 0.0)
                index[i] = sums[i] / counts[i] + 2.0 * R * math.sqrt(xi * log_total / counts[i])
        played.append(highest(index))
    return played


def _play_rexp3(model, arms, rewards, uniforms, rounds, batch=None, gamma=None):
    """P19: Exp3 restarted every `batch` rounds, on x = clip(1/2 + X/(6R), 0, 1).

    p_a = (1-gamma) w_a / sum w + gamma/k; w_arm *= exp(gamma (x / p_arm) / k).
    D = (G-I) Z (G-I)' + Q, V = N max_a sqrt(a'Da) / (6R),
    batch = ceil((k log k)^(1/3) (N/V)^(2/3)) in [1, N] (N if V = 0),
    gamma = min(1, sqrt(k log k / ((e-1) batch))).
    """
    transition, process_cov, _, initial_cov = model
    k = len(arms)
    R = _scale(model, arms, rounds)
    if batch is None:
        Z = _typical_cov(transition, process_cov, initial_cov, rounds)
        move = transition - np.eye(len(transition))
        D = move @ Z @ move.T + process_cov
        V = rounds * max(math.sqrt(max(a @ D @ a, 0.0)) for a in arms) / (6.0 * R)
        batch = rounds
        if V > 0.0:
            length = (k * math.log(k)) ** (1.0 / 3.0) * (rounds / V) ** (2.0 / 3.0)
            batch = max(1, min(rounds, math.ceil(length)))
    if gamma is None:
        gamma = min(1.0, math.sqrt(k * math.log(k) / ((math.e - 1.0) * batch)))
    played = []
    for t in range(len(rewards)):
        if t % batch == 0:
            weights = np.ones(k)
        p = (1.0 - gamma) * weights / np.sum(weights) + gamma / k
        arm = k - 1
        cumulative = 0.0
        for i in range(k):
            cumulative += p[i]
            if cumulative > uniforms[t]:
                arm = i
                break
        x = min(1.0, max(0.0, 0.5 + rewards[t, arm] / (6.0 * R)))
        weights[arm] *= math.exp(gamma * (x / p[arm]) / k)
        played.append(arm)
    return played


def _play_oful(model, arms, rewards, uniforms, rounds, delta=0.1, ridge=None, bound=None):
    """P19: argmax a'theta + radius sqrt(a' V^-1 a), theta = V^-1 b.

    V = ridge I + sum a a', b = sum a X,
    radius = R sqrt(2 log(sqrt(det V / ridge^d) / delta)) + sqrt(ridge) bound.
    Defaults: ridge = max_a |a|^2, bound = sqrt(trace Z).
    """
    transition, process_cov, _, initial_cov = model
    d = len(transition)
    R = _scale(model, arms, rounds)
    if ridge is None:
        ridge = max(a @ a for a in arms)
    if bound is None:
        bound = math.sqrt(np.trace(_typical_cov(transition, process_cov, initial_cov, rounds)))
    V = ridge * np.eye(d)
    b = np.zeros(d)
    played = []
    for t in range(len(rewards)):
        V_inv = np.linalg.inv(V)
        theta = V_inv @ b
        growth = math.sqrt(np.linalg.det(V / ridge))  # det V / ridge^d without overflow
        radius = R * math.sqrt(2.0 * math.log(growth / delta)) + math.sqrt(ridge) * bound
        arm = highest(arms @ theta, [radius * math.sqrt(a @ V_inv @ a) for a in arms])
        V = V + np.outer(arms[arm], arms[arm])
        b = b + arms[arm] * rewards[t, arm]
        played.append(arm)
    return played


def _play_discounted_linucb(
    model, arms, rewards, uniforms, rounds, delta=0.1, gamma=None, ridge=None, bound=None
):
    """argmax a'theta + radius sqrt(a' V^-1 V2 V^-1 a), theta = V^-1 b, t the last round played.

    V = ridge I + sum gamma^(t-s) a a', V2 the same with gamma^(2(t-s)), b = sum gamma^(t-s) a X,
    radius = sqrt(ridge) bound
             + R sqrt(2 log(1/delta) + d log(1 + L^2 (1-gamma^(2t)) / (ridge d (1-gamma^2)))).
    Defaults: gamma = 1 - min(1/d, (B/(dN))^(2/3)), B = N max_a sqrt(a'Da) / R, D as for rexp3;
    ridge = L^2 = max_a |a|^2, bound = sqrt(trace Z).
    """
    transition, process_cov, _, initial_cov = model
    d = len(transition)
    R = _scale(model, arms, rounds)
    Z = _typical_cov(transition, process_cov, initial_cov, rounds)
    L = max(np.linalg.norm(a) for a in arms)
    if gamma is None:
        move = transition - np.eye(d)
        D = move @ Z @ move.T + process_cov
        B = rounds * max(math.sqrt(max(a @ D @ a, 0.0)) for a in arms) / R
        gamma = 1.0 - min(1.0 / d, (B / (d * rounds)) ** (2.0 / 3.0))
    if ridge is None:
        ridge = L**2
    if bound is None:
        bound = math.sqrt(np.trace(Z))
    played = []
    for t in range(len(rewards)):
        seen = arms[played]
        weights = np.diag([gamma ** (t - 1 - s) for s in range(t)])
        V = ridge * np.eye(d) + seen.T @ weights @ seen
        V2 = ridge * np.eye(d) + seen.T @ weights**2 @ seen
        b = seen.T @ weights @ rewards[range(t), played]
        V_inv = np.linalg.inv(V)
        spread = V_inv @ V2 @ V_inv
        growth = 1.0 + L**2 * (1.0 - gamma ** (2 * t)) / (ridge * d * (1.0 - gamma**2))
        radius = math.sqrt(ridge) * bound
        radius += R * math.sqrt(2.0 * math.log(1.0 / delta) + d * math.log(growth))
        widths = [radius * math.sqrt(a @ spread @ a) for a in arms]
        played.append(highest([a @ V_inv @ b for a in arms], widths))
    return played


def _linear_tuning(model, arms, rounds):
    """d, R, L = max_a |a|, B = N max_a sqrt(a'Da) / R with D as for rexp3, sqrt(trace Z)."""
    transition, process_cov, _, initial_cov = model
    R = _scale(model, arms, rounds)
    Z = _typical_cov(transition, process_cov, initial_cov, rounds)
    move = transition - np.eye(len(transition))
    D = move @ Z @ move.T + process_cov
    B = rounds * max(math.sqrt(max(a @ D @ a, 0.0)) for a in arms) / R
    L = max(np.linalg.norm(a) for a in arms)
    return len(transition), R, L, B, math.sqrt(np.trace(Z))


def _optimistic_ridge(arms, seen, rewards, weights, ridge, radius):
    """argmax a'theta + radius sqrt(a' V^-1 a), V = ridge I + sum w a a', theta = V^-1 sum w a X."""
    V = ridge * np.eye(arms.shape[1])
    b = np.zeros(arms.shape[1])
    for a, x, w in zip(seen, rewards, weights, strict=True):
        V = V + w * np.outer(a, a)
        b = b + w * a * x
    V_inv = np.linalg.inv(V)
    widths = [radius * math.sqrt(a @ V_inv @ a) for a in arms]
    return highest([a @ V_inv @ b for a in arms], widths)


def _play_sliding_window_linucb(
    model, arms, rewards, uniforms, rounds, delta=0.1, window=None, ridge=None, bound=None
):
    """Ridge regression on rounds t-window..t-1.

    radius = sqrt(ridge) bound + R sqrt(d log((1 + window L^2 / ridge) / delta)).
    Defaults: window = ceil((d N / B)^(2/3)) in [d, N]; ridge, bound as for oful.
    """
    d, R, L, B, size = _linear_tuning(model, arms, rounds)
    if window is None:
        window = min(rounds, max(d, math.ceil((d * rounds / B) ** (2.0 / 3.0))))
    ridge = L**2 if ridge is None else ridge
    bound = size if bound is None else bound
    radius = R * math.sqrt(d * math.log((1.0 + window * L**2 / ridge) / delta))
    radius += math.sqrt(ridge) * bound
    played = []
    for t in range(len(rewards)):
        last = range(max(0, t - window), t)
        seen = [arms[played[s]] for s in last]
        paid = [rewards[s, played[s]] for s in last]
        played.append(_optimistic_ridge(arms, seen, paid, np.ones(len(last)), ridge, radius))
    return played


def _play_weighted_linucb(
    model, arms, rewards, uniforms, rounds, delta=0.1, gamma=None, ridge=None, bound=None
):
    """Ridge regression with weights gamma^(t-s), t the last round played; radius of D-LinUCB.

    Defaults: gamma = 1 - min(1/d, max(1/N, sqrt(B / (d N)))); ridge, bound as for oful.
    """
    d, R, L, B, size = _linear_tuning(model, arms, rounds)
    if gamma is None:
        gamma = 1.0 - min(1.0 / d, max(1.0 / rounds, math.sqrt(B / (d * rounds))))
    ridge = L**2 if ridge is None else ridge
    bound = size if bound is None else bound
    played = []
    for t in range(len(rewards)):
        weights = [gamma ** (t - 1 - s) for s in range(t)]
        growth = 1.0 + L**2 * sum(w**2 for w in weights) / (ridge * d)
        radius = math.sqrt(ridge) * bound
        radius += R * math.sqrt(2.0 * math.log(1.0 / delta) + d * math.log(growth))
        seen, paid = arms[played], rewards[range(t), played]
        played.append(_optimistic_ridge(arms, seen, paid, weights, ridge, radius))
    return played


def _play_restarted_linucb(
    model, arms, rewards, uniforms, rounds, delta=0.1, batch=None, ridge=None, bound=None
):
    """Ridge regression on the t - t0 rounds since t0, the last multiple of batch.

    radius = sqrt(ridge) bound + R sqrt(2 log(1/delta) + d log(1 + (t-t0) L^2 / (ridge d))).
    Defaults: batch = floor(d^(1/4) sqrt(N / B)) in [d, N]; ridge, bound as for oful.
    """
    d, R, L, B, size = _linear_tuning(model, arms, rounds)
    if batch is None:
        batch = min(rounds, max(d, math.floor(d**0.25 * math.sqrt(rounds / B))))
    ridge = L**2 if ridge is None else ridge
    bound = size if bound is None else bound
    played = []
    for t in range(len(rewards)):
        since = range(t - t % batch, t)
        growth = 1.0 + len(since) * L**2 / (ridge * d)
        radius = math.sqrt(ridge) * bound
        radius += R * math.sqrt(2.0 * math.log(1.0 / delta) + d * math.log(growth))
        seen = [arms[played[s]] for s in since]
        paid = [rewards[s, played[s]] for s in since]
        played.append(_optimistic_ridge(arms, seen, paid, np.ones(len(since)), ridge, radius))
    return played


def expected_highest(m, s):
    """P7: E max_b (m_b + s_b w), w ~ N(0, 1): between two neighboring crossings one line leads."""
    cuts = {-np.inf, np.inf}
    for b in range(len(m)):
        for c in range(b):
            if s[b] != s[c]:
                cuts.add((m[b] - m[c]) / (s[c] - s[b]))
    cuts = np.array(sorted(cuts))
    inner = np.clip(cuts, cuts[1] - 1 if len(cuts) > 2 else 0, cuts[-2] + 1 if len(cuts) > 2 else 0)
    middles = (inner[:-1] + inner[1:]) / 2
    leaders = np.argmax(m[None, :] + s[None, :] * middles[:, None], axis=1)
    chance = np.diff(scipy.stats.norm.cdf(cuts))
    moment = -np.diff(scipy.stats.norm.pdf(cuts))
    return float(np.sum(m[leaders] * chance + s[leaders] * moment))


def bonus_lookahead(mean, cov, transition, process_cov, reward_std, arms, steps=3, discount=0.8):
    """sum_h discount^(h-1) (E max_b <b, G^h z + w_h w> - max_b <b, G^h z>).

    w_h w_h' is the difference of two covariances h rounds from now, both with the best prediction
    played in between: without any reward now, and with arm a's.
    """
    bonuses = np.zeros(len(arms))
    for i, a in enumerate(arms):
        blind = transition @ cov @ transition.T + process_cov
        seeing = riccati_step(cov, transition, process_cov, reward_std, a)
        ahead = transition @ mean
        for h in range(steps):
            sizes, directions = np.linalg.eigh(blind - seeing)
            w = np.sqrt(max(sizes[-1], 0.0)) * directions[:, -1]
            m = arms @ ahead
            bonuses[i] += discount**h * (expected_highest(m, arms @ w) - m.max())
            best = arms[highest(m)]
            blind = riccati_step(blind, transition, process_cov, reward_std, best)
            seeing = riccati_step(seeing, transition, process_cov, reward_std, best)
            ahead = transition @ ahead
    return bonuses


def longer_than(x):
    """E(w - x)+, w ~ N(0, 1)."""
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi) - x * math.erfc(x / math.sqrt(2)) / 2


def reach_factor(ratio):
    """f(r): the root of x = r E(w - x)+."""
    if ratio < 1e-300:
        return 0.0
    return scipy.optimize.brentq(lambda x: x - ratio * longer_than(x), 0.0, 12.0, xtol=1e-13)


def reach_rounds(transition, rounds):
    """The smallest power of two that reaches the horizon or 20 / |1 - radius of G|."""
    radius = max(abs(np.linalg.eigvals(transition)))
    most = min(rounds, 20 / max(abs(1 - radius), 1e-12))
    terms = 1
    while terms < most:
        terms *= 2
    return terms


def reach_fading(model, rows, shares, rounds):
    """C = G (I - K R), if each row of R is played with its share: the error's transition.

    P settles, from 0, in as many rounds as are summed. A reward without noise has 1e-4 of
    the spread of what the state drifts in d rounds.
    """
    transition, process_cov, reward_std = model[:3]
    d = len(transition)
    R = np.array([math.sqrt(share) * row for share, row in zip(shares, rows, strict=True)])
    drift = state_cov(transition, process_cov, np.zeros((d, d)), d)
    noise = max(reward_std**2, 1e-8 * sum(row @ drift @ row for row in R))
    P = np.zeros((d, d))
    if noise == 0.0:  # nothing ever drifts
        return transition
    for step in range(reach_rounds(transition, rounds) + 1):
        gain = P @ R.T @ np.linalg.inv(R @ P @ R.T + noise * np.eye(len(R)))
        left = np.eye(d) - gain @ R
        if step < reach_rounds(transition, rounds):
            P = transition @ (left @ P @ left.T + noise * gain @ gain.T) @ transition.T
            P = P + process_cov
    return transition @ left


def reach_tables(model, arms, rounds):
    """Of every arm: e, the arm less the mean of the others, and C if it is rarely played."""
    tables = []
    for i in range(len(arms)):
        others = [arms[j] for j in range(len(arms)) if j != i]
        shares = [(0.05 if j == i else 1.0) / (len(others) + 0.05) for j in range(len(arms))]
        fading = reach_fading(model, arms, shares, rounds)
        tables.append((arms[i] - np.mean(others, axis=0), fading))
    return tables


def reach_blocks(told):
    """The sums of s_1, s_2, s_3 + s_4, ... over 2^(j-1) rounds, and how many rounds each has."""
    sums, lengths, start = [told[0]], [1], 1
    while start < len(told):
        sums.append(sum(told[start : 2 * start]))
        lengths.append(start)
        start *= 2
    return sums, lengths


def reach_lasts(sums, lengths):
    """H = 2 L - 1 with L = 2 sum l m |m| / s_1^2 - 1, m the mean of a block of l rounds.

    The sum itself if it is below one, and zero if that is negative.
    """
    total = 0.0
    for block, length in zip(sums, lengths, strict=True):
        mean = block / length
        total += length * mean * abs(mean) / sums[0] ** 2
    return 2 * (2 * total - 1) - 1 if total > 1 else max(total, 0.0)


def best_repeats(width, lasts, rounds):
    """The highest width(n) f(H / n^0.7), n = 1, 4, 16, ... up to H and the horizon; and its n."""
    best, best_n, n = 0.0, 1, 1
    shrunk, lasts = min(lasts, 1.0), max(lasts, 1.0)
    while n <= min(lasts, rounds):
        value = width(n) * reach_factor(lasts / n**0.7) * shrunk
        if value > best:
            best, best_n = value, n
        n *= 4
    return best, best_n


def reach_index(tables, cov, model, arms, rounds):
    """max_n w_n f(H / n^0.7), w_n = |e'G P a| / sqrt(a'P a + sigma^2 / n).

    s_h = e'C^(h-1) G P a, round by round.
    """
    transition, _, reward_std, _ = model
    found = []
    for a, (e, fading) in zip(arms, tables, strict=True):
        moved = transition @ cov @ a
        first, told = e @ moved, []
        known = max(a @ cov @ a, 0.0)
        if first == 0.0 or known + reward_std**2 == 0.0:
            found.append(0.0)
            continue
        for _ in range(reach_rounds(transition, rounds)):
            told.append(e @ moved)
            moved = fading @ moved

        def width(n, first=first, known=known):
            return abs(first) / math.sqrt(known + reward_std**2 / n)

        found.append(best_repeats(width, reach_lasts(*reach_blocks(told)), rounds)[0])
    return np.array(found)


def reach_average(cov, model, arms, listed, rounds):
    """The index with all directions in which the listed arms differ in place of e.

    E = (k / (k - 1))^2 r Cov; H and n from averages over the listed arms less their mean.
    """
    transition, _, reward_std, _ = model
    k = len(listed)
    apart = listed - np.mean(listed, axis=0)
    E = (k / (k - 1)) ** 2 * np.linalg.matrix_rank(apart) * apart.T @ apart / k
    fading = reach_fading(model, listed, [1 / k] * k, rounds)
    known = np.mean([x @ cov @ x for x in apart])
    told = np.zeros(reach_rounds(transition, rounds))
    for x in apart:
        start = moved = transition @ cov @ x
        for h in range(len(told)):
            told[h] += start @ E @ moved
            moved = fading @ moved
    lasts = reach_lasts(*reach_blocks(told))
    _, n = best_repeats(lambda n: 1 / math.sqrt(known + reward_std**2 / n), lasts, rounds)
    found = []
    for a in arms:
        moved = transition @ cov @ a
        width = math.sqrt(moved @ E @ moved / (a @ cov @ a + reward_std**2 / n))
        found.append(width * reach_factor(max(lasts, 1.0) / n**0.7) * min(lasts, 1.0))
    return np.array(found)


def tangents(gap, width):
    """The highest tangent of E(width w - gap)+ in gap / width, at 0, 0.5, ..., 3, or zero."""
    found = [0.0]
    for x in (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0):
        found.append(scipy.stats.norm.pdf(x) * width - scipy.stats.norm.sf(x) * gap)
    return max(found)


def overtaken(gap, width):
    """E(width w - gap)+."""
    return width * longer_than(gap / width) if width > 0 else 0.0


def reach_soon(mean, cov, model, arms, gain=tangents):
    """The gain of three rounds if the best of the other arms alone may overtake.

    As for lookahead, with 0.8 as discount. Also the sum of all widths.
    """
    transition, process_cov, reward_std, _ = model
    gains, widths = np.zeros(len(arms)), np.zeros(len(arms))
    for i, a in enumerate(arms):
        blind = transition @ cov @ transition.T + process_cov
        seeing = riccati_step(cov, transition, process_cov, reward_std, a)
        ahead = transition @ mean
        for h in range(3):
            sizes, directions = np.linalg.eigh(blind - seeing)
            w = np.sqrt(max(sizes[-1], 0.0)) * directions[:, -1]
            m = arms @ ahead
            best = highest(m)
            far = [abs((b - arms[best]) @ w) for b in arms]
            gains[i] += 0.8**h * max(gain(m[best] - m[j], far[j]) for j in range(len(arms)))
            widths[i] += max(far)
            blind = riccati_step(blind, transition, process_cov, reward_std, arms[best])
            seeing = riccati_step(seeing, transition, process_cov, reward_std, arms[best])
            ahead = transition @ ahead
    return gains, widths


def trusted_scale(excess, weight):
    """The c of (c, r) = 1 + N^-1 D; at least 1/16."""
    return max(1 / 16, 1 + np.linalg.solve(weight, excess)[0])


def surprise_sums(mean, cov, reward_std, arm, reward):
    """What a reward adds to D and N: x (e^2/s - E min(w^2, 9)) with e^2 <= 9 s, and x x^T."""
    known = max(arm @ cov @ arm, 0.0)
    variance = known + reward_std**2
    if variance == 0.0:
        return np.zeros(2), np.zeros((2, 2))
    x = np.array([known / variance, reward_std**2 / variance])
    size = min((reward - arm @ mean) ** 2 / variance, 9.0)
    clipped, _ = scipy.integrate.quad(
        lambda w: min(w * w, 9.0) * math.exp(-w * w / 2) / math.sqrt(2 * math.pi),
        -10, 10, points=[-3, 3],
    )  # fmt: skip
    return x * (size - clipped), np.outer(x, x)


def _play_reach(model, arms, rewards, uniforms, rounds):
    tables = reach_tables(model, arms, rounds)
    transition, process_cov, reward_std, initial_cov = model
    mean = np.zeros(len(transition))
    cov = prior_cov(transition, process_cov, initial_cov)
    played, excess, weight = [], np.zeros(2), 20 * np.eye(2)
    for t in range(len(rewards)):
        spread = trusted_scale(excess, weight) * cov
        index = reach_index(tables, spread, model, arms, rounds)
        soon, _ = reach_soon(mean, spread, model, arms)
        played.append(int(highest(arms @ mean, np.maximum(index, soon))))
        arm, reward = arms[played[-1]], rewards[t, played[-1]]
        more, heavier = surprise_sums(mean, cov, reward_std, arm, reward)
        excess, weight = excess + more, weight + heavier
        mean, cov = kalman_step(mean, cov, transition, process_cov, reward_std, arm, reward)
    return played


def _play_filtered(choose, model, arms, rewards):
    """a_t = choose(t, z(t|t-1), P(t|t-1)), then the Kalman step of P5."""
    transition, process_cov, reward_std, initial_cov = model
    mean = np.zeros(len(transition))
    cov = prior_cov(transition, process_cov, initial_cov)
    played = []
    for t in range(len(rewards)):
        played.append(int(choose(t, mean, cov)))
        arm = arms[played[-1]]
        reward = rewards[t, played[-1]]
        mean, cov = kalman_step(mean, cov, transition, process_cov, reward_std, arm, reward)
    return played


def _play_lookahead(model, arms, rewards, uniforms, rounds, steps=3, discount=0.8):
    def choose(t, mean, cov):
        u = bonus_lookahead(mean, cov, *model[:3], arms, steps, discount)
        return highest(arms @ mean, u)

    return _play_filtered(choose, model, arms, rewards)


def lower_factor(cov):
    """L L' = P, entry by entry (Cholesky); a state that is known has a column of zeros."""
    d = len(cov)
    L = np.zeros((d, d))
    for j in range(d):
        pivot = cov[j, j] - L[j, :j] @ L[j, :j]
        if pivot <= 1e-13 * cov[j, j]:
            continue
        L[j, j] = np.sqrt(pivot)
        for i in range(j + 1, d):
            L[i, j] = (cov[i, j] - L[i, :j] @ L[j, :j]) / L[j, j]
    return L


def _play_thompson(model, arms, rewards, normals, rounds):
    """argmax <a, z~>, z~ = z + L e, P = L L'."""

    def choose(t, mean, cov):
        return highest(arms @ (mean + lower_factor(cov) @ normals[t]))

    return _play_filtered(choose, model, arms, rewards)


def information_ratio(mean, cov, model, arms, points):
    """Regret and information of every arm, averaged over mirrored Sobol points (z, xi)."""
    transition, process_cov, reward_std, _ = model
    d, k = len(mean), len(arms)
    half = scipy.stats.norm.ppf(
        scipy.stats.qmc.Sobol(2 * d, rng=np.random.default_rng(0)).random(points // 2)
    )
    drawn = np.concatenate([half, -half])
    values, vectors = np.linalg.eigh(process_cov)
    root = vectors * np.sqrt(np.maximum(values, 0))
    L = lower_factor(cov)
    best_now, groups = [], {}
    for row in drawn:
        z = mean + L @ row[:d]
        best_now.append(max(a @ z for a in arms))
        later = highest(arms @ (transition @ z + root @ row[d:]))
        groups.setdefault(later, []).append(z)
    regret = np.array([np.mean(best_now) - a @ mean for a in arms])
    information = np.zeros(k)
    for i, a in enumerate(arms):
        for states in groups.values():
            shift = np.mean([a @ z for z in states]) - a @ mean
            information[i] += len(states) / points * shift**2
        information[i] /= a @ cov @ a + reward_std**2
    return regret, information


def _play_information_directed(model, arms, rewards, uniforms, rounds, points=64):
    """Of all pairs of arms and chances q of the first, the least ratio regret^2 / information."""

    def choose(t, mean, cov):
        regret, information = information_ratio(mean, cov, model, arms, points)
        found = None
        for a, b in itertools.combinations_with_replacement(range(len(arms)), 2):
            D, V = regret[a] - regret[b], information[a] - information[b]
            chances = [0.0, 1.0]
            if D != 0 and V != 0:
                chances.insert(0, min(max(regret[b] / D - 2 * (information[b] + 1e-12) / V, 0), 1))
            for q in chances:
                ratio = (regret[b] + q * D) ** 2 / (information[b] + 1e-12 + q * V)
                if found is None or ratio < found[0]:
                    found = ratio, q, a, b
        _, q, a, b = found
        return a if uniforms[t] < q else b

    return _play_filtered(choose, model, arms, rewards)


def _play_rollout(model, arms, rewards, uniforms, rounds, depth=3, scenarios=16, discount=0.8):
    """Each arm first, then the best prediction, averaged over the same surprises."""
    transition, process_cov, reward_std, _ = model
    half = np.random.default_rng(0).standard_normal((scenarios // 2, depth))
    half[:, 0] = scipy.stats.norm.ppf((np.arange(scenarios // 2) + 0.5) / scenarios)
    half /= np.sqrt(np.mean(half**2, axis=0))
    surprises = [*half, *(-half)]

    def value(arm, mean, cov):
        total = 0.0
        for surprise in surprises:
            z, P, b = mean, cov, arm
            for h in range(depth):
                s = b @ P @ b + reward_std**2
                z = transition @ (z + P @ b * surprise[h] / np.sqrt(s) if s > 0 else z)
                P = riccati_step(P, transition, process_cov, reward_std, b)
                b = arms[highest(arms @ z)]
                total += discount**h * (b @ z)
        return arm @ mean + total / scenarios

    def choose(t, mean, cov):
        return highest([value(a, mean, cov) for a in arms])

    return _play_filtered(choose, model, arms, rewards)


def _play_random(model, arms, rewards, uniforms, rounds):
    """P19: arm = floor(u_t k)."""
    return [math.floor(uniforms[t] * len(arms)) for t in range(len(rewards))]


POLICIES = {
    "reach": _play_reach,
    "kode": _play_kode,
    "kalman_ucb": _play_kalman_ucb,
    "idea": _play_idea,
    "kalman_oracle": _play_kalman_oracle,
    "ucb": _play_ucb,
    "sliding_window_ucb": _play_sliding_window_ucb,
    "discounted_ucb": _play_discounted_ucb,
    "rexp3": _play_rexp3,
    "oful": _play_oful,
    "discounted_linucb": _play_discounted_linucb,
    "sliding_window_linucb": _play_sliding_window_linucb,
    "weighted_linucb": _play_weighted_linucb,
    "restarted_linucb": _play_restarted_linucb,
    "random": _play_random,
    "lookahead": _play_lookahead,
    "thompson": _play_thompson,
    "information_directed": _play_information_directed,
    "rollout": _play_rollout,
}


def play(
    policy,
    transition,
    process_cov,
    reward_std,
    initial_cov,
    arms,
    rewards,
    uniforms,
    rounds=None,
    **parameters,
):
    """P9-P19: the arms a policy plays, by name.

    rewards[t, i] is what arm i would pay at round t: bandit policies look only at the arm they
    played, the oracle at the whole row. `rounds` is the horizon the policy is told (default n).
    """
    model = (transition, process_cov, reward_std, initial_cov)
    if rounds is None:
        rounds = len(rewards)
    return POLICIES[policy](model, arms, rewards, uniforms, rounds, **parameters)


# Contexts: features x_t, known before round t, change the rows of the arms.


def rows_in_contexts(arms, read_outs, features):
    """C_t = C + sum_j x_tj B_j, row by row: x_tij of arm i, features (n, k, J) or (n, J)."""
    n, k = len(features), len(arms)
    rows = np.zeros((n, *arms.shape))
    for t in range(n):
        for i in range(k):
            x = features[t, i] if features.ndim == 3 else features[t]
            rows[t, i] = arms[i]
            for j in range(len(read_outs)):
                rows[t, i] = rows[t, i] + x[j] * read_outs[j][i]
    return rows


def play_in_contexts(policy, model, rows, rewards, uniforms):
    """The arms a policy plays if those of round t are rows[t] (k, d); model as for the others.

    idea, kalman_ucb: the general form with C_t. kalman_oracle: argmax <a, z(t|t-1)> of the filter
    that sees all k rewards, from the prior on: K = P C_t'(C_t P C_t' + sigma^2 I)^-1. ucb: rewards
    as they come, R the largest over all rounds. random: floor(u_t k).
    """
    transition, process_cov, reward_std, initial_cov = model
    n, k, d = rows.shape
    if policy == "random":
        return _play_random(model, rows[0], rewards, uniforms, n)
    if policy == "ucb":
        R = _scale(model, rows.reshape(n * k, d), n)
        return _play_ucb_within(R, rewards)
    mean = np.zeros(d)
    cov = prior_cov(transition, process_cov, initial_cov)
    played = []
    for t in range(n):
        arms = rows[t]
        if policy == "kalman_oracle":
            played.append(highest([a @ mean for a in arms]))
            gain = oracle_gain(cov, arms, reward_std)
            mean = transition @ (mean + gain @ (rewards[t] - arms @ mean))
            cov = transition @ (cov - gain @ arms @ cov) @ transition.T + process_cov
            continue
        bonus = {"idea": bonus_idea, "kalman_ucb": bonus_kalman_ucb}[policy]
        u = bonus(cov, transition, process_cov, reward_std, arms)
        arm = highest([a @ mean for a in arms], u)
        played.append(arm)
        mean, cov = kalman_step(
            mean, cov, transition, process_cov, reward_std, arms[arm], rewards[t, arm]
        )
    return played


def regret_path(arms, states, played):
    """P4: cumulative sums over rounds of max_a a'z_t - a_t'z_t (noise-free)."""
    total = 0.0
    path = np.zeros(len(played))
    for t in range(len(played)):
        best = max(a @ states[t] for a in arms)
        total += best - arms[played[t]] @ states[t]
        path[t] = total
    return path


def regret(arms, states, played):
    """P4: R_n, the last value of the regret path."""
    return float(regret_path(arms, states, played)[-1])


# The metric (P17).


def metric_covariance(arms, i, j, Z, P):
    """P16, P17: cov of (A_i zhat, A_j z): [[A_i (Z-P) A_i', A_i (Z-P) A_j'], [.., A_j Z A_j']]."""
    A_i = np.array([arms[i] - arms[b] for b in range(len(arms)) if b != i])
    A_j = np.array([arms[j] - arms[b] for b in range(len(arms)) if b != j])
    return np.block(
        [
            [A_i @ (Z - P) @ A_i.T, A_i @ (Z - P) @ A_j.T],
            [A_j @ (Z - P) @ A_i.T, A_j @ Z @ A_j.T],
        ]
    )


def _matrix_root(S):
    """The semidefinite root of a semidefinite S. SciPy's sqrtm 1.18 fails on some singular ones."""
    values, vectors = np.linalg.eigh((S + S.T) / 2)
    return vectors @ np.diag(np.sqrt(np.maximum(values, 0.0))) @ vectors.T


def metric(arms, u, Z, P_A, P, squared=False):
    """P17: phi(i, j | P) as printed, matrix roots and all; u holds the k bonuses under P.

    phi = |mu_i| + tr(S + S^) - 2 tr((S^^1/2 S S^^1/2)^1/2), NaN where i = j.
    """
    k = len(arms)
    phi = np.full((k, k), np.nan)
    for i in range(k):
        mu = np.array([u[i] - u[b] for b in range(k) if b != i] + [0.0] * (k - 1))
        for j in range(k):
            if i == j:
                continue
            S = metric_covariance(arms, i, j, Z, P_A)
            S_hat = metric_covariance(arms, i, j, Z, P)
            root = _matrix_root(S_hat)
            cross = np.trace(_matrix_root(root @ S @ root))
            length = mu @ mu if squared else math.sqrt(mu @ mu)
            phi[i, j] = length + np.trace(S) + np.trace(S_hat) - 2.0 * cross
    return phi


def metric_interval(arms, bonuses, Z, P_A, P_a, squared=False):
    """P17: min and max of phi(i, j | P_a) over i != j and a; bonuses[a], P_a[a] belong to arm a."""
    values = [metric(arms, bonuses[a], Z, P_A, P_a[a], squared) for a in range(len(arms))]
    return np.nanmin(values), np.nanmax(values)


# Bounds and plans (P7, P11, P12, P14, P16).


def two_step_value(mean, cov, transition, reward_std, arms):
    """P7: <a, z> + E max_b (m_b + s_b w), by quadrature between all crossings of the lines."""
    values = np.zeros(len(arms))
    for i, a in enumerate(arms):
        variance = a @ cov @ a + reward_std**2
        v = transition @ cov @ a / np.sqrt(variance) if variance > 0 else np.zeros(len(mean))
        m = [b @ transition @ mean for b in arms]
        s = [b @ v for b in arms]

        def density(w, m=m, s=s):
            best = max(m[b] + s[b] * w for b in range(len(arms)))
            return best * np.exp(-(w**2) / 2) / np.sqrt(2 * np.pi)

        cuts = {-12.0, 12.0}
        for b in range(len(arms)):
            for c in range(b):
                if s[b] != s[c] and abs(m[b] - m[c]) < 12 * abs(s[b] - s[c]):
                    cuts.add((m[b] - m[c]) / (s[c] - s[b]))
        cuts = sorted(cuts)
        values[i] = a @ mean
        for left, right in itertools.pairwise(cuts):
            nodes, weights = np.polynomial.legendre.leggauss(60)
            half = (right - left) / 2
            points = (left + right) / 2 + half * nodes
            values[i] += half * sum(w * density(x) for w, x in zip(weights, points, strict=True))
    return values


def sphere_two_step_value(mean, cov, transition, reward_std, arm, nodes=200):
    """P7: <a, z> + E |G z + v w| by Gauss-Hermite quadrature, good where the length is smooth."""
    v = transition @ cov @ arm / np.sqrt(arm @ cov @ arm + reward_std**2)
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    lengths = [np.linalg.norm(transition @ mean + v * w) for w in points]
    return arm @ mean + np.dot(weights, lengths) / np.sqrt(2 * np.pi)


def printed_lower_bound(arms, Z, P_A):
    """P11: Theorem 3 per round, letter by letter, with Psi as a block matrix."""
    k = len(arms)
    predicted = Z - P_A
    total = 0.0
    for i in range(k):
        for j in range(k):
            if i == j:
                continue
            A_i = np.array([arms[i] - arms[b] for b in range(k) if b != i])
            A_j = np.array([arms[j] - arms[b] for b in range(k) if b != j])
            middle = np.linalg.inv(A_j @ Z @ A_j.T)
            given = A_i @ predicted @ A_i.T
            given = given - A_i @ predicted @ A_j.T @ middle @ A_j @ predicted @ A_i.T
            Pi = A_i @ predicted @ A_j.T @ middle @ A_j
            inverse = np.linalg.inv(given)
            Psi = np.block([[inverse, inverse @ Pi], [Pi.T @ inverse, Pi.T @ inverse @ Pi]])
            gap = arms[j] - arms[i]
            below = np.trace(Psi) ** (2 * k - 2) * np.linalg.det(given)
            total += np.sqrt(2 * gap @ Z @ gap / below)
    return total


def path_bound(model, arms, bonus, states, rewards):
    """P12: R_n and the sum of u(a_t) - u(a_t*) + 2 |e_t| along one path, unit arms."""
    transition, process_cov, reward_std, initial_cov = model
    mean, cov = np.zeros(len(transition)), initial_cov
    regret = bound = 0.0
    for z, paid in zip(states, rewards, strict=True):
        u = bonus(cov, transition, process_cov, reward_std, arms)
        played = highest(arms @ mean, u)
        best = highest(arms @ z)
        regret += arms[best] @ z - arms[played] @ z
        bound += u[played] - u[best] + 2 * np.linalg.norm(z - mean)
        arm, reward = arms[played], paid[played]
        mean, cov = kalman_step(mean, cov, transition, process_cov, reward_std, arm, reward)
    return regret, bound


def wrong_action_probability(arms, u, Z, P):
    """P16: the ratio of Gaussian orthant probabilities in 2 (k - 1) and k - 1 dimensions."""
    from scipy.stats import multivariate_normal

    k = len(arms)
    found = np.zeros((k, k))
    for i in range(k):
        for j in range(k):
            A_j = np.array([arms[j] - arms[b] for b in range(k) if b != j])
            cov = metric_covariance(arms, i, j, Z, P)
            mean = np.array([u[i] - u[b] for b in range(k) if b != i] + [0.0] * (k - 1))
            # P(x > 0) = P(-x < 0)
            options = {"allow_singular": True, "abseps": 1e-5, "releps": 0, "maxpts": 10**5}
            both = multivariate_normal.cdf(np.zeros(len(mean)), -mean, cov, **options)
            only = multivariate_normal.cdf(np.zeros(k - 1), None, A_j @ Z @ A_j.T, **options)
            found[i, j] = both / only
    return found


# Whole runs, where the learner may be wrong about the system (P24) and a round may be held against
# something else than the best mean (P4). A system is (G, Q, sigma, Sigma0, C).


def all_rewards(system, states, noises, common_noise=False):
    """P1: X_ti = <a_i, z_t> + sigma eta_ti, with eta_t0 for every arm if the noise is common."""
    _, _, reward_std, _, arms = system
    paid = np.zeros((len(states), len(arms)))
    for t in range(len(states)):
        for i in range(len(arms)):
            noise = noises[t, 0] if common_noise else noises[t, i]
            paid[t, i] = arms[i] @ states[t] + reward_std * noise
    return paid


def noisy_regret_path(arms, states, rewards, played):
    """P4 with noise: cumulative sums of X_t* - X_t, where * is the arm with the best mean."""
    total = 0.0
    path = np.zeros(len(played))
    for t in range(len(played)):
        best = highest([a @ states[t] for a in arms])
        total += rewards[t, best] - rewards[t, played[t]]
        path[t] = total
    return path


def hindsight_regret_path(rewards, played):
    """Cumulative sums of max_i X_ti - X_t: held against the highest reward that was drawn."""
    total = 0.0
    path = np.zeros(len(played))
    for t in range(len(played)):
        total += max(rewards[t]) - rewards[t, played[t]]
        path[t] = total
    return path


def run(policy, truth, assumed, states, noises, uniforms, regret="mean", common_noise=False):
    """P4, P24: the regret path of a policy that takes the system `truth` to be `assumed`.

    States, rewards and regret are the truth's; the oracle, which sees all rewards, knows it.
    """
    arms = truth[4]
    rewards = all_rewards(truth, states, noises, common_noise)
    known = truth if policy == "kalman_oracle" else assumed
    played = play(policy, *known, rewards, uniforms)
    if regret == "noisy":
        return noisy_regret_path(arms, states, rewards, played)
    if regret == "hindsight":
        return hindsight_regret_path(rewards, played)
    return regret_path(arms, states, played)


# Learning (identification): everything about a short log at once, as one big normal vector.


def joint_smoothing(p, plays):
    """Log-likelihood, E z_t, and Cov(z_s, z_t), given all rewards; by conditioning, no recursion.

    p = (G, Q, sigma2, m0, V0, reads, offsets); plays[t] lists the (arm, reward) of round t.
    """
    G, Q, variance, m0, V0, reads, offsets = p
    n, d = len(plays), len(m0)
    means, covs = [m0], [[None] * n for _ in range(n)]
    for _ in range(1, n):
        means.append(G @ means[-1])
    cov = V0
    for t in range(n):
        covs[t][t] = cov
        for s in range(t + 1, n):
            covs[s][t] = np.linalg.matrix_power(G, s - t) @ cov
            covs[t][s] = covs[s][t].T
        cov = G @ cov @ G.T + Q
    mean, cov = np.concatenate(means), np.block(covs)
    rows, rewards, shift = [], [], []
    for t, played in enumerate(plays):
        for arm, reward in played:
            row = np.zeros(n * d)
            row[t * d : (t + 1) * d] = reads[arm]
            rows.append(row)
            rewards.append(reward)
            shift.append(offsets[arm])
    if not rows:
        return 0.0, mean.reshape(n, d), cov.reshape(n, d, n, d)
    H = np.array(rows)
    S = H @ cov @ H.T + variance * np.eye(len(H))
    off = np.array(rewards) - np.array(shift) - H @ mean
    log_likelihood = -0.5 * (
        off @ np.linalg.solve(S, off) + np.linalg.slogdet(S)[1] + len(off) * math.log(2 * math.pi)
    )
    gain = cov @ H.T @ np.linalg.inv(S)
    return (
        log_likelihood,
        (mean + gain @ off).reshape(n, d),
        (cov - gain @ H @ cov).reshape(n, d, n, d),
    )


# Every unit vector an arm (P2, P7, P13, P15), in two dimensions by a fine grid over angles.


def sphere_score(policy, mean, cov, transition, reward_std, arm):
    """<a, m> + u(a): u = 0, sqrt(a'Pa), or |GPa| / sqrt(a'Pa + s2)."""
    if policy == "kode":
        return arm @ mean
    if policy == "kalman_ucb":
        return arm @ mean + math.sqrt(arm @ cov @ arm)
    variance = arm @ cov @ arm + reward_std**2
    move = transition @ cov @ arm / math.sqrt(variance) if variance > 0 else np.zeros(len(mean))
    return arm @ mean + math.sqrt(move @ move)


def sphere_best(policy, mean, cov, transition, reward_std, points=2000):
    """The best of all unit vectors in the plane: every angle of a grid, the best one refined."""

    def score(angle):
        arm = np.array([math.cos(angle), math.sin(angle)])
        return sphere_score(policy, mean, cov, transition, reward_std, arm)

    step = 2 * math.pi / points
    best = max((i * step for i in range(points)), key=score)
    while step > 1e-9:
        step /= 2
        best = max((best - step, best, best + step), key=score)
    return np.array([math.cos(best), math.sin(best)])


def sphere_regret_path(policy, model, mean, states, rewards, normals):
    """P4, P8: the regret path on the plane's unit circle; rewards are of the coordinates' vectors.

    The played vector's reward has the first coordinate's noise; the oracle sees every coordinate.
    """
    G, Q, reward_std, initial_cov = model
    cov = initial_cov
    gain = oracle_gain(riccati_fixed_point(G, Q, reward_std, np.eye(2)), np.eye(2), reward_std)
    total, path = 0.0, np.zeros(len(states))
    for t in range(len(states)):
        if policy == "random":
            arm = normals[t] / math.sqrt(normals[t] @ normals[t])
        elif policy in ("kode", "kalman_oracle"):
            arm = mean / math.sqrt(mean @ mean)
        else:
            arm = sphere_best(policy, mean, cov, G, reward_std, points=60)
        reward = arm @ states[t] + rewards[t, 0] - states[t, 0]
        if policy == "kalman_oracle":
            mean = G @ (mean + gain @ (rewards[t] - mean))
        else:
            mean, cov = kalman_step(mean, cov, G, Q, reward_std, arm, reward)
        total += math.sqrt(states[t] @ states[t]) - arm @ states[t]
        path[t] = total
    return path
