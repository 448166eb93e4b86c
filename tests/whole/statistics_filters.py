"""State estimation: Kalman filters of several kinds, a particle filter, hidden Markov models."""

from __future__ import annotations

import numpy as np


# An extended Kalman filter that tracks a vehicle by ranges and bearings to landmarks
class Gaussian:
    def __init__(self, mean, cov):
        self.mean = mean
        self.cov = cov

    def copy(self):
        return Gaussian(self.mean.copy(), self.cov.copy())


class ExtendedKalmanFilter:
    def __init__(self, state, process_noise, measurement_noise, dt=0.1):
        self.state = state
        self.Q = process_noise
        self.R = measurement_noise
        self.dt = dt
        self.log_likelihood = 0.0
        self.history = []

    def motion(self, x, u):
        v, omega = u
        return np.array(
            [
                x[0] + v * np.cos(x[2]) * self.dt,
                x[1] + v * np.sin(x[2]) * self.dt,
                x[2] + omega * self.dt,
            ]
        )

    def motion_jacobian(self, x, u):
        F = np.eye(3)
        F[0, 2] = -u[0] * np.sin(x[2]) * self.dt
        F[1, 2] = u[0] * np.cos(x[2]) * self.dt
        return F

    def measure(self, x, landmark):
        dx, dy = landmark - x[:2]
        return np.array([np.sqrt(dx**2 + dy**2), wrap_angle(np.arctan2(dy, dx) - x[2])])

    def measure_jacobian(self, x, landmark):
        dx, dy = landmark - x[:2]
        q = dx**2 + dy**2
        r = np.sqrt(q)
        return np.array([[-dx / r, -dy / r, 0.0], [dy / q, -dx / q, -1.0]])

    def predict(self, u):
        F = self.motion_jacobian(self.state.mean, u)
        self.state.mean = self.motion(self.state.mean, u)
        self.state.cov = F @ self.state.cov @ F.T + self.Q

    def update(self, z, landmark, gate=None):
        H = self.measure_jacobian(self.state.mean, landmark)
        innovation = z - self.measure(self.state.mean, landmark)
        innovation[1] = wrap_angle(innovation[1])
        S = H @ self.state.cov @ H.T + self.R
        S_inv = np.linalg.inv(S)
        distance = innovation @ S_inv @ innovation
        if gate is not None and distance > gate:
            return False
        K = self.state.cov @ H.T @ S_inv
        self.state.mean = self.state.mean + K @ innovation
        self.state.cov = (np.eye(3) - K @ H) @ self.state.cov
        self.log_likelihood -= 0.5 * (distance + np.log(np.linalg.det(2 * np.pi * S)))
        return True

    def step(self, u, observations, **options):
        self.predict(u)
        accepted = 0
        for z, landmark in observations:
            if self.update(z, landmark, **options):
                accepted += 1
        self.history.append(self.state.copy())
        return accepted


def wrap_angle(angle):
    while angle > np.pi:
        angle -= 2 * np.pi
    while angle < -np.pi:
        angle += 2 * np.pi
    return angle


LANDMARKS = [np.array([5.0, 1.0]), np.array([-2.0, 4.0])]
CONTROLS = [(1.0, 0.5), (1.2, -0.2), (0.8, 0.9), (1.1, 0.0)]


def simulate_ranges(seed=3, noise=0.05):
    rng = np.random.default_rng(seed)
    x, y, heading = 0.0, 0.0, 2.5
    frames = []
    for v, omega in CONTROLS:
        x, y, heading = (
            x + v * np.cos(heading) * 0.1,
            y + v * np.sin(heading) * 0.1,
            heading + omega * 0.1,
        )
        frame = []
        for landmark in LANDMARKS:
            dx, dy = landmark - np.array([x, y])
            z = np.array([np.hypot(dx, dy), wrap_angle(np.arctan2(dy, dx) - heading)])
            frame.append((z + noise * rng.normal(size=2), landmark))
        frames.append(frame)
    return frames


