"""The call of a native function object, as LLVM text; also `__get__` and the cleaning up that entries share.

A function object's chain is null or a tuple whose first item is a bytes object: which entries to try, and in what
order (`pullback.runtime.routes` has its layout). A call begins with the entry that took the last one, goes on to the
next kind of arguments where the arguments do not fit, and along the tree of decisions where a guard is not as expected;
the entry that takes it is written to the table. What none takes goes to `self._native_miss(entry, status, *args,
**kwargs)`, with the address and status of the last one whose arguments fitted but which gave up (else 0, 0).

`pb_unchanged(table)` compares memory with a table: the number of words and of blocks, then for each word an address, a
mask and the word that must be there under the mask, then for each block an address, a size and the address of a copy.

The chain is held during the call: another thread, or a finaliser run by the garbage collector, may replace it, and the
code lives as long as the chain.
"""

from __future__ import annotations

from pullback.codegen.object import Layout

DISPATCH_EXPORTS = (
    *("pb_call", "pb_bind", "pb_drop", "pb_serial_for", "pb_unchanged", "pb_copy_dict"),
    *("pb_strided_fits", "pb_gather", "pb_scatter", "pb_strided_configure"),
)
DISPATCH_SYMBOLS = (
    "Py_IncRef",
    "Py_DecRef",
    "PyLong_FromLongLong",
    "PyMem_Malloc",
    "PyMem_Free",
    "PyErr_NoMemory",
    "PyObject_VectorcallMethod",
    "PyMethod_New",
    "_Py_NoneStruct",
    "memcmp",
    "memcpy",
    "pb_miss_name",
)


def dispatch_text(layout: Layout) -> str:
    """The module for an interpreter of that layout."""
    text = _DISPATCH_TEXT.replace("CHAIN_FIELD", str(layout.function_fields + 8))
    text = text.replace("TUPLE_ITEMS", str(layout.tuple_items)).replace("BYTES_DATA", str(layout.bytes_data))
    return text.replace("CONTAINER_SIZE", str(layout.container_size))


