"""The disk cache returns exactly what was stored, or nothing; it trusts nobody else's files."""

import os
import stat
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from pullback.codegen.object import Captured, DictOf, Kind, ListOf, Signature, Static, SupportObject, TupleOf
from pullback.errors import ParseError
from pullback.ir.types import tensor_type
from pullback.runtime.cache import DiskCache, cache_folder, cache_key
from pullback.runtime.encode import compiled_from_bytes, compiled_to_bytes, support_from_bytes, support_to_bytes
from tests.runtime.kit import (
    array_arg,
    array_result,
    compiled_object,
    native_runtime,
    number_arg,
    number_result,
    signature_of,
)

KEY = cache_key("some", "parts")
posix = pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "deep" / "cache")


def only_file(cache: DiskCache) -> Path:
    (file,) = cache.folder.iterdir()
    return file


def test_what_was_stored_comes_back(cache: DiskCache) -> None:
    assert cache.get(KEY) is None
    data = os.urandom(100_000)
    cache.put(KEY, data)
    assert cache.get(KEY) == data
    assert DiskCache(cache.folder).get(KEY) == data
    cache.put(KEY, b"other")
    assert cache.get(KEY) == b"other"
    cache.put(KEY, b"")
    assert cache.get(KEY) == b""
    cache.drop(KEY)
    assert cache.get(KEY) is None


def test_keys_depend_on_every_part_and_where_it_ends() -> None:
    keys = {cache_key("ab", "c"), cache_key("a", "bc"), cache_key("abc"), cache_key("ab", b"c", ""), cache_key()}
    assert len(keys) == 5
    assert cache_key("ab", "c") == cache_key(b"ab", "c")


@posix
def test_folder_and_files_belong_to_the_user_alone(cache: DiskCache) -> None:
    before = os.umask(0)
    try:
        cache.put(KEY, b"data")
    finally:
        os.umask(before)
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(only_file(cache).stat().st_mode) == 0o600


def damage_cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def damage_empty(_: bytes) -> bytes:
    return b""