FRAMES = simulate_ranges()


def ekf_negative_log_likelihood(log_noise):
    q, r_range, r_bearing = np.exp(log_noise[:3])
    start = Gaussian(np.array([0.0, 0.0, log_noise[3]]), 0.1 * np.eye(3))
    kf = ExtendedKalmanFilter(start, q * np.eye(3), np.diag([r_range, r_bearing]))
    used = 0
    for u, frame in zip(CONTROLS, FRAMES):
        used += kf.step(u, frame, gate=50.0)
    if used == 0:
        return np.inf
    smoothness = sum(
        np.sum((a.mean - b.mean) ** 2) for a, b in zip(kf.history[1:], kf.history[:-1])
    )
    return -kf.log_likelihood / used + 0.01 * smoothness


# An unscented Kalman filter for a growth model
def sigma_points(mean, cov, alpha=0.5, beta=2.0, kappa=0.0):
    n = len(mean)
    lam = alpha**2 * (n + kappa) - n
    L = np.linalg.cholesky((n + lam) * cov)
    points = [mean]
    for i in range(n):
        points.append(mean + L[:, i])
        points.append(mean - L[:, i])
    wm = np.full(2 * n + 1, 1.0 / (2 * (n + lam)))
    wc = wm.copy()
    wm[0] = lam / (n + lam)
    wc[0] = wm[0] + (1 - alpha**2 + beta)
    return np.array(points), wm, wc


def unscented_transform(points, wm, wc, noise_cov=None):
    mean = np.dot(wm, points)
    diff = points - mean
    cov = np.zeros((points.shape[1], points.shape[1]))
    for w, d in zip(wc, diff):
        cov += w * np.outer(d, d)
    if noise_cov is not None:
        cov = cov + noise_cov
    return mean, cov


def lotka_volterra(x, params, dt=0.2, substeps=3):
    alpha, beta, delta, gamma = params
    h = dt / substeps
    for _ in range(substeps):
        prey, predator = x
        x = x + h * np.array(
            [alpha * prey - beta * prey * predator, delta * prey * predator - gamma * predator]
        )
    return x


UKF_OBS = np.array([1.05, 1.22, 1.31, 1.49, 1.58])


def ukf_negative_log_likelihood(theta):
    params, log_r = theta[:4], theta[4]
    mean, cov = np.array([1.0, 0.5]), np.diag([0.1, 0.1])
    Q, R = 0.01 * np.eye(2), np.array([[np.exp(log_r)]])
    total = 0.0
    for y in UKF_OBS:
        points, wm, wc = sigma_points(mean, cov)
        moved = np.array([lotka_volterra(p, params) for p in points])
        mean, cov = unscented_transform(moved, wm, wc, Q)
        points, wm, wc = sigma_points(mean, cov)
        seen = np.array([[p[0]] for p in points])
        y_mean, S = unscented_transform(seen, wm, wc, R)
        cross = np.zeros((2, 1))
        for w, p, s in zip(wc, points, seen):
            cross += w * np.outer(p - mean, s - y_mean)
        K = cross @ np.linalg.inv(S)
        residual = np.array([y]) - y_mean
        mean = mean + K @ residual
        cov = cov - K @ S @ K.T
        cov = 0.5 * (cov + cov.T)
        total += 0.5 * (np.log(2 * np.pi * S[0, 0]) + residual[0] ** 2 / S[0, 0])
    return total


# A Kalman filter and Rauch-Tung-Striebel smoother of a local linear trend
def kalman_filter(ys, F, H, Q, R, m0, P0):
    filtered, predicted = [], []
    m, P = m0, P0
    loglik = 0.0
    for y in ys:
        m_pred = F @ m
        P_pred = F @ P @ F.T + Q
        predicted.append({"mean": m_pred, "cov": P_pred})
        if np.isnan(y):
            m, P = m_pred, P_pred
        else:
            v = y - H @ m_pred
            S = H @ P_pred @ H + R
            K = P_pred @ H / S
            m = m_pred + K * v
            P = P_pred - np.outer(K, K) * S
            loglik += -0.5 * (np.log(2 * np.pi * S) + v * v / S)
        filtered.append({"mean": m, "cov": P})
    return filtered, predicted, loglik


