"""What a module of CUDA code, and what a kernel of it, consists of, in numbers."""

import ast
import re

COLUMNS = ("launches", "one thread", "CuPy", "numbers", "arrays")
ALLOCATES = {"empty", "zeros", "asarray"}


def counts(text: str) -> dict[str, int]:
    """The numbers of the columns in a module of CUDA code."""
    main = ast.parse(text).body[-1]
    calls = [node for node in ast.walk(main) if isinstance(node, ast.Call)]
    launches = [c for c in calls if isinstance(c.func, ast.Subscript)]
    names = [ast.unparse(c.func) for c in calls]
    return {
        "launches": len(launches),
        "one thread": sum(ast.unparse(c.func.slice) == "(1, 1)" for c in launches),
        "CuPy": sum(name.startswith("cp.") and name.split(".")[-1] not in ALLOCATES
                    or name.split(".")[-1] in ("sum", "max", "min") for name in names)
                + sum(isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
                      for node in ast.walk(main)),
        "numbers": names.count("number"),
        "arrays": names.count("to_numpy"),
    }


def instructions(ptx: str) -> int:
    """The number of instructions of PTX."""
    return len(re.findall(r"^\s+(?:@!?%p\d+ )?[a-z][\w.:]*[ ;].*;$|^\s+ret;$", ptx, re.M))
