"""Arrays whose memory is not laid out as kernels read it, as LLVM text: are they as wanted, and their copies.

Kernels read C-contiguous arrays of native byte order. An argument that is one in all but its strides, alignment or byte
order is copied before the kernel runs and given back after it; that costs a part of what the interpreter would need to
do nothing. Which axis is the fastest in memory may decide what a function does (`reshape` with order "K" or "A"), so a
compiled signature takes only arrays whose axes lie in the order it was traced with:

`strided_fits(array, ndarray, number, ndim, extents, mode, order)` tells whether it is one
(`strided_check.OrderMode` has the modes).
`gather(args, count, table)` copies each argument whose address has its highest bit set, which then is the address of
the array object; the table has two words for each: bytes of all elements, bytes of one number. It returns the list of
copies for `scatter`, which frees them; null: out of memory. Entries reach the three through functions of `dispatch`,
and nothing fits until there is such an array for the first time: most processes never compile or load this.
"""

from __future__ import annotations

from pullback.codegen.object import Layout
from pullback.codegen.strided_check import FITS_TEXT

STRIDED_EXPORTS = ("strided_fits", "gather", "scatter")
STRIDED_SYMBOLS = ("pb_take", "pb_give")
TAG = -(1 << 63)
"""Marks an address as that of an object. No address of a process has this bit."""


def strided_text(layout: Layout) -> str:
    """The module for an interpreter of that layout."""
    text = _GATHER_TEXT + FITS_TEXT + "".join(_plane_text(bits, swaps) for bits, swaps in _PLANES)
    for name in ("array_data", "array_ndim", "array_dims", "array_descr", "array_flags", "object_type"):
        text = text.replace(name.upper(), str(getattr(layout, name)))
    text = text.replace("ARRAY_STRIDES", str(layout.array_dims + 8))
    text = text.replace("DESCR_BYTEORDER", str(layout.descr_byteorder))
    return text.replace("DESCR_TYPE_NUM", str(layout.descr_type_num))


_PLANES = ((8, False), (16, False), (32, False), (64, False), (16, True), (32, True), (64, True))