def rts_smoother(filtered, predicted, F):
    n = len(filtered)
    smoothed = [filtered[-1]]
    for t in reversed(range(n - 1)):
        G = np.linalg.solve(predicted[t + 1]["cov"].T, F @ filtered[t]["cov"].T).T
        m = filtered[t]["mean"] + G @ (smoothed[-1]["mean"] - predicted[t + 1]["mean"])
        P = filtered[t]["cov"] + G @ (smoothed[-1]["cov"] - predicted[t + 1]["cov"]) @ G.T
        smoothed.append(dict(mean=m, cov=P))
    smoothed.reverse()
    return smoothed


TREND = np.array([1.0, 1.4, np.nan, 2.3, 2.2, np.nan, np.nan, 3.9])


def smoother_roughness(theta):
    q_level, q_slope, r = np.exp(theta)
    F = np.array([[1.0, 1.0], [0.0, 1.0]])
    H = np.array([1.0, 0.0])
    filtered, predicted, loglik = kalman_filter(
        TREND, F, H, np.diag([q_level, q_slope]), r, np.zeros(2), 10 * np.eye(2)
    )
    smoothed = rts_smoother(filtered, predicted, F)
    levels = np.array([s["mean"][0] for s in smoothed])
    widths = [np.sqrt(s["cov"][0, 0]) for s in smoothed]
    return -loglik + np.sum(np.diff(levels, n=2) ** 2) + 0.1 * max(widths)


# A bootstrap particle filter of stochastic volatility
def systematic_resample(weights, u):
    n = len(weights)
    positions = (np.arange(n) + u) / n
    indexes = np.zeros(n, dtype=int)
    cumulative = np.cumsum(weights)
    i, j = 0, 0
    while i < n:
        if positions[i] < cumulative[j] or j == n - 1:
            indexes[i] = j
            i += 1
        else:
            j += 1
    return indexes


def effective_sample_size(weights):
    return 1.0 / np.sum(np.square(weights))


class ParticleFilter:
    def __init__(self, particles, threshold=0.5):
        self.particles = particles
        self.n = len(particles)
        self.weights = np.ones(self.n) / self.n
        self.threshold = threshold
        self.resampled = 0

    def propagate(self, mu, phi, sigma, noise):
        self.particles = mu + phi * (self.particles - mu) + sigma * noise

    def weigh(self, y):
        logw = -0.5 * (np.log(2 * np.pi) + self.particles + y**2 * np.exp(-self.particles))
        shift = np.max(logw)
        w = self.weights * np.exp(logw - shift)
        total = np.sum(w)
        self.weights = w / total
        return shift + np.log(total)

    def maybe_resample(self, u):
        if effective_sample_size(self.weights) < self.threshold * self.n:
            idx = systematic_resample(self.weights, u)
            self.particles = self.particles[idx]
            self.weights = np.full(self.n, 1.0 / self.n)
            self.resampled += 1


PF_RNG = np.random.default_rng(5)
PF_START, PF_NOISE, PF_U = PF_RNG.normal(size=20), PF_RNG.normal(size=(6, 20)), PF_RNG.random(6)
RETURNS = np.array([0.2, -1.1, 2.5, -0.3, 0.9, -3.0])


def particle_filter_log_likelihood(theta):
    mu, phi, sigma = theta[0], np.tanh(theta[1]), np.exp(theta[2])
    pf = ParticleFilter(mu + sigma * PF_START / np.sqrt(1 - phi**2))
    loglik = 0.0
    for t, y in enumerate(RETURNS):
        if t > 0:
            pf.propagate(mu, phi, sigma, PF_NOISE[t])
        loglik += pf.weigh(y)
        pf.maybe_resample(PF_U[t])
    return loglik


