"""Box and unbox arrays: conversion between Python's arrays and those of native code, without
Numba's slow wrappers.

Numba's wrapper builds an ndarray for each result, and gets the class ndarray by unpickling it, with
a Python function: 0.3 microseconds per returned array, half of a call that returns a hundred. Here
the class is a constant of the wrapper, like the dtype. Considered: arrays allocated by Python and
passed in (`out=` does that), which is slower for small ones; an array type of our own, with its own
boxing, to which each function would have to cast its results.

Note [What is said for each array]
Numba emits the unboxing of each argument inline, and for each reference count the extraction of all
members of the array, of which one is used: sixty lines per array, all of which Python emits and
prints and LLVM parses during a first call. Here a function of the module unboxes arrays, and only
the counted member is extracted: a third of the lines.

Note [Whose memory it is]
An array's memory is owned by an object that frees it, its base. Numba creates that object through
Python's calling convention: a tuple with the address as an integer, which is then unpacked again, a
third of the cost of an array. Here it is allocated and filled in directly. Where the object's
layout (a header and the address) is not as expected, or the tables of NumPy's functions are not
found, Numba's code is used.
"""

from __future__ import annotations

import copy
import ctypes
import functools
import sys

import numpy as np
from llvmlite import binding, ir
from numba import types

from ..numba_internals import MemInfo, NativeValue, NRTContext, PythonAPI, as_dtype, cgutils
from .noalias_alloc import read_before

ITEMSIZE = 3  # index among the words of an array
# PyArray_NewFromDescr and PyArray_SetBaseObject in NumPy's table of functions
NEW, SET_BASE = 94, 282
WRITEABLE = 0x400
# their symbols in native code
OWNER, MAKE, OWN = "s2s_owner_of_memory", "s2s_new_array", "s2s_set_owner"
WORD, INT, POINTER = ir.IntType(64), ir.IntType(32), ir.IntType(8).as_pointer()


@functools.cache
def is_known() -> bool:
    """Whether native code can build arrays itself; the symbols that it needs are then defined."""
    try:
        table = (np._core if hasattr(np, "_core") else np.core)._multiarray_umath._ARRAY_API
        content = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)((
            "PyCapsule_GetPointer", ctypes.pythonapi))
        functions = ctypes.cast(content(table, None), ctypes.POINTER(ctypes.c_void_p))
        if (sys.implementation.name != "cpython" or object.__basicsize__ != 16
            or MemInfo.__basicsize__ != 24):
            return False
        for name, address in ((OWNER, id(MemInfo)), (MAKE, functions[NEW]),
                              (OWN, functions[SET_BASE])):
            binding.add_symbol(name, address)
    except (AttributeError, TypeError, ValueError):
        return False
    return True