_GATHER_TEXT = """
declare ptr @pb_take(i64)
declare void @pb_give(ptr)
declare i64 @llvm.abs.i64(i64, i1)
declare i64 @llvm.umin.i64(i64, i64)
declare i16 @llvm.bswap.i16(i16)
declare i32 @llvm.bswap.i32(i32)
declare i64 @llvm.bswap.i64(i64)

define ptr @gather(ptr %args, i64 %count, ptr %table) nounwind {
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %skip ], [ %i.next, %copied ]
  %head = phi ptr [ null, %entry ], [ %head, %skip ], [ %block, %copied ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %one, label %end
one:
  %i.next = add i64 %i, 1
  %at = getelementptr i64, ptr %args, i64 %i
  %word = load i64, ptr %at
  %tagged = icmp slt i64 %word, 0
  br i1 %tagged, label %take, label %skip
skip:
  br label %next
take:
  %bits = and i64 %word, 9223372036854775807
  %array = inttoptr i64 %bits to ptr
  %row = getelementptr [2 x i64], ptr %table, i64 %i
  %bytes = load i64, ptr %row
  %unit.at = getelementptr i64, ptr %row, i64 1
  %unit = load i64, ptr %unit.at
  %room = add i64 %bytes, 64
  %block = call ptr @pb_take(i64 %room)
  %none = icmp eq ptr %block, null
  br i1 %none, label %failed, label %copied
copied:
  store ptr %head, ptr %block
  %data = getelementptr i8, ptr %block, i64 64
  call void @copy(ptr %array, ptr %data, i64 %bytes, i64 %unit)
  store ptr %data, ptr %at
  br label %next
failed:
  call void @scatter(ptr %head)
  ret ptr null
end:
  ret ptr %head
}

define void @scatter(ptr %list) nounwind {
entry:
  br label %next
next:
  %block = phi ptr [ %list, %entry ], [ %following, %one ]
  %done = icmp eq ptr %block, null
  br i1 %done, label %end, label %one
one:
  %following = load ptr, ptr %block
  call void @pb_give(ptr %block)
  br label %next
end:
  ret void
}

; the elements in C order; complex numbers count as a last axis of two. The plane of the last axis and of the one that
; lies densest in memory is copied by a loop of its own.
define internal void @copy(ptr %array, ptr %data, i64 %bytes, i64 %unit) nounwind {
entry:
  %shape = alloca [66 x i64], align 16
  %from = alloca [66 x i64], align 16
  %to = alloca [66 x i64], align 16
  %index = alloca [66 x i64], align 16
  %empty = icmp eq i64 %bytes, 0
  br i1 %empty, label %end, label %start
start:
  %ndim.at = getelementptr i8, ptr %array, i64 ARRAY_NDIM
  %ndim = load i32, ptr %ndim.at
  %axes = zext i32 %ndim to i64
  %dims.at = getelementptr i8, ptr %array, i64 ARRAY_DIMS
  %dims = load ptr, ptr %dims.at
  %strides.at = getelementptr i8, ptr %array, i64 ARRAY_STRIDES
  %strides = load ptr, ptr %strides.at
  %source.at = getelementptr i8, ptr %array, i64 ARRAY_DATA
  %source = load ptr, ptr %source.at
  %descr.at = getelementptr i8, ptr %array, i64 ARRAY_DESCR
  %descr = load ptr, ptr %descr.at
  %byteorder.at = getelementptr i8, ptr %descr, i64 DESCR_BYTEORDER
  %byteorder = load i8, ptr %byteorder.at
  %swaps = icmp eq i8 %byteorder, 62
  br label %read
read:
  %r = phi i64 [ 0, %start ], [ %r.next, %read.one ]
  %elements = phi i64 [ 1, %start ], [ %elements.next, %read.one ]
  %reading = icmp ult i64 %r, %axes
  br i1 %reading, label %read.one, label %inner
read.one:
  %r.next = add i64 %r, 1
  %extent.at = getelementptr i64, ptr %dims, i64 %r
  %extent = load i64, ptr %extent.at
  %stride.at = getelementptr i64, ptr %strides, i64 %r
  %stride = load i64, ptr %stride.at
  %shape.at = getelementptr i64, ptr %shape, i64 %r
  store i64 %extent, ptr %shape.at
  %from.at = getelementptr i64, ptr %from, i64 %r
  store i64 %stride, ptr %from.at
  %index.at = getelementptr i64, ptr %index, i64 %r
  store i64 0, ptr %index.at
  %elements.next = mul i64 %elements, %extent
  br label %read
inner: ; the numbers of one element
  %element = udiv i64 %bytes, %elements
  %parts = udiv i64 %element, %unit
  %part.shape.at = getelementptr i64, ptr %shape, i64 %axes
  store i64 %parts, ptr %part.shape.at
  %part.from.at = getelementptr i64, ptr %from, i64 %axes
  store i64 %unit, ptr %part.from.at
  %part.index.at = getelementptr i64, ptr %index, i64 %axes
  store i64 0, ptr %part.index.at
  %complex = icmp ugt i64 %parts, 1
  %scalar = icmp eq i64 %axes, 0
  %keep = or i1 %complex, %scalar
  %extra = zext i1 %keep to i64
  %all = add i64 %axes, %extra
  br label %target
target: ; strides of the copy
  %t = phi i64 [ %all, %inner ], [ %t.next, %target.one ]
  %step = phi i64 [ %unit, %inner ], [ %step.next, %target.one ]
  %targets = icmp ugt i64 %t, 0
  br i1 %targets, label %target.one, label %choose
target.one:
  %t.next = sub i64 %t, 1
  %to.at = getelementptr i64, ptr %to, i64 %t.next
  store i64 %step, ptr %to.at
  %t.shape.at = getelementptr i64, ptr %shape, i64 %t.next
  %t.extent = load i64, ptr %t.shape.at
  %step.next = mul i64 %step, %t.extent
  br label %target
choose: ; the axis that lies densest, and the last one
  %last = sub i64 %all, 1
  %last.from.at = getelementptr i64, ptr %from, i64 %last
  %last.from = load i64, ptr %last.from.at
  %last.size = call i64 @llvm.abs.i64(i64 %last.from, i1 false)
  br label %look
look:
  %c = phi i64 [ 0, %choose ], [ %c.next, %look.one ]
  %best = phi i64 [ %last, %choose ], [ %best.next, %look.one ]
  %least = phi i64 [ %last.size, %choose ], [ %least.next, %look.one ]
  %looking = icmp ult i64 %c, %last
  br i1 %looking, label %look.one, label %fix
look.one:
  %c.next = add i64 %c, 1
  %c.from.at = getelementptr i64, ptr %from, i64 %c
  %c.from = load i64, ptr %c.from.at
  %c.size = call i64 @llvm.abs.i64(i64 %c.from, i1 false)
  %c.shape.at = getelementptr i64, ptr %shape, i64 %c
  %c.extent = load i64, ptr %c.shape.at
  %long = icmp ugt i64 %c.extent, 1
  %denser = icmp ult i64 %c.size, %least
  %better = and i1 %long, %denser
  %best.next = select i1 %better, i64 %c, i64 %best
  %least.next = select i1 %better, i64 %c.size, i64 %least
  br label %look
fix: ; that one and another axis are left to the loop over a plane: the outer loops see one index of them
  %two = icmp ne i64 %best, %last
  %several = icmp ne i64 %last, 0
  %neighbour = sub i64 %last, 1
  %partner = select i1 %two, i64 %last, i64 %neighbour
  %row.axis = select i1 %several, i64 %partner, i64 0
  %best.shape.at = getelementptr i64, ptr %shape, i64 %best
  %n = load i64, ptr %best.shape.at
  %best.from.at = getelementptr i64, ptr %from, i64 %best
  %sn = load i64, ptr %best.from.at
  %best.to.at = getelementptr i64, ptr %to, i64 %best
  %dn = load i64, ptr %best.to.at
  store i64 1, ptr %best.shape.at
  %row.shape.at = getelementptr i64, ptr %shape, i64 %row.axis
  %m = load i64, ptr %row.shape.at
  %row.from.at = getelementptr i64, ptr %from, i64 %row.axis
  %sm = load i64, ptr %row.from.at
  %row.to.at = getelementptr i64, ptr %to, i64 %row.axis
  %dm = load i64, ptr %row.to.at
  store i64 1, ptr %row.shape.at
  br label %plane
plane:
  %src = phi ptr [ %source, %fix ], [ %src.next, %stepped ]
  %dst = phi ptr [ %data, %fix ], [ %dst.next, %stepped ]
  %width = trunc i64 %unit to i32
  %swap.bit = select i1 %swaps, i32 16, i32 0
  %which = or i32 %width, %swap.bit
  switch i32 %which, label %plane.done [
    i32 1, label %p8
    i32 17, label %p8
    i32 2, label %p16
    i32 4, label %p32
    i32 8, label %p64
    i32 18, label %s16
    i32 20, label %s32
    i32 24, label %s64
  ]
PLANE_CALLS
plane.done:
  br label %carry
carry: ; the next index of the outer axes
  %a = phi i64 [ %all, %plane.done ], [ %axis, %wrap ]
  %src.now = phi ptr [ %src, %plane.done ], [ %src.back, %wrap ]
  %dst.now = phi ptr [ %dst, %plane.done ], [ %dst.back, %wrap ]
  %out = icmp eq i64 %a, 0
  br i1 %out, label %end, label %carry.one
carry.one:
  %axis = sub i64 %a, 1
  %size.at = getelementptr i64, ptr %shape, i64 %axis
  %size = load i64, ptr %size.at
  %x.at = getelementptr i64, ptr %index, i64 %axis
  %x = load i64, ptr %x.at
  %f.at = getelementptr i64, ptr %from, i64 %axis
  %f = load i64, ptr %f.at
  %g.at = getelementptr i64, ptr %to, i64 %axis
  %g = load i64, ptr %g.at
  %x.next = add i64 %x, 1
  %inside = icmp ult i64 %x.next, %size
  br i1 %inside, label %stepped, label %wrap
stepped:
  store i64 %x.next, ptr %x.at
  %src.next = getelementptr i8, ptr %src.now, i64 %f
  %dst.next = getelementptr i8, ptr %dst.now, i64 %g
  br label %plane
wrap:
  store i64 0, ptr %x.at
  %f.back = mul i64 %x, %f
  %f.minus = sub i64 0, %f.back
  %src.back = getelementptr i8, ptr %src.now, i64 %f.minus
  %g.back = mul i64 %x, %g
  %g.minus = sub i64 0, %g.back
  %dst.back = getelementptr i8, ptr %dst.now, i64 %g.minus
  br label %carry
end:
  ret void
}
""".replace(
    "PLANE_CALLS",
    "\n".join(
        f"""{"s" if swaps else "p"}{bits}:
  call void @{"swapped" if swaps else "plane"}.{bits}(ptr %src, ptr %dst, i64 %n, i64 %m,
      i64 %sn, i64 %sm, i64 %dn, i64 %dm)
  br label %plane.done"""
        for bits, swaps in _PLANES
    ),
)


