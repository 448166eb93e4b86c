"""The runtime of generated code: load, compile, cache and guard it.

    llvm/        modules of LLVM: helper functions, splitting, two threads
    debug/       text to functions whose errors name the user's line; traps and memory checks
    intrinsics/  elements and memory of arrays in native code
    kernels/     BLAS, LAPACK, SciPy, vector math, and the ops that call them
    threads/     the pool, and loops over it
    emit/        text to LLVM's code
    entry/       what native code asks of its arguments, and does to them, before it runs
    cache/       machine code and programs on disk
    numba/       Numba's compiler, as s2s sets it up
    call/        a compiled function, its guards and its fallbacks

Each imports only what stands above it (s2s/LAYERS).
"""
