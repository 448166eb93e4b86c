"""Back end: IR to Python text, as the readable form, the loop form for Numba, and CUDA kernels.

    syntax/     Python's syntax trees: building, names, text
    parallel/   loops that threads share, and what they cost
    loopir/     the ops of the loop form, and builders of loops
    arrays/     rewriting on whole arrays, before loops are made
    lower/      ops on arrays become loop nests
    loops/      passes over loops
    print/      IR to text
    cuda/       kernels, and the host code that launches them

Each imports only what stands above it (s2s/LAYERS).  loop_pipeline.py has the tables of passes from
arrays to loops, and verify_loops.py the invariants of these.
"""
