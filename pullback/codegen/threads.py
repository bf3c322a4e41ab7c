"""The thread pool, as LLVM text: `void pb_parallel_for(ptr function, ptr context, i64 count)`.

It calls `function(context, i64 chunk)` for each chunk below `count`, shared among the caller and the workers.

One job at a time. What the threads compete for is one 64-bit ticket, `job number << 32 | chunks not yet claimed`:
whoever lowers it by one owns a chunk, and only then reads the job's function, context and count, which stay as they
are until every claimed chunk is done. A worker that comes late finds nothing to claim and disturbs nobody, so nobody
waits for it. A caller that finds the pool in use (a nested call, another thread) runs its chunks itself.

Workers start with the first job, spin for some ten microseconds behind each, and then sleep on a condition variable.
"""

from __future__ import annotations

import platform
import sys

POOL_EXPORTS = (
    "pb_parallel_for",
    "pb_thread_count",
    "pb_pool_configure",
    "pb_pool_reset",
    "pb_pool_workers",
    "pb_blas_enter",
    "pb_blas_leave",
)
POOL_SYMBOLS = (
    "pthread_create",
    "pthread_detach",
    "pthread_mutex_init",
    "pthread_mutex_lock",
    "pthread_mutex_unlock",
    "pthread_cond_init",
    "pthread_cond_wait",
    "pthread_cond_broadcast",
    "pthread_sigmask",
    "sigfillset",
    "sched_yield",
)

WORKER_SPINS = 4096
"""Pauses (15 to 50 ns each) before an idle worker sleeps: longer than the gap between two kernels of one program."""

YIELD_EVERY = 64
"""Pauses (a power of two) after which whoever waits offers its core, which may be the one that the other side needs."""

_PAUSE_INTRINSICS = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}


def pool_text() -> str:
    """The pool's LLVM module."""
    machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    declaration, pause = _PAUSE_INTRINSICS.get(machine, ("", ""))
    text = _POOL_TEXT.replace("WORKER_SPINS", str(WORKER_SPINS)).replace("YIELD_MASK", str(YIELD_EVERY - 1))
    text = text.replace("SIG_SETMASK", "3" if sys.platform == "darwin" else "2")
    return text.replace("DECLARE_PAUSE", declaration).replace("PAUSE", pause)


