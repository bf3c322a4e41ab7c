"""Whether an array is the wanted one in all but strides, alignment and byte order, as LLVM text; see `strided`."""

from __future__ import annotations

from enum import IntEnum


class OrderMode(IntEnum):
    """Which orders of the axes fit."""

    ANY = 0
    C = 1
    GIVEN = 2


FITS_TEXT = """
define i32 @strided_fits(ptr %given, ptr %cls, i32 %num, i32 %ndim, ptr %extents, i32 %mode, ptr %order) nounwind {
entry:
  %own.cls.at = getelementptr i8, ptr %given, i64 OBJECT_TYPE
  %own.cls = load ptr, ptr %own.cls.at
  %is.array = icmp eq ptr %own.cls, %cls
  br i1 %is.array, label %array, label %no
array:
  %own.ndim.at = getelementptr i8, ptr %given, i64 ARRAY_NDIM
  %own.ndim = load i32, ptr %own.ndim.at
  %same.ndim = icmp eq i32 %own.ndim, %ndim
  br i1 %same.ndim, label %typed, label %no
typed:
  %descr.at = getelementptr i8, ptr %given, i64 ARRAY_DESCR
  %descr = load ptr, ptr %descr.at
  %own.num.at = getelementptr i8, ptr %descr, i64 DESCR_TYPE_NUM
  %own.num = load i32, ptr %own.num.at
  %same.num = icmp eq i32 %own.num, %num
  %dims.at = getelementptr i8, ptr %given, i64 ARRAY_DIMS
  %dims = load ptr, ptr %dims.at
  %strides.at = getelementptr i8, ptr %given, i64 ARRAY_STRIDES
  %strides = load ptr, ptr %strides.at
  %flags.at = getelementptr i8, ptr %given, i64 ARRAY_FLAGS
  %flags = load i32, ptr %flags.at
  %axes = zext i32 %ndim to i64
  br i1 %same.num, label %axis, label %no
axis: ; the extents; is no stride longer than the one before it
  %k = phi i64 [ 0, %typed ], [ %k.next, %axis.done ]
  %last = phi i64 [ 9223372036854775807, %typed ], [ %last.next, %axis.done ]
  %falls = phi i1 [ true, %typed ], [ %falls.next, %axis.done ]
  %more = icmp ult i64 %k, %axes
  br i1 %more, label %axis.one, label %ordered
axis.one:
  %extent.at = getelementptr i64, ptr %dims, i64 %k
  %extent = load i64, ptr %extent.at
  %wanted.at = getelementptr i64, ptr %extents, i64 %k
  %wanted = load i64, ptr %wanted.at
  %stride.at = getelementptr i64, ptr %strides, i64 %k
  %stride = load i64, ptr %stride.at
  %size = call i64 @llvm.abs.i64(i64 %stride, i1 false)
  %same.extent = icmp eq i64 %extent, %wanted
  br i1 %same.extent, label %axis.done, label %no
axis.done:
  %k.next = add i64 %k, 1
  %single = icmp eq i64 %extent, 1
  %still = icmp eq i64 %stride, 0
  %idle = or i1 %single, %still
  %not.longer = icmp sle i64 %size, %last
  %fine = or i1 %idle, %not.longer
  %falls.next = and i1 %falls, %fine
  %last.next = select i1 %idle, i64 %last, i64 %size
  br label %axis
ordered:
  %contiguous.bit = and i32 %flags, 1
  %contiguous = icmp ne i32 %contiguous.bit, 0
  %flat = icmp ult i64 %axes, 2
  %straight = or i1 %contiguous, %flat
  %c.order = or i1 %straight, %falls
  %any = icmp eq i32 %mode, 0
  br i1 %any, label %yes, label %chosen
chosen:
  %wants.c = icmp eq i32 %mode, 1
  %as.wanted = icmp eq i1 %wants.c, %c.order
  br i1 %as.wanted, label %exact, label %no
exact:
  br i1 %wants.c, label %yes, label %pair
pair: ; each axis of the given order lies outside the next one; of equal strides, the first axis does
  %p = phi i64 [ 1, %exact ], [ %p.next, %pair.done ]
  %pairs = icmp ult i64 %p, %axes
  br i1 %pairs, label %pair.one, label %yes
pair.one:
  %before = sub i64 %p, 1
  %outer.at = getelementptr i64, ptr %order, i64 %before
  %outer = load i64, ptr %outer.at
  %inner.at = getelementptr i64, ptr %order, i64 %p
  %inner = load i64, ptr %inner.at
  %outer.stride.at = getelementptr i64, ptr %strides, i64 %outer
  %outer.stride = load i64, ptr %outer.stride.at
  %inner.stride.at = getelementptr i64, ptr %strides, i64 %inner
  %inner.stride = load i64, ptr %inner.stride.at
  %outer.size = call i64 @llvm.abs.i64(i64 %outer.stride, i1 false)
  %inner.size = call i64 @llvm.abs.i64(i64 %inner.stride, i1 false)
  %longer = icmp ugt i64 %outer.size, %inner.size
  %equal = icmp eq i64 %outer.size, %inner.size
  %first = icmp ult i64 %outer, %inner
  %tie = and i1 %equal, %first
  %right = or i1 %longer, %tie
  br i1 %right, label %pair.done, label %no
pair.done:
  %p.next = add i64 %p, 1
  br label %pair
yes:
  ret i32 1
no:
  ret i32 0
}
"""
