"""python -m s2s source module:function [--grad | --jvp | --vjp | --value-and-grad] [--argnums 0,1]

Prints the generated Python of a function, or of a derivative of it.

    source    readable Python
    stages    every stage on the way to it
    ssa       the IR, with types in annotations
    loops     the fused scalar loops that are compiled

`module` is a module's name, looked for in the current directory first, or the path of a file.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

from . import api
from .errors import S2SError

WRAPS = {"grad": api.grad, "value_and_grad": api.value_and_grad, "jvp": api.jvp, "vjp": api.vjp}


def find(place: str) -> Callable:
    """Return the function that `module:function` names."""
    module_name, _, function_name = place.partition(":")
    if not function_name:
        raise SystemExit(f"s2s: write module:function, not {place!r}")
    if module_name.endswith(".py"):
        spec = importlib.util.spec_from_file_location(Path(module_name).stem, module_name)
        if spec is None or not Path(module_name).exists():
            raise SystemExit(f"s2s: there is no file {module_name}")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    else:
        sys.path.insert(0, "")
        module = importlib.import_module(module_name)
    found: object = module
    for part in function_name.split("."):
        if not hasattr(found, part):
            raise SystemExit(f"s2s: {module_name} has no {function_name}")
        found = getattr(found, part)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m s2s", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("source", "ssa", "loops", "stages"))
    parser.add_argument("function", help="module:function")
    which = parser.add_mutually_exclusive_group()
    for name in WRAPS:
        which.add_argument(f"--{name.replace('_', '-')}", dest="wrap", action="store_const",
                           const=name)
    parser.add_argument("--argnums", default="0", help="for --grad: which arguments, e.g. 0,1")
    options = parser.parse_args(arguments)
    try:
        t = find(options.function)
        if options.wrap in ("grad", "value_and_grad"):
            ks = tuple(map(int, options.argnums.split(",")))
            t = WRAPS[options.wrap](t, ks[0] if len(ks) == 1 else ks)
        elif options.wrap:
            t = WRAPS[options.wrap](t)
        t = api.as_transformed(t)
        match options.what:
            case "stages":
                for name, text in api.stages(t):
                    print(f"# ---- {name}\n{text}")
            case what:
                print(getattr(t.lower(), what), end="")
    except S2SError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