def _plane_text(bits: int, swaps: bool) -> str:
    """Copying `n` by `m` numbers; of the first axis, which lies denser in memory, sixteen at a time."""
    name = f"{'swapped' if swaps else 'plane'}.{bits}"
    value = f"  %put = call i{bits} @llvm.bswap.i{bits}(i{bits} %got)\n" if swaps else ""
    return f"""
define internal void @{name}(ptr %src, ptr %dst, i64 %n, i64 %m, i64 %sn, i64 %sm, i64 %dn, i64 %dm) nounwind {{
entry:
  br label %strip
strip:
  %i0 = phi i64 [ 0, %entry ], [ %i1, %row ]
  %left = icmp ult i64 %i0, %n
  br i1 %left, label %begin, label %end
begin:
  %ahead = add i64 %i0, 16
  %i1 = call i64 @llvm.umin.i64(i64 %ahead, i64 %n)
  br label %row
row:
  %j = phi i64 [ 0, %begin ], [ %j.next, %row.end ]
  %rows = icmp ult i64 %j, %m
  br i1 %rows, label %row.begin, label %strip
row.begin:
  %s.row = mul i64 %j, %sm
  %d.row = mul i64 %j, %dm
  %s.at = getelementptr i8, ptr %src, i64 %s.row
  %d.at = getelementptr i8, ptr %dst, i64 %d.row
  br label %one
one:
  %i = phi i64 [ %i0, %row.begin ], [ %i.next, %one ]
  %s.off = mul i64 %i, %sn
  %d.off = mul i64 %i, %dn
  %from = getelementptr i8, ptr %s.at, i64 %s.off
  %to = getelementptr i8, ptr %d.at, i64 %d.off
  %got = load i{bits}, ptr %from, align 1
{value}  store i{bits} {"%put" if swaps else "%got"}, ptr %to, align 1
  %i.next = add i64 %i, 1
  %again = icmp ult i64 %i.next, %i1
  br i1 %again, label %one, label %row.end
row.end:
  %j.next = add i64 %j, 1
  br label %row
end:
  ret void
}}
"""
