"""What idioms call: functions and classes that a program begins with, each if it is needed."""

PREAMBLE = {
    "damped": """
def damped(u, k):
    if k <= 0:
        return np.sin(u)
    return 0.5 * damped(0.9 * u, k - 1) + np.cos(u)
""",
    "tree_sum": """
def tree_sum(v):
    if len(v) < 2:
        return np.tanh(v[0])
    h = len(v) // 2
    return tree_sum(v[:h]) + 0.7 * tree_sum(v[h:])
""",
    "even": """
def even(u, k):
    return np.cos(u) if k == 0 else odd(0.8 * u, k - 1)


def odd(u, k):
    return np.sin(u) if k == 0 else even(u + 0.3, k - 1)
""",
    "bump": """
def bump(v, s):
    v[0] = v[0] * 0.5 + np.sin(s)
    v[1:] += 0.1 * s
""",
    "mix": """
def mix(v, w):
    v[1] = np.tanh(w[0]) + 0.5 * v[1]
    w[-1] = np.sin(v[0])
    return v[1] * w[-1]
""",
    "applied": """
def applied(g, u, *rest, scale=0.5, **others):
    s = g(u)
    for r in rest:
        s = s + scale * g(r)
    for k in others:
        s = s + 0.1 * others[k]
    return s
""",
    "safe_log": """
def safe_log(u):
    if u < 0.2:
        raise ValueError(f"too small: {u}")
    return np.log(u)
""",
    "rooted": """
def rooted(u):
    return np.tanh(math.sqrt(u) + 0.5)
""",
    "shared": """
def shared(u):
    w = 1.0 / u
    return np.sin(0.1 * w)
""",
    "Body": """
@dataclasses.dataclass
class Body:
    x: float
    h: np.ndarray

    def step(self, d):
        self.x = self.x + d * np.sin(self.x)
        self.h[0] = np.tanh(self.x)
        return self.energy()

    def energy(self):
        return 0.5 * self.x * np.cos(self.x) + np.mean(self.h)
""",
    "Pair": """
Pair = collections.namedtuple("Pair", "first second")
""",
    "scaled_by": """
def scaled_by(k):
    half = 0.5 * k

    def scaled(u, more=1.0):
        return np.sin(u) * half * more + k
    return scaled
""",
    "halved": """
def halving(g):
    @functools.wraps(g)
    def half(*args, **keywords):
        return 0.5 * g(*args, **keywords)
    return half


@halving
def halved(u, k=1):
    return np.sin(u) * k
""",
    "first_above": """
def first_above(t, c):
    for i in range(t.shape[0]):
        for j in range(t.shape[1]):
            if t[i, j] > c:
                return t[i, j] * 0.5 + 0.1 * j
        if i == 2:
            break
    else:
        return np.tanh(c)
    return np.mean(t) * c
""",
    "guarded": """
def guarded(u, k):
    try:
        if u > 0.9137:
            raise ValueError(u)
        if k % 2 == 0:
            return np.sin(u) / (k % 4)
        u = u * 0.5
    except ZeroDivisionError:
        return np.cos(u)
    except ValueError:
        u = np.tanh(u)
    else:
        u = u + 0.1
    finally:
        k += 1
    return u * 0.5 + 0.1 * k
""",
    "folded": """
def folded(part):
    if isinstance(part, tuple):
        return sum(0.5 * folded(p) for p in part)
    return np.sin(part)
""",
    "settled": """
def settled(v, u):
    for k in range(len(v)):
        u = 0.5 * u + np.sin(v[k])
        if abs(u) < 0.1137:
            return u
        while u > 1.2137:
            u = u * 0.5
            if k == 3:
                return u + 0.1
    return np.tanh(u)
""",
    "horner": """
def horner(*coefficients, at):
    total = 0.0
    for c in coefficients:
        total = total * at + c
    return np.tanh(total)
""",
    "Wave": """
@dataclasses.dataclass(frozen=True)
class Wave:
    height: float
    phase: float = 0.3

    @property
    def power(self):
        return 0.5 * np.tanh(self.height) ** 2

    @classmethod
    def unit(cls, phase):
        return cls(1.0, phase=phase)

    @staticmethod
    def bend(u):
        return np.arctan(u)

    def shifted(self, d):
        return Wave(self.height, 0.5 * self.phase + d)

    def __call__(self, u):
        return np.tanh(self.height) * np.sin(u + self.phase)
""",
    "bent": """
def bent_slope(u):
    return np.cos(u) * (1.0 + u) + np.sin(u)


def bent(u):
    return np.sin(u) * (1.0 + u)


bent.slope, bent_slope.slope = bent_slope, None  # for the oracle
""",
    "Mode": """
class Mode(enum.Enum):
    SINE = "sine"
    COSINE = 1
""",
    "waved": """
def waved(u, mode="sine", scale=None):
    if scale is None:
        scale = 0.5
    if mode == "sine" or mode is Mode.SINE:
        return np.sin(u) * scale
    elif mode == "tanh":
        return np.tanh(u * scale)
    return np.cos(u) + scale
""",
}
