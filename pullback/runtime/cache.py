"""Compiled code on disk, for later processes of the same user.

What is read here is executed, so it is read only from a folder and from files that belong to this user and that nobody
else can write to, and only if the checksum in front of it is right. Anything else (cut off, damaged, put there under
another name) is deleted and compiled again. Files appear whole or not at all: they are written under another name and
then renamed. The folder is held open during each step, so it cannot be exchanged in between.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

CACHE_BYTES = 512 << 20
"""Default bound on all files together."""

_MAGIC = b"PULLBK01"
_DIGEST_BYTES = 32
_LARGEST_FILE = 256 << 20
_SUFFIX = ".pbo"
_PRUNE_EVERY = 64
_STALE_SECONDS = 3600.0
_HAS_DIR_FD = os.open in os.supports_dir_fd and os.scandir in os.supports_fd


def cache_key(*parts: str | bytes) -> str:
    """A name for what was made from exactly these parts."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def cache_folder(option: str = "", environ: Mapping[str, str] | None = None) -> Path:
    """The folder: the option, else `PULLBACK_CACHE_DIR`, else the platform's place for caches."""
    env = os.environ if environ is None else environ
    chosen = option or env.get("PULLBACK_CACHE_DIR", "")
    if chosen:
        return Path(chosen).expanduser()
    home = Path(env.get("HOME") or env.get("USERPROFILE") or Path.home())
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "pullback"
    if sys.platform == "win32":
        return Path(env.get("LOCALAPPDATA") or home / "AppData" / "Local") / "pullback" / "Cache"
    return Path(env.get("XDG_CACHE_HOME") or home / ".cache") / "pullback"


class DiskCache:
    """Bytes by key, in one folder. No step raises because of the state of the disk: a cache that fails is a miss.

    Parameters
    ----------
    folder : made if it is not there
    limit : bound on the bytes of all files; the least recently used go first
    """

    def __init__(self, folder: Path, limit: int = CACHE_BYTES) -> None:
        self.folder = folder
        self._limit = limit
        self._writes = 0
        self._warned = False

    def get(self, key: str) -> bytes | None:
        """What was stored under `key`, if it is there and sound."""
        with suppress(OSError), self._opened(make=False) as folder:
            try:
                data = _read(folder, key + _SUFFIX)
            except FileNotFoundError:
                return None
            sound = None if data is None else _unseal(key, data)
            if sound is None:
                folder.remove(key + _SUFFIX)
            return sound
        return None

    def put(self, key: str, data: bytes) -> None:
        """Store `data` under `key`, if the disk allows it."""
        with suppress(OSError), self._opened(make=True) as folder:
            folder.write(key + _SUFFIX, _seal(key, data))
            if self._writes % _PRUNE_EVERY == 0:
                self._prune(folder)
            self._writes += 1

    def drop(self, key: str) -> None:
        """Forget what is stored under `key`: it could not be used."""
        with suppress(OSError), self._opened(make=False) as folder:
            folder.remove(key + _SUFFIX)

    @contextmanager
    def _opened(self, make: bool) -> Iterator[_Folder]:
        if make:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = _Folder(self.folder)
        try:
            reason = folder.refusal()
            if reason:
                self._warn(reason)
                raise PermissionError(reason)
            yield folder
        finally:
            folder.close()

    def _warn(self, reason: str) -> None:
        if not self._warned:
            self._warned = True
            text = (
                f"compiled code is not kept in {self.folder}: {reason}. Set PULLBACK_CACHE_DIR to a folder of your own."
            )
            warnings.warn(text, RuntimeWarning, stacklevel=4)

    def _prune(self, folder: _Folder) -> None:
        """Delete the files not used for longest, down to four fifths of the bound, and forgotten temporary ones."""
        files = []
        now = time.time()
        for name, status in folder.files():
            if name.endswith(_SUFFIX):
                files.append((status.st_mtime, status.st_size, name))
            elif name.endswith(".tmp") and now - status.st_mtime > _STALE_SECONDS:
                folder.remove(name)
        total = sum(size for _, size, _ in files)
        if total <= self._limit:
            return
        for _, size, name in sorted(files):
            if total <= self._limit * 4 // 5:
                break
            folder.remove(name)
            total -= size


def _seal(key: str, data: bytes) -> bytes:
    return _MAGIC + hashlib.sha256(key.encode() + data).digest() + data


def _unseal(key: str, sealed: bytes) -> bytes | None:
    head = len(_MAGIC) + _DIGEST_BYTES
    data = sealed[head:]
    right = _MAGIC + hashlib.sha256(key.encode() + data).digest()
    return data if sealed[:head] == right else None


def _read(folder: _Folder, name: str) -> bytes | None:
    """The file's bytes; None if it may not be trusted."""
    descriptor = folder.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or _untrusted(status) or status.st_size > _LARGEST_FILE:
            return None
        data = file.read(_LARGEST_FILE)
        if time.time() - status.st_mtime > _STALE_SECONDS and os.utime in os.supports_fd:
            os.utime(descriptor)
        return data


def _untrusted(status: os.stat_result) -> str:
    """Why what has this status may have been written by somebody else; empty if it may not."""
    if not hasattr(os, "geteuid"):
        return ""
    if status.st_uid != os.geteuid():
        return "it belongs to another user"
    if status.st_mode & 0o022:
        return "others may write to it"
    return ""


class _Folder:
    """An open folder; names are looked up in it and nowhere else, where the platform can do that."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) if _HAS_DIR_FD else None

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def refusal(self) -> str:
        status = os.stat(self._path) if self._descriptor is None else os.fstat(self._descriptor)
        return _untrusted(status) if stat.S_ISDIR(status.st_mode) else "it is not a folder"

    def open(self, name: str, flags: int) -> int:
        flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        return os.open(self._place(name), flags, 0o600, dir_fd=self._descriptor)

    def write(self, name: str, data: bytes) -> None:
        temporary = f".{os.urandom(8).hex()}.tmp"
        descriptor = self.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
            os.replace(
                self._place(temporary), self._place(name), src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor
            )
        except OSError:
            self.remove(temporary)
            raise

    def remove(self, name: str) -> None:
        with suppress(OSError):
            os.unlink(self._place(name), dir_fd=self._descriptor)

    def files(self) -> Iterator[tuple[str, os.stat_result]]:
        with os.scandir(self._path if self._descriptor is None else self._descriptor) as entries:
            for entry in entries:
                with suppress(OSError):
                    yield entry.name, entry.stat(follow_symlinks=False)

    def _place(self, name: str) -> str:
        return name if self._descriptor is not None else str(self._path / name)
