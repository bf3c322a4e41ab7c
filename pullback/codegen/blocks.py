"""Blocks of memory kept between calls, as LLVM text: large arenas, and the data of large result arrays.

A fresh block from the system costs a page fault for each page, three times the cost of writing one that was in use
before. Blocks that arenas and dropped results give back are therefore kept, newest first, up to a bound in bytes.
NumPy arrays get theirs through a NumPy memory handler, so they look and behave like any other array.

All of it runs under the interpreter's lock, which is what guards the table.
"""

from __future__ import annotations

import sys

BLOCK_EXPORTS = ("pb_take", "pb_give", "pb_new_large_array", "pb_blocks_configure", "pb_blocks_held", "pb_handler")


def block_symbols() -> tuple[str, ...]:
    """Externals of the module."""
    python = ("Py_IncRef", "Py_DecRef", "numpy_new_from_descr", "numpy_set_handler", "numpy_ndarray")
    return (*python, "malloc", "free", "memset", "memcpy", *(("madvise",) if _is_linux() else ()))


def blocks_text() -> str:
    """The module for this platform."""
    return _BLOCKS_TEXT.replace("HUGE_PAGES", _huge_pages())


def _is_linux() -> bool:
    return sys.platform.startswith("linux")


def _huge_pages() -> str:
    """Ask for huge pages: a fresh block then costs a page fault for every 2 MiB and not for every 4 KiB."""
    if not _is_linux():
        return ""
    return """
  %page.at = add i64 %raw.bits, 4095
  %page = and i64 %page.at, -4096
  %page.pointer = inttoptr i64 %page to ptr
  %large = icmp uge i64 %size, 4194304
  br i1 %large, label %advise, label %advised
advise:
  %advice = call i32 @madvise(ptr %page.pointer, i64 %size, i32 14)
  br label %advised
advised:"""