class Boxing(PythonAPI):
    """Numba's interface to Python's API, with our conversion of arrays."""

    constants = None  # constants of the wrapper, while its result is boxed
    array_class = None  # ndarray, while an array is boxed

    def to_native_value(self, typ, obj):
        """Note [What is said for each array]"""
        if type(typ) is not types.Array or not isinstance(typ.dtype, (types.Number, types.Boolean)):
            return super().to_native_value(typ, obj)
        place = cgutils.alloca_once(self.builder, self.context.get_value_type(typ))
        itemsize = ir.Constant(WORD, as_dtype(typ.dtype).itemsize)
        failed = self.builder.call(self.taking(),
                                   [obj, self.builder.bitcast(place, POINTER), itemsize])
        return NativeValue(self.builder.load(place),
                           is_error=self.builder.icmp_unsigned("!=", failed, ir.Constant(INT, 0)))

    def taking(self) -> ir.Function:
        """The function that unboxes an array of items of some size; it returns nonzero, with an
        exception set, if the object is none.
        """
        name = "s2s_taken_array"
        if name in self.module.globals:
            return self.module.globals[name]
        made = ir.Function(self.module, ir.FunctionType(INT, [POINTER, POINTER, WORD]), name)
        made.linkage = "internal"
        array, place, itemsize = made.args
        inner = copy.copy(self)
        inner.builder = builder = ir.IRBuilder(made.append_basic_block())
        failed = inner.nrt_adapt_ndarray_from_python(array, place)
        found = builder.load(builder.gep(builder.bitcast(place, WORD.as_pointer()),
                                         [ir.Constant(WORD, ITEMSIZE)]))
        bad = builder.or_(builder.icmp_unsigned("!=", failed, ir.Constant(INT, 0)),
                          builder.icmp_unsigned("!=", found, itemsize))
        with builder.if_then(bad, likely=False):
            inner.err_set_string(
                "PyExc_TypeError",
                "can't unbox array from PyObject into native value.  "
                "The object maybe of a different type")
        builder.ret(builder.zext(bad, INT))
        return made

    def from_native_value(self, typ, val, env_manager=None):
        before, self.constants = self.constants, env_manager
        try:
            return super().from_native_value(typ, val, env_manager)
        finally:
            self.constants = before

    def nrt_adapt_ndarray_to_python(self, aryty, ary, dtypeptr):
        if self.constants is not None:
            self.array_class = self.constants.read_const(self.constants.add_const(aryty.box_type))
        try:
            return super().nrt_adapt_ndarray_to_python(aryty, ary, dtypeptr)
        finally:
            self.array_class = None

    def unserialize(self, structptr):
        return super().unserialize(structptr) if self.array_class is None else self.array_class

    def _get_function(self, fnty, name):
        found = super()._get_function(fnty, name)
        return (self.making(found)
                if name == "NRT_adapt_ndarray_to_python_acqref" and self.array_class is not None
                and is_known() else found)

    def making(self, theirs: ir.Function) -> ir.Function:
        """The function that boxes an array: `theirs`, except for memory with a single owner, as
        Note [Whose memory it is] says.
        """
        name = "s2s_boxed_array"
        if name in self.module.globals:
            return self.module.globals[name]
        made = ir.Function(self.module, theirs.function_type, name)
        made.linkage = "internal"
        array, cls, rank, writes, dtype = made.args
        builder = ir.IRBuilder(made.append_basic_block())
        words = builder.bitcast(array, WORD.as_pointer())

        def pointer(k) -> ir.Value:
            return builder.gep(words, [ir.Constant(WORD, k) if isinstance(k, int) else k])

        def function(name: str, result: ir.Type, *args: ir.Type) -> ir.Function:
            return super(Boxing, self)._get_function(ir.FunctionType(result, args), name)

        null = ir.Constant(POINTER, None)
        memory, parent = (builder.load(pointer(k)) for k in (0, 1))
        is_ours = builder.and_(builder.icmp_unsigned("!=", memory, ir.Constant(WORD, 0)),
                               builder.icmp_unsigned("==", parent, ir.Constant(WORD, 0)))
        with builder.if_then(builder.not_(is_ours), likely=False):
            builder.ret(builder.call(theirs, made.args))
        owner_class = (self.module.globals.get(OWNER)
                       or ir.GlobalVariable(self.module, ir.IntType(8), OWNER))
        owner = builder.call(function("_PyObject_New", POINTER, POINTER), [owner_class])
        with builder.if_then(builder.icmp_unsigned("==", owner, null), likely=False):
            builder.ret(null)
        builder.store(memory,
                      builder.gep(builder.bitcast(owner, WORD.as_pointer()),
                                  [ir.Constant(WORD, 2)]))
        builder.call(function("NRT_incref", ir.VoidType(), POINTER),
                     [builder.inttoptr(memory, POINTER)])
        builder.call(function("Py_IncRef", ir.VoidType(), POINTER), [dtype])
        flags = builder.select(builder.icmp_unsigned("!=", writes, ir.Constant(INT, 0)),
                               ir.Constant(INT, WRITEABLE), ir.Constant(INT, 0))
        extents, steps = (pointer(5),
                          pointer(builder.add(builder.zext(rank, WORD), ir.Constant(WORD, 5))))
        new = function(MAKE, POINTER, POINTER, POINTER, INT, WORD.as_pointer(), WORD.as_pointer(),
                       POINTER, INT, POINTER)
        data = builder.inttoptr(builder.load(pointer(4)), POINTER)
        result = builder.call(new, [cls, dtype, rank, extents, steps, data, flags, null])
        with builder.if_then(builder.icmp_unsigned("==", result, null), likely=False):
            builder.call(function("Py_DecRef", ir.VoidType(), POINTER), [owner])
            builder.ret(null)
        # which steals the reference to the owner
        failed = builder.call(function(OWN, INT, POINTER, POINTER), [result, owner])
        with builder.if_then(builder.icmp_signed("<", failed, ir.Constant(INT, 0)), likely=False):
            builder.call(function("Py_DecRef", ir.VoidType(), POINTER), [result])
            builder.ret(null)
        builder.ret(result)
        return made


class ReferenceCounts(NRTContext):
    """Reference counting that looks at the one counted member of an array; loads from the array
    happen before its release.
    """

    def decref(self, builder, typ, value):
        self.read(builder, typ, value)
        super().decref(builder, typ, value)

    def read(self, builder, typ, value) -> None:
        """Order loads from arrays before their release (noalias_alloc.py)."""
        if type(typ) is types.Array:
            read_before(builder,
                        builder.extract_value(
                            value,
                            self._context.data_model_manager[typ].get_field_position("data")))
        elif isinstance(typ, types.BaseTuple):
            for k, each in enumerate(typ.types):
                self.read(builder, each, builder.extract_value(value, k))

    def get_meminfos(self, builder, ty, val):
        if type(ty) is not types.Array:
            return super().get_meminfos(builder, ty, val)
        return [(ty,
                 builder.extract_value(
                     val, self._context.data_model_manager[ty].get_field_position("meminfo")))]


def with_boxes(context):
    """A copy of Numba's target context `context` whose wrappers box and unbox arrays as described
    above.
    """
    context = copy.copy(context)
    context.nrt = ReferenceCounts(context, context.enable_nrt)
    context.get_python_api = functools.partial(Boxing, context)
    return context
