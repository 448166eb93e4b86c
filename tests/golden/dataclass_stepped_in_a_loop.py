"""An object that a loop steps is its members: no object is made on the way, and its cotangent is one."""

from dataclasses import dataclass

import numpy as np


@dataclass
class State:
    pos: float
    vel: float

    def step(self, k, dt):
        vel = self.vel - dt * k * self.pos
        return State(self.pos + dt * vel, vel)


def f(state, k, n):
    for _ in range(n):
        state = state.step(k, 0.1)
    return np.hypot(state.pos, state.vel)


ARGS = (State(1.0, 0.2), 0.5, 4)
WRT = (0, 1)


# ------------------------------ the same, as the compiler sees it


def f_ssa(state: "State(pos: float64, vel: float64)", k: "float64", n: "int64"):
    state_pos: "float64" = state.pos
    state_vel: "float64" = state.vel
    t: "float64" = 0.1 * k
    for _ in range(n):
        t_1: "float64" = t * state_pos
        vel: "float64" = state_vel - t_1
        t_2: "float64" = 0.1 * vel
        pos: "float64" = state_pos + t_2
        state_pos = pos
        state_vel = vel
    t_3: "float64" = np.hypot(state_pos, state_vel)
    return t_3


# ------------------------------ what s2s makes of it


def f_grad(state, k, n):
    """The derivative of f (dataclass_stepped_in_a_loop.py, line 18) with respect to state and k,
    for state: State(pos: float, vel: float), k: float, n: int.
    """
    state_pos = state.pos
    state_vel = state.vel
    # step, line 2: vel = self.vel - dt * k * self.pos
    t = 0.1 * k
    # line 2: for _ in range(n):
    state_pos_tape = np.empty(max(n, 0))
    for i in range(n):
        state_pos_tape[i] = state_pos
        vel = state_vel - t * state_pos
        state_pos = state_pos + 0.1 * vel
        state_vel = vel
    # line 4: return np.hypot(state.pos, state.vel)
    t_1 = np.hypot(state_pos, state_vel)
    # line 4, backwards
    t_2 = 1 if t_1 == 0 else t_1
    with np.errstate(all="ignore"):
        state_pos_bar = state_pos / t_2
        state_vel_bar = state_vel / t_2
    # line 2, backwards
    t_3 = 0.0
    for i in range(n - 1, -1, -1):
        state_pos = state_pos_tape[i]
        vel_bar = state_vel_bar + 0.1 * state_pos_bar
        state_pos_bar -= vel_bar * t
        state_vel_bar = vel_bar
        t_3 -= vel_bar * state_pos
    # step, line 2, backwards
    k_bar = 0.1 * t_3
    return State(pos=state_pos_bar, vel=state_vel_bar), k_bar