def damage_bit(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def damage_header(data: bytes) -> bytes:
    return bytes([data[0] ^ 1]) + data[1:]


def damage_checksum(data: bytes) -> bytes:
    return data[:20] + bytes([data[20] ^ 1]) + data[21:]


def damage_longer(data: bytes) -> bytes:
    return data + b"\0"


def damage_noise(data: bytes) -> bytes:
    return os.urandom(len(data))


@pytest.mark.parametrize(
    "damage",
    [damage_cut, damage_empty, damage_bit, damage_header, damage_checksum, damage_longer, damage_noise],
)
def test_a_damaged_entry_is_a_miss_and_is_deleted(cache: DiskCache, damage: object) -> None:
    cache.put(KEY, b"the code of a function")
    file = only_file(cache)
    file.write_bytes(damage(file.read_bytes()))  # type: ignore[operator]
    assert cache.get(KEY) is None
    assert not file.exists()
    cache.put(KEY, b"compiled again")
    assert cache.get(KEY) == b"compiled again"


def test_an_entry_under_another_name_is_a_miss(cache: DiskCache) -> None:
    cache.put(KEY, b"the code of a function")
    other = cache_key("another")
    only_file(cache).rename(cache.folder / f"{other}.pbo")
    assert cache.get(other) is None
    assert list(cache.folder.iterdir()) == []


@posix
def test_files_that_others_could_have_written_are_not_read(cache: DiskCache) -> None:
    cache.put(KEY, b"data")
    only_file(cache).chmod(0o666)
    assert cache.get(KEY) is None
    assert list(cache.folder.iterdir()) == []


@posix
def test_links_and_pipes_are_not_read(cache: DiskCache, tmp_path: Path) -> None:
    cache.put(KEY, b"data")
    file = only_file(cache)
    real = tmp_path / "real"
    file.rename(real)
    file.symlink_to(real)
    assert cache.get(KEY) is None
    file.unlink()
    os.mkfifo(file)
    assert cache.get(KEY) is None
    cache.put(KEY, b"data")
    assert cache.get(KEY) == b"data"


@posix
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o722])
def test_a_folder_that_others_may_write_to_is_refused_and_said_so_once(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    cache = DiskCache(folder)
    cache.put(KEY, b"data")
    folder.chmod(mode)
    with pytest.warns(RuntimeWarning, match="others may write to it.*PULLBACK_CACHE_DIR"):
        assert cache.get(KEY) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.put(cache_key("new"), b"data")
    assert len(list(folder.iterdir())) == 1


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_a_folder_or_file_of_another_user_is_refused(cache: DiskCache) -> None:
    cache.put(KEY, b"data")
    os.chown(only_file(cache), 12345, -1)
    assert cache.get(KEY) is None
    cache.put(KEY, b"data")
    os.chown(cache.folder, 12345, -1)
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert cache.get(KEY) is None


def test_a_place_that_cannot_be_used_is_a_miss(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    for folder in (file, file / "below", Path("/proc/nowhere/cache")):
        cache = DiskCache(folder)
        cache.put(KEY, b"data")
        assert cache.get(KEY) is None


def test_the_least_recently_used_files_go_first(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, limit=10_000)
    for number in range(8):
        cache.put(cache_key(str(number)), bytes(2000))
        file = tmp_path / f"{cache_key(str(number))}.pbo"
        os.utime(file, (1e9 + number, 1e9 + number))
    assert cache.get(cache_key("0")) == bytes(2000)  # now it counts as used
    (tmp_path / ".old.tmp").write_bytes(b"left behind")
    os.utime(tmp_path / ".old.tmp", (1e9, 1e9))
    DiskCache(tmp_path, limit=10_000).put(cache_key("new"), bytes(2000))
    left = {number for number in range(8) if (tmp_path / f"{cache_key(str(number))}.pbo").exists()}
    assert left == {0, 7, 6} or left == {0, 7}
    assert not (tmp_path / ".old.tmp").exists()
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 10_000


def test_many_threads_and_processes_may_use_one_folder(tmp_path: Path) -> None:
    keys = [cache_key(str(number)) for number in range(5)]
    bad: list[bytes] = []

    def work() -> None:
        cache = DiskCache(tmp_path)
        for turn in range(60):
            key = keys[turn % 5]
            data = cache.get(key)
            if data is not None and data != key.encode() * 1000:
                bad.append(data)
            cache.put(key, key.encode() * 1000)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not bad
    assert not list(tmp_path.glob("*.tmp"))
    assert len(list(tmp_path.iterdir())) == 5


def test_the_folder_comes_from_the_option_the_variable_or_the_platform() -> None:
    assert cache_folder("/a", {"PULLBACK_CACHE_DIR": "/b"}) == Path("/a")
    assert cache_folder("", {"PULLBACK_CACHE_DIR": "/b"}) == Path("/b")
    if sys.platform == "linux":
        assert cache_folder("", {"HOME": "/h"}) == Path("/h/.cache/pullback")
        assert cache_folder("", {"HOME": "/h", "XDG_CACHE_HOME": "/x"}) == Path("/x/pullback")


EVERY_NODE = Signature(
    (
        TupleOf((array_arg((2, 3), "f4"), number_arg(Kind.FLOAT, Kind.SCALAR), Static(1)), cls=0),
        DictOf(("a\nb", "ü"), (ListOf(()), number_arg(Kind.COMPLEX, dtype="c16"))),
    ),
    ListOf((array_result((0,), "i8"), DictOf(("k",), (number_result(Kind.BOOL, "?"),)), TupleOf((Static(0),)))),
    statics=3,
    keywords=("x", "ÿ"),
    captured=(Captured(2, tensor_type(np.dtype("f4"), (2, 0))),),
    watched=True,
)


def test_compiled_objects_come_back_equal_from_bytes() -> None:
    plain = compiled_object(signature_of([array_arg()], array_result()), layout=native_runtime().layout)
    for signature in (plain.signature, EVERY_NODE):
        stored = compiled_to_bytes(type(plain)(plain.code, "kernel", "entry", signature, 640, ("a", "b"), True))
        again = compiled_from_bytes(stored)
        assert again.code == plain.code
        assert again == compiled_from_bytes(compiled_to_bytes(again))
        assert (again.signature, again.arena_bytes, again.symbols) == (signature, 640, ("a", "b"))
        assert again.releases_gil
    part = SupportObject(b"\n\0code", ("f",), ("g", "h"))
    assert support_from_bytes(support_to_bytes(part)) == part


def test_a_stored_object_runs_in_another_process(tmp_path: Path) -> None:
    unit = compiled_object(signature_of([array_arg()], array_result()), layout=native_runtime().layout)
    DiskCache(tmp_path).put(KEY, compiled_to_bytes(unit))
    code = f"""
from pathlib import Path
from pullback.runtime.cache import DiskCache
from pullback.runtime.encode import compiled_from_bytes
from tests.runtime.kit import *
unit = compiled_from_bytes(DiskCache(Path({str(tmp_path)!r})).get({KEY!r}))
function = native_runtime().function(fallback)
function.install(native_runtime().load(unit))
print(function(np.arange(3.0)))
"""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "[0. 1. 2.]\n", done.stderr


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no newline",
        b"[]\n",
        b"{}\ncode",
        b"\xff\xfe\ncode",
        compiled_to_bytes(compiled_object(EVERY_NODE)).replace(b'"static"', b'"statuc"'),
        compiled_to_bytes(compiled_object(EVERY_NODE)).replace(b"f32", b"f33"),
    ],
)
def test_bytes_of_something_else_are_an_error_with_a_name(data: bytes) -> None:
    with pytest.raises(ParseError, match="not a stored"):
        compiled_from_bytes(data)


def test_fresh_entries_are_not_touched_on_each_read(cache: DiskCache) -> None:
    cache.put(KEY, b"data")
    recent = time.time() - 60
    os.utime(only_file(cache), (recent, recent))
    cache.get(KEY)
    assert abs(only_file(cache).stat().st_mtime - recent) < 1
    assert np.isclose(recent, recent)