# 256 bytes hold the mutexes, condition variables and signal sets of every libc.
_POOL_TEXT = """
DECLARE_PAUSE
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i32 @sched_yield()

@ticket = internal global i64 0, align 128
@done = internal global i64 0, align 128
@busy = internal global i32 0, align 128
@sleepers = internal global i32 0, align 128
@function = internal global ptr null, align 128
@context = internal global ptr null
@count = internal global i64 0
@wanted = internal global i64 1
@workers = internal global i64 0
@blas.lock = internal global i32 0, align 64
@blas.depth = internal global i32 0
@blas.threads = internal global i32 0
@mutex = internal global [256 x i8] zeroinitializer, align 64
@wake = internal global [256 x i8] zeroinitializer, align 64

; how many threads may work, the caller included
define void @pb_pool_configure(i64 %threads) nounwind {
entry:
  store i64 %threads, ptr @wanted
  ret void
}

define i64 @pb_thread_count() nounwind {
entry:
  %threads = load i64, ptr @wanted
  ret i64 %threads
}

define i64 @pb_pool_workers() nounwind {
entry:
  %number = load i64, ptr @workers
  ret i64 %number
}

; in the child of a fork, which has none of its parent's threads
define void @pb_pool_reset() nounwind {
entry:
  store i64 0, ptr @workers
  store i64 0, ptr @ticket
  store i64 0, ptr @done
  store i32 0, ptr @sleepers
  store i32 0, ptr @blas.depth
  store atomic i32 0, ptr @blas.lock seq_cst, align 4
  store atomic i32 0, ptr @busy seq_cst, align 4
  ret void
}

; While anybody is inside, the BLAS has one thread: its own threads and the pool's would wait for one another's cores,
; milliseconds at a time. The first to enter notes how many it had, the last to leave gives them back.
define void @pb_blas_enter(ptr %get, ptr %set) nounwind {
entry:
  br label %spin
spin:
  %taken = atomicrmw xchg ptr @blas.lock, i32 1 acquire
  %held = icmp ne i32 %taken, 0
  br i1 %held, label %again, label %inside
again:
  %ignored = call i32 @sched_yield()
  br label %spin
inside:
  %depth = load i32, ptr @blas.depth
  %deeper = add i32 %depth, 1
  store i32 %deeper, ptr @blas.depth
  %first = icmp eq i32 %depth, 0
  br i1 %first, label %note, label %leave
note:
  %threads = call i32 %get()
  store i32 %threads, ptr @blas.threads
  call void %set(i32 1)
  br label %leave
leave:
  store atomic i32 0, ptr @blas.lock release, align 4
  ret void
}

define void @pb_blas_leave(ptr %set) nounwind {
entry:
  br label %spin
spin:
  %taken = atomicrmw xchg ptr @blas.lock, i32 1 acquire
  %held = icmp ne i32 %taken, 0
  br i1 %held, label %again, label %inside
again:
  %ignored = call i32 @sched_yield()
  br label %spin
inside:
  %depth = load i32, ptr @blas.depth
  %shallower = sub i32 %depth, 1
  store i32 %shallower, ptr @blas.depth
  %last = icmp eq i32 %shallower, 0
  br i1 %last, label %restore, label %leave
restore:
  %threads = load i32, ptr @blas.threads
  call void %set(i32 %threads)
  br label %leave
leave:
  store atomic i32 0, ptr @blas.lock release, align 4
  ret void
}

define void @pb_parallel_for(ptr %function, ptr %context, i64 %count) nounwind {
entry:
  %single = icmp sle i64 %count, 1
  %huge = icmp sgt i64 %count, 2147483647
  %wanted = load i64, ptr @wanted
  %alone = icmp sle i64 %wanted, 1
  %a = or i1 %single, %huge
  %b = or i1 %a, %alone
  br i1 %b, label %serial, label %try
try:
  %taken = atomicrmw xchg ptr @busy, i32 1 acquire
  %in.use = icmp ne i32 %taken, 0
  br i1 %in.use, label %serial, label %ours
ours:
  %missing = sub i64 %wanted, 1
  %started = load i64, ptr @workers
  %ready = icmp sge i64 %started, %missing
  br i1 %ready, label %publish, label %start
start:
  call void @start_workers(i64 %missing)
  br label %publish
publish:
  store ptr %function, ptr @function
  store ptr %context, ptr @context
  store i64 %count, ptr @count
  store atomic i64 0, ptr @done monotonic, align 8
  %old = load atomic i64, ptr @ticket monotonic, align 8
  %job = lshr i64 %old, 32
  %job.next = add i64 %job, 1
  %high = shl i64 %job.next, 32
  %new = or i64 %high, %count
  store atomic i64 %new, ptr @ticket seq_cst, align 8
  %asleep = load atomic i32, ptr @sleepers seq_cst, align 4
  %must.wake = icmp sgt i32 %asleep, 0
  br i1 %must.wake, label %rouse, label %share
rouse:
  %r1 = call i32 @pthread_mutex_lock(ptr @mutex)
  %r2 = call i32 @pthread_cond_broadcast(ptr @wake)
  %r3 = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %share
share:
  call void @work()
  br label %wait
wait:
  %spins = phi i64 [ 1, %share ], [ %spins.next, %pause ], [ 1, %offer ]
  %finished = load atomic i64, ptr @done acquire, align 8
  %all = icmp eq i64 %finished, %count
  br i1 %all, label %end, label %more
more:
  %turn = and i64 %spins, YIELD_MASK
  %patient = icmp ne i64 %turn, 0
  br i1 %patient, label %pause, label %offer
pause:
  PAUSE
  %spins.next = add i64 %spins, 1
  br label %wait
offer:
  %r4 = call i32 @sched_yield()
  br label %wait
end:
  store atomic i32 0, ptr @busy release, align 4
  ret void
serial:
  br label %next
next:
  %i = phi i64 [ 0, %serial ], [ %i.next, %one ]
  %left = icmp slt i64 %i, %count
  br i1 %left, label %one, label %serial.end
one:
  call void %function(ptr %context, i64 %i)
  %i.next = add i64 %i, 1
  br label %next
serial.end:
  ret void
}

; claim and run chunks until none is left
define internal void @work() nounwind {
entry:
  br label %look
look:
  %seen = load atomic i64, ptr @ticket acquire, align 8
  br label %claim
claim:
  %ticket = phi i64 [ %seen, %look ], [ %current, %try ]
  %left = and i64 %ticket, 4294967295
  %none = icmp eq i64 %left, 0
  br i1 %none, label %end, label %try
try:
  %lower = sub i64 %ticket, 1
  %pair = cmpxchg ptr @ticket, i64 %ticket, i64 %lower acq_rel acquire
  %current = extractvalue { i64, i1 } %pair, 0
  %won = extractvalue { i64, i1 } %pair, 1
  br i1 %won, label %run, label %claim
run:
  %function = load ptr, ptr @function
  %context = load ptr, ptr @context
  %count = load i64, ptr @count
  %chunk = sub i64 %count, %left
  call void %function(ptr %context, i64 %chunk)
  %before = atomicrmw add ptr @done, i64 1 release
  br label %look
end:
  ret void
}

define internal ptr @worker(ptr %unused) nounwind {
entry:
  br label %turn
turn:
  call void @work()
  br label %spin
spin:
  %spins = phi i64 [ 1, %turn ], [ %spins.next, %pause ], [ %spins.next, %offer ]
  %ticket = load atomic i64, ptr @ticket monotonic, align 8
  %left = and i64 %ticket, 4294967295
  %some = icmp ne i64 %left, 0
  br i1 %some, label %turn, label %idle
idle:
  %spins.next = add i64 %spins, 1
  %patient = icmp ult i64 %spins, WORKER_SPINS
  br i1 %patient, label %linger, label %sleep
linger:
  %turns = and i64 %spins, YIELD_MASK
  %stay = icmp ne i64 %turns, 0
  br i1 %stay, label %pause, label %offer
pause:
  PAUSE
  br label %spin
offer:
  %r0 = call i32 @sched_yield()
  br label %spin
sleep:
  %r1 = call i32 @pthread_mutex_lock(ptr @mutex)
  %s1 = atomicrmw add ptr @sleepers, i32 1 seq_cst
  br label %check
check:
  %ticket.now = load atomic i64, ptr @ticket seq_cst, align 8
  %left.now = and i64 %ticket.now, 4294967295
  %some.now = icmp ne i64 %left.now, 0
  br i1 %some.now, label %awake, label %rest
rest:
  %r2 = call i32 @pthread_cond_wait(ptr @wake, ptr @mutex)
  br label %check
awake:
  %s2 = atomicrmw sub ptr @sleepers, i32 1 seq_cst
  %r3 = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %turn
}

; All signals are blocked in workers: they belong to the threads that Python knows.
define internal void @start_workers(i64 %missing) noinline nounwind {
entry:
  %thread = alloca [16 x i8], align 16
  %all = alloca [256 x i8], align 16
  %old = alloca [256 x i8], align 16
  %started = load i64, ptr @workers
  %fresh = icmp eq i64 %started, 0
  br i1 %fresh, label %prepare, label %mask
prepare:
  %r1 = call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  %r2 = call i32 @pthread_cond_init(ptr @wake, ptr null)
  br label %mask
mask:
  %r3 = call i32 @sigfillset(ptr %all)
  %r4 = call i32 @pthread_sigmask(i32 SIG_SETMASK, ptr %all, ptr %old)
  br label %next
next:
  %i = phi i64 [ %started, %mask ], [ %i.next, %created ]
  %left = icmp slt i64 %i, %missing
  br i1 %left, label %create, label %end
create:
  %outcome = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr null)
  %good = icmp eq i32 %outcome, 0
  br i1 %good, label %created, label %end
created:
  %handle = load ptr, ptr %thread
  %r5 = call i32 @pthread_detach(ptr %handle)
  %i.next = add i64 %i, 1
  br label %next
end:
  store i64 %i, ptr @workers
  %r6 = call i32 @pthread_sigmask(i32 SIG_SETMASK, ptr %old, ptr null)
  ret void
}
"""