_DISPATCH_TEXT = """
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyMem_Malloc(i64)
declare void @PyMem_Free(ptr)
declare ptr @PyErr_NoMemory()
declare ptr @PyObject_VectorcallMethod(ptr, ptr, i64, ptr)
declare ptr @PyMethod_New(ptr, ptr)
declare i32 @memcmp(ptr, ptr, i64)
declare ptr @memcpy(ptr, ptr, i64)
@_Py_NoneStruct = external global i8
@pb_miss_name = external global i8

define ptr @pb_call(ptr %self, ptr %args, i64 %flagged, ptr %names) nounwind {
entry:
  %count = and i64 %flagged, 9223372036854775807
  %chain.at = getelementptr i8, ptr %self, i64 CHAIN_FIELD
  %chain = load ptr, ptr %chain.at
  %empty = icmp eq ptr %chain, null
  br i1 %empty, label %python, label %native
native:
  call void @Py_IncRef(ptr %chain)
  %table.at = getelementptr i8, ptr %chain, i64 TUPLE_ITEMS
  %table = load ptr, ptr %table.at
  %words = getelementptr i8, ptr %table, i64 BYTES_DATA
  %families.at = getelementptr i64, ptr %words, i64 1
  %families = load i64, ptr %families.at
  %first = load i64, ptr %words
  %rows = getelementptr i64, ptr %words, i64 2
  %none = icmp eq i64 %families, 0
  br i1 %none, label %exhausted, label %next
next:
  %number = phi i64 [ %first, %native ], [ %following, %misfit ], [ %sibling, %guarded ]
  %kinds = phi i64 [ %families, %native ], [ %kinds.left, %misfit ], [ %kinds, %guarded ]
  %depth = phi i64 [ -1, %native ], [ -1, %misfit ], [ %guard, %guarded ]
  %others = phi i64 [ 0, %native ], [ 0, %misfit ], [ %others.left, %guarded ]
  %who = phi i64 [ 0, %native ], [ %who, %misfit ], [ %code.bits, %guarded ]
  %why = phi i64 [ 0, %native ], [ %why, %misfit ], [ %status, %guarded ]
  %row = getelementptr [4 x i64], ptr %rows, i64 %number
  %code = load ptr, ptr %row
  %result = call ptr %code(ptr %args, i64 %count, ptr %names)
  %bits = ptrtoint ptr %result to i64
  %tagged = trunc i64 %bits to i1
  br i1 %tagged, label %refused, label %done
done:
  store i64 %number, ptr %words
  call void @Py_DecRef(ptr %chain)
  ret ptr %result
refused:
  %status = ashr i64 %bits, 1
  %code.bits = ptrtoint ptr %code to i64
  %fits = icmp ne i64 %status, 0
  br i1 %fits, label %stopped, label %misfit
misfit:
  %following.at = getelementptr i64, ptr %row, i64 1
  %following = load i64, ptr %following.at
  %kinds.left = sub i64 %kinds, 1
  %all = icmp eq i64 %kinds.left, 0
  br i1 %all, label %exhausted, label %next
stopped:
  %guard = sub i64 %status, 1
  %jumps.at = getelementptr i64, ptr %row, i64 3
  %jumps = load i64, ptr %jumps.at
  %forked = icmp ult i64 %guard, %jumps
  br i1 %forked, label %fork, label %exhausted
fork:
  %place.at = getelementptr i64, ptr %row, i64 2
  %place = load i64, ptr %place.at
  %jump.index = add i64 %place, %guard
  %jump.at = getelementptr i64, ptr %words, i64 %jump.index
  %jump = load i64, ptr %jump.at
  %sibling = and i64 %jump, 4294967295
  %outcomes = lshr i64 %jump, 32
  %deeper = icmp sgt i64 %guard, %depth
  br i1 %deeper, label %guarded, label %again
again:
  %same = icmp eq i64 %guard, %depth
  %one.less = sub i64 %others, 1
  %rest = select i1 %same, i64 %one.less, i64 0
  br label %guarded
guarded:
  %others.left = phi i64 [ %outcomes, %fork ], [ %rest, %again ]
  %hopeless = icmp eq i64 %others.left, 0
  br i1 %hopeless, label %exhausted, label %next
exhausted:
  %who.out = phi i64 [ 0, %native ], [ %who, %misfit ], [ %code.bits, %stopped ], [ %code.bits, %guarded ]
  %why.out = phi i64 [ 0, %native ], [ %why, %misfit ], [ %status, %stopped ], [ %status, %guarded ]
  call void @Py_DecRef(ptr %chain)
  br label %python
python:
  %who.last = phi i64 [ 0, %entry ], [ %who.out, %exhausted ]
  %why.last = phi i64 [ 0, %entry ], [ %why.out, %exhausted ]
  %python.result = call ptr @python_path(ptr %self, ptr %args, i64 %count, ptr %names, i64 %who.last, i64 %why.last)
  ret ptr %python.result
}

; self._native_miss(who, why, *args, **kwargs)
define internal ptr @python_path(ptr %self, ptr %args, i64 %count, ptr %names, i64 %who, i64 %why) noinline nounwind {
entry:
  %few = alloca [64 x ptr], align 16
  %named = icmp ne ptr %names, null
  br i1 %named, label %keywords, label %sized
keywords:
  %size.at = getelementptr i8, ptr %names, i64 CONTAINER_SIZE
  %size = load i64, ptr %size.at
  br label %sized
sized:
  %keyword.count = phi i64 [ 0, %entry ], [ %size, %keywords ]
  %given = add i64 %count, %keyword.count
  %total = add i64 %given, 3
  %fits = icmp ule i64 %total, 64
  br i1 %fits, label %ready, label %many
many:
  %bytes = shl i64 %total, 3
  %block = call ptr @PyMem_Malloc(i64 %bytes)
  %none = icmp eq ptr %block, null
  br i1 %none, label %no.memory, label %ready
no.memory:
  %error = call ptr @PyErr_NoMemory()
  ret ptr null
ready:
  %stack = phi ptr [ %few, %sized ], [ %block, %many ]
  %who.object = call ptr @PyLong_FromLongLong(i64 %who)
  %why.object = call ptr @PyLong_FromLongLong(i64 %why)
  store ptr %self, ptr %stack
  %who.at = getelementptr ptr, ptr %stack, i64 1
  store ptr %who.object, ptr %who.at
  %why.at = getelementptr ptr, ptr %stack, i64 2
  store ptr %why.object, ptr %why.at
  %rest = getelementptr ptr, ptr %stack, i64 3
  br label %copy
copy:
  %i = phi i64 [ 0, %ready ], [ %i.next, %copy.one ]
  %left = icmp ult i64 %i, %given
  br i1 %left, label %copy.one, label %copied
copy.one:
  %from = getelementptr ptr, ptr %args, i64 %i
  %argument = load volatile ptr, ptr %from
  %to = getelementptr ptr, ptr %rest, i64 %i
  store ptr %argument, ptr %to
  %i.next = add i64 %i, 1
  br label %copy
copied:
  %no.who = icmp eq ptr %who.object, null
  %no.why = icmp eq ptr %why.object, null
  %broken = or i1 %no.who, %no.why
  br i1 %broken, label %clean, label %call
call:
  %positional = add i64 %count, 3
  %called = call ptr @PyObject_VectorcallMethod(ptr @pb_miss_name, ptr %stack, i64 %positional, ptr %names)
  br label %clean
clean:
  %result = phi ptr [ null, %copied ], [ %called, %call ]
  call void @Py_DecRef(ptr %who.object)
  call void @Py_DecRef(ptr %why.object)
  br i1 %fits, label %end, label %release
release:
  call void @PyMem_Free(ptr %stack)
  br label %end
end:
  ret ptr %result
}

; tp_descr_get, as for Python functions
define ptr @pb_bind(ptr %self, ptr %instance, ptr %cls) nounwind {
entry:
  %missing = icmp eq ptr %instance, null
  %is.none = icmp eq ptr %instance, @_Py_NoneStruct
  %unbound = or i1 %missing, %is.none
  br i1 %unbound, label %itself, label %method
itself:
  call void @Py_IncRef(ptr %self)
  ret ptr %self
method:
  %bound = call ptr @PyMethod_New(ptr %self, ptr %instance)
  ret ptr %bound
}

define void @pb_drop(ptr %objects, i64 %count) nounwind {
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %one ]
  %left = icmp ult i64 %i, %count
  br i1 %left, label %one, label %end
one:
  %at = getelementptr ptr, ptr %objects, i64 %i
  %object = load ptr, ptr %at
  call void @Py_DecRef(ptr %object)
  %i.next = add i64 %i, 1
  br label %next
end:
  ret void
}

define i32 @pb_unchanged(ptr %table) nounwind {
entry:
  %words = load i64, ptr %table
  %blocks.at = getelementptr i64, ptr %table, i64 1
  %blocks = load i64, ptr %blocks.at
  %first = getelementptr i64, ptr %table, i64 2
  %first.block = getelementptr { ptr, i64, i64 }, ptr %first, i64 %words
  %end = getelementptr { ptr, i64, i64 }, ptr %first.block, i64 %blocks
  br label %next
next:
  %row = phi ptr [ %first, %entry ], [ %row.next, %one ]
  %left = icmp ult ptr %row, %first.block
  br i1 %left, label %one, label %next.block
one:
  %place = load ptr, ptr %row
  %mask.at = getelementptr i64, ptr %row, i64 1
  %mask = load i64, ptr %mask.at
  %expected.at = getelementptr i64, ptr %row, i64 2
  %expected = load i64, ptr %expected.at
  %word = load i64, ptr %place, align 1
  %masked = and i64 %word, %mask
  %equal = icmp eq i64 %masked, %expected
  %row.next = getelementptr i64, ptr %row, i64 3
  br i1 %equal, label %next, label %other
next.block:
  %block = phi ptr [ %first.block, %next ], [ %block.next, %one.block ]
  %left.block = icmp ult ptr %block, %end
  br i1 %left.block, label %one.block, label %same
one.block:
  %start = load ptr, ptr %block
  %size.at = getelementptr i64, ptr %block, i64 1
  %size = load i64, ptr %size.at
  %copy.at = getelementptr i64, ptr %block, i64 2
  %copy = load ptr, ptr %copy.at
  %order = call i32 @memcmp(ptr %start, ptr %copy, i64 %size)
  %equal.block = icmp eq i32 %order, 0
  %block.next = getelementptr i64, ptr %block, i64 3
  br i1 %equal.block, label %next.block, label %other
same:
  ret i32 1
other:
  ret i32 0
}

; A dictionary's table as it is in one moment, that is, without letting go of the interpreter's lock: the addresses of
; keys and of values kept apart, the shape of the table, the number of entries, the entries, the values kept apart.
; Returns how many words these are; they are in the buffer if it has so many.
define i64 @pb_copy_dict(ptr %dict, i64 %values.offset, ptr %buffer, i64 %capacity) nounwind {
entry:
  %keys.at = getelementptr i8, ptr %dict, i64 32
  %keys = load ptr, ptr %keys.at
  %values.at = getelementptr i8, ptr %dict, i64 40
  %values = load ptr, ptr %values.at
  %shape.at = getelementptr i8, ptr %keys, i64 8
  %shape.word = load i32, ptr %shape.at
  %shape = zext i32 %shape.word to i64
  %count.at = getelementptr i8, ptr %keys, i64 24
  %count = load i64, ptr %count.at
  %kind.high = lshr i64 %shape, 16
  %kind = and i64 %kind.high, 255
  %general = icmp eq i64 %kind, 0
  %size = select i1 %general, i64 3, i64 2
  %entries = mul i64 %count, %size
  %split = icmp ne ptr %values, null
  %apart = select i1 %split, i64 %count, i64 0
  %both = add i64 %entries, %apart
  %needed = add i64 %both, 4
  %fits = icmp ule i64 %needed, %capacity
  br i1 %fits, label %copy, label %end
copy:
  store ptr %keys, ptr %buffer
  %to.values = getelementptr i64, ptr %buffer, i64 1
  store ptr %values, ptr %to.values
  %to.shape = getelementptr i64, ptr %buffer, i64 2
  store i64 %shape, ptr %to.shape
  %to.count = getelementptr i64, ptr %buffer, i64 3
  store i64 %count, ptr %to.count
  %log.high = lshr i64 %shape, 8
  %log = and i64 %log.high, 255
  %index.bytes = shl i64 1, %log
  %first.offset = add i64 %index.bytes, 32
  %first = getelementptr i8, ptr %keys, i64 %first.offset
  %to.entries = getelementptr i64, ptr %buffer, i64 4
  %entry.bytes = shl i64 %entries, 3
  %done = call ptr @memcpy(ptr %to.entries, ptr %first, i64 %entry.bytes)
  br i1 %split, label %copy.values, label %end
copy.values:
  %own = getelementptr i8, ptr %values, i64 %values.offset
  %to.own = getelementptr i64, ptr %to.entries, i64 %entries
  %own.bytes = shl i64 %apart, 3
  %done.too = call ptr @memcpy(ptr %to.own, ptr %own, i64 %own.bytes)
  br label %end
end:
  ret i64 %needed
}

; the functions of the part `strided`, once it is loaded: until then no array fits that needs them
@strided.functions = internal global [3 x ptr] zeroinitializer

define void @pb_strided_configure(ptr %fits, ptr %gather, ptr %scatter) nounwind {
entry:
  %gather.at = getelementptr ptr, ptr @strided.functions, i64 1
  store ptr %gather, ptr %gather.at
  %scatter.at = getelementptr ptr, ptr @strided.functions, i64 2
  store ptr %scatter, ptr %scatter.at
  store ptr %fits, ptr @strided.functions
  ret void
}

define i32 @pb_strided_fits(ptr %given, ptr %cls, i32 %num, i32 %ndim, ptr %extents, i32 %mode, ptr %order) nounwind {
entry:
  %function = load ptr, ptr @strided.functions
  %missing = icmp eq ptr %function, null
  br i1 %missing, label %no, label %ask
ask:
  %fits = call i32 %function(ptr %given, ptr %cls, i32 %num, i32 %ndim, ptr %extents, i32 %mode, ptr %order)
  ret i32 %fits
no:
  ret i32 0
}

define ptr @pb_gather(ptr %args, i64 %count, ptr %table) nounwind {
entry:
  %at = getelementptr ptr, ptr @strided.functions, i64 1
  %function = load ptr, ptr %at
  %list = call ptr %function(ptr %args, i64 %count, ptr %table)
  ret ptr %list
}

define void @pb_scatter(ptr %list) nounwind {
entry:
  %none = icmp eq ptr %list, null
  br i1 %none, label %end, label %drop
drop:
  %at = getelementptr ptr, ptr @strided.functions, i64 2
  %function = load ptr, ptr %at
  call void %function(ptr %list)
  br label %end
end:
  ret void
}

; stands in for pb_parallel_for where there are no threads
define void @pb_serial_for(ptr %function, ptr %context, i64 %count) nounwind {
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %one ]
  %left = icmp slt i64 %i, %count
  br i1 %left, label %one, label %end
one:
  call void %function(ptr %context, i64 %i)
  %i.next = add i64 %i, 1
  br label %next
end:
  ret void
}
"""