# A block: the address malloc gave (at -16), the size (at -8), then the data. Kept blocks stand in the table from the
# oldest to the newest. Data begins at a page: a loop that stores some bytes ahead of what it loads, counted modulo the
# page, is a fifth slower (the processor takes the loads to depend on the stores), and large arrays of NumPy's own begin
# 16 bytes behind a page.
_BLOCKS_TEXT = """
%Slot = type { ptr, i64 }
%Allocator = type { ptr, ptr, ptr, ptr, ptr }
%Handler = type { [127 x i8], i8, %Allocator }

declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @malloc(i64)
declare void @free(ptr)
declare i32 @madvise(ptr, i64, i32)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare ptr @numpy_new_from_descr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare ptr @numpy_set_handler(ptr)
@numpy_ndarray = external global i8

@slots = internal global [16 x %Slot] zeroinitializer, align 64
@used = internal global i64 0
@held = internal global i64 0
@limit = internal global i64 0
@capsule = internal global ptr null
@pb_handler = global %Handler {
  [127 x i8] c"pullbackNAME_PADDING", i8 1,
  %Allocator { ptr null, ptr @handler_malloc, ptr @handler_calloc, ptr @handler_realloc, ptr @handler_free }
}, align 16

; how many bytes may be kept; the capsule that makes NumPy use this memory
define void @pb_blocks_configure(i64 %bytes, ptr %handler) nounwind {
entry:
  store i64 %bytes, ptr @limit
  store ptr %handler, ptr @capsule
  call void @make_room(i64 0)
  ret void
}

define i64 @pb_blocks_held() nounwind {
entry:
  %bytes = load i64, ptr @held
  ret i64 %bytes
}

; take the block out of place %place, closing the gap
define internal ptr @remove(i64 %place) nounwind {
entry:
  %at = getelementptr %Slot, ptr @slots, i64 %place
  %block = load ptr, ptr %at
  %size.at = getelementptr %Slot, ptr %at, i64 0, i32 1
  %size = load i64, ptr %size.at
  %held = load i64, ptr @held
  %held.next = sub i64 %held, %size
  store i64 %held.next, ptr @held
  %used = load i64, ptr @used
  %last = sub i64 %used, 1
  store i64 %last, ptr @used
  br label %next
next:
  %i = phi i64 [ %place, %entry ], [ %i.next, %shift ]
  %left = icmp ult i64 %i, %last
  br i1 %left, label %shift, label %end
shift:
  %i.next = add i64 %i, 1
  %from = getelementptr %Slot, ptr @slots, i64 %i.next
  %to = getelementptr %Slot, ptr @slots, i64 %i
  %slot = load %Slot, ptr %from
  store %Slot %slot, ptr %to
  br label %next
end:
  ret ptr %block
}

define internal void @release(ptr %block) nounwind {
entry:
  %raw.at = getelementptr i8, ptr %block, i64 -16
  %raw = load ptr, ptr %raw.at
  call void @free(ptr %raw)
  ret void
}

; give the oldest blocks back until %size more bytes and one more block fit
define internal void @make_room(i64 %size) nounwind {
entry:
  br label %next
next:
  %used = load i64, ptr @used
  %held = load i64, ptr @held
  %limit = load i64, ptr @limit
  %some = icmp ne i64 %used, 0
  %full = icmp uge i64 %used, 16
  %total = add i64 %held, %size
  %heavy = icmp ugt i64 %total, %limit
  %over = or i1 %full, %heavy
  %evict = and i1 %some, %over
  br i1 %evict, label %oldest, label %end
oldest:
  %block = call ptr @remove(i64 0)
  call void @release(ptr %block)
  br label %next
end:
  ret void
}

; a block of at least %wanted bytes, aligned to 4096, or null; a kept one if it is at most a quarter too large
define ptr @pb_take(i64 %wanted) nounwind {
entry:
  %padded = add i64 %wanted, 4095
  %size = and i64 %padded, -4096
  %overflow = icmp ult i64 %padded, %wanted
  %quarter = lshr i64 %size, 2
  %most = add i64 %size, %quarter
  %used = load i64, ptr @used
  br i1 %overflow, label %none, label %next
next:
  %i = phi i64 [ %used, %entry ], [ %place, %look ]
  %left = icmp ne i64 %i, 0
  br i1 %left, label %look, label %fresh
look:
  %place = sub i64 %i, 1
  %size.at = getelementptr %Slot, ptr @slots, i64 %place, i32 1
  %found = load i64, ptr %size.at
  %enough = icmp uge i64 %found, %size
  %close = icmp ule i64 %found, %most
  %good = and i1 %enough, %close
  br i1 %good, label %reuse, label %next
reuse:
  %kept = call ptr @remove(i64 %place)
  ret ptr %kept
fresh:
  %room = add i64 %size, 4160
  %raw = call ptr @malloc(i64 %room)
  %failed = icmp eq ptr %raw, null
  br i1 %failed, label %none, label %got
none:
  ret ptr null
got:
  %raw.bits = ptrtoint ptr %raw to i64HUGE_PAGES
  %behind = add i64 %raw.bits, 4111
  %data.bits = and i64 %behind, -4096
  %data = inttoptr i64 %data.bits to ptr
  %raw.at = getelementptr i8, ptr %data, i64 -16
  store ptr %raw, ptr %raw.at
  %own.at = getelementptr i8, ptr %data, i64 -8
  store i64 %size, ptr %own.at
  ret ptr %data
}

define void @pb_give(ptr %block) nounwind {
entry:
  %size.at = getelementptr i8, ptr %block, i64 -8
  %size = load i64, ptr %size.at
  %limit = load i64, ptr @limit
  %fits = icmp ule i64 %size, %limit
  br i1 %fits, label %keep, label %drop
keep:
  call void @make_room(i64 %size)
  %used = load i64, ptr @used
  %at = getelementptr %Slot, ptr @slots, i64 %used
  store ptr %block, ptr %at
  %slot.size.at = getelementptr %Slot, ptr %at, i64 0, i32 1
  store i64 %size, ptr %slot.size.at
  %used.next = add i64 %used, 1
  store i64 %used.next, ptr @used
  %held = load i64, ptr @held
  %held.next = add i64 %held, %size
  store i64 %held.next, ptr @held
  ret void
drop:
  call void @release(ptr %block)
  ret void
}

define internal ptr @handler_malloc(ptr %context, i64 %size) nounwind {
entry:
  %block = call ptr @pb_take(i64 %size)
  ret ptr %block
}

define internal ptr @handler_calloc(ptr %context, i64 %count, i64 %each) nounwind {
entry:
  %size = mul i64 %count, %each
  %block = call ptr @pb_take(i64 %size)
  %none = icmp eq ptr %block, null
  br i1 %none, label %end, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %block, i8 0, i64 %size, i1 false)
  br label %end
end:
  ret ptr %block
}

define internal ptr @handler_realloc(ptr %context, ptr %old, i64 %size) nounwind {
entry:
  %block = call ptr @pb_take(i64 %size)
  %fresh = icmp eq ptr %old, null
  %none = icmp eq ptr %block, null
  %skip = or i1 %fresh, %none
  br i1 %skip, label %end, label %copy
copy:
  %old.size.at = getelementptr i8, ptr %old, i64 -8
  %old.size = load i64, ptr %old.size.at
  %shrinks = icmp ult i64 %size, %old.size
  %count = select i1 %shrinks, i64 %size, i64 %old.size
  call void @llvm.memcpy.p0.p0.i64(ptr %block, ptr %old, i64 %count, i1 false)
  call void @pb_give(ptr %old)
  br label %end
end:
  ret ptr %block
}

define internal void @handler_free(ptr %context, ptr %block, i64 %size) nounwind {
entry:
  %none = icmp eq ptr %block, null
  br i1 %none, label %end, label %give
give:
  call void @pb_give(ptr %block)
  br label %end
end:
  ret void
}

define ptr @pb_new_large_array(ptr %descr, i32 %ndim, ptr %dims) nounwind {
entry:
  %limit = load i64, ptr @limit
  %off = icmp eq i64 %limit, 0
  br i1 %off, label %plain, label %kept
plain:
  %plain.array = call ptr @array(ptr %descr, i32 %ndim, ptr %dims)
  ret ptr %plain.array
kept:
  %handler = load ptr, ptr @capsule
  %usual = call ptr @numpy_set_handler(ptr %handler)
  %failed = icmp eq ptr %usual, null
  br i1 %failed, label %end, label %make
make:
  %made = call ptr @array(ptr %descr, i32 %ndim, ptr %dims)
  %ours = call ptr @numpy_set_handler(ptr %usual)
  call void @Py_DecRef(ptr %ours)
  call void @Py_DecRef(ptr %usual)
  br label %end
end:
  %array = phi ptr [ null, %kept ], [ %made, %make ]
  ret ptr %array
}

define internal ptr @array(ptr %descr, i32 %ndim, ptr %dims) nounwind {
entry:
  call void @Py_IncRef(ptr %descr)
  %array = call ptr @numpy_new_from_descr(ptr @numpy_ndarray, ptr %descr, i32 %ndim, ptr %dims, ptr null, ptr null,
                                          i32 0, ptr null)
  ret ptr %array
}
""".replace("NAME_PADDING", "\\00" * (127 - len("pullback")))
