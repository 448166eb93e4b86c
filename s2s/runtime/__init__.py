"""The runtime of generated code: load, compile, cache and guard it.

    llvm/        LLVM modules: helper functions, splitting, compilation in two threads
    debug/       loading of text, so that errors name the user's line; traps, memory checks
    intrinsics/  element accesses, memory and checks in native code
    kernels/     BLAS, LAPACK, SciPy, vector math, and calls of them
    threads/     thread pool and parallel loops
    emit/        text to LLVM IR
    entry/       checks and conversions of the arguments of native code
    cache/       on-disk cache
    numba/       Numba's compiler, configured
    call/        compiled functions, their guards and fallbacks

Each imports only what stands above it (s2s/LAYERS).
"""