# Hidden Markov models: forward-backward in logarithms, and the score of the best path
def logsumexp(a, axis=None, keepdims=False):
    m = np.max(a, axis=axis, keepdims=True)
    out = np.log(np.sum(np.exp(a - m), axis=axis, keepdims=True)) + m
    if not keepdims:
        out = np.squeeze(out, axis=axis)
    return out


def log_normalise(logits):
    return logits - logsumexp(logits, axis=-1, keepdims=True)


class GaussianHMM:
    def __init__(self, n_states, theta):
        k = n_states
        self.k = k
        parts = np.split(theta, [k, k + k * k, 2 * k + k * k])
        self.log_start = log_normalise(parts[0])
        self.log_trans = log_normalise(parts[1].reshape(k, k))
        self.means = parts[2]
        self.log_sd = parts[3]

    def emissions(self, obs):
        z = (obs[:, None] - self.means) / np.exp(self.log_sd)
        return -0.5 * z**2 - self.log_sd - 0.5 * np.log(2 * np.pi)

    def forward(self, log_e):
        T = len(log_e)
        alpha = np.empty((T, self.k))
        alpha[0] = self.log_start + log_e[0]
        for t in range(1, T):
            for j in range(self.k):
                alpha[t, j] = logsumexp(alpha[t - 1] + self.log_trans[:, j]) + log_e[t, j]
        return alpha

    def backward(self, log_e):
        T = len(log_e)
        beta = np.zeros((T, self.k))
        for t in range(T - 2, -1, -1):
            for i in range(self.k):
                beta[t, i] = logsumexp(self.log_trans[i] + log_e[t + 1] + beta[t + 1])
        return beta

    def posterior(self, obs):
        log_e = self.emissions(obs)
        alpha, beta = self.forward(log_e), self.backward(log_e)
        loglik = logsumexp(alpha[-1])
        return np.exp(alpha + beta - loglik), loglik

    def viterbi(self, obs):
        log_e = self.emissions(obs)
        T = len(obs)
        delta = self.log_start + log_e[0]
        back = []
        for t in range(1, T):
            scores = delta[:, None] + self.log_trans
            back.append(np.argmax(scores, axis=0))
            delta = np.max(scores, axis=0) + log_e[t]
        state = int(np.argmax(delta))
        path = [state]
        for pointers in reversed(back):
            state = pointers[state]
            path.append(state)
        path.reverse()
        return path, np.max(delta)


HMM_OBS = np.array([0.1, -0.2, 1.9, 2.2, 2.0, 0.3, 0.0])
HMM_THETA = np.array([0.1, -0.1, 1.0, -0.5, -0.3, 0.8, 0.0, 2.0, -0.5, -0.4])


def hmm_posterior_entropy(theta):
    model = GaussianHMM(2, theta)
    gamma, loglik = model.posterior(HMM_OBS)
    entropy = -np.sum(gamma * np.log(gamma + 1e-12))
    return entropy - loglik


def hmm_viterbi_score(theta):
    model = GaussianHMM(2, theta)
    path, score = model.viterbi(HMM_OBS)
    fit = 0.0
    for x, s in zip(HMM_OBS, path):
        fit += (x - model.means[s]) ** 2
    return score - 0.5 * fit


PROGRAMS = [
    (ekf_negative_log_likelihood, np.array([-4.0, -3.0, -3.0, 2.4])),
    (ukf_negative_log_likelihood, np.array([0.9, 0.4, 0.3, 0.6, -2.0])),
    (smoother_roughness, np.array([-2.0, -3.0, -1.0])),
    (particle_filter_log_likelihood, np.array([-0.2, 1.2, -1.0])),
    (hmm_posterior_entropy, HMM_THETA),
    (hmm_viterbi_score, HMM_THETA),
]
LONG = {ekf_negative_log_likelihood}
