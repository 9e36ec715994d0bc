"""Text in and out of files: bounded, `.gz` or not, written whole or not at all."""

from __future__ import annotations

import contextlib
import gzip
import os
import tempfile
import zlib
from pathlib import Path
from typing import BinaryIO, cast

from kant_opt.errors import InputError
from kant_opt.io.plain import load_data
from kant_opt.schema import Outcome, Placement, Request, parse, to_json

LARGEST = 1 << 30
"""Bytes of text that a file may hold once unpacked."""
_GZIP_MAGIC = b"\x1f\x8b"


def read_text(path: Path, *, largest: int = LARGEST) -> str:
    """Return the UTF-8 text of a file, unpacked where it is gzip (known by content).

    Raises InputError for a missing file, a folder, no permission, a broken gzip stream, bytes that are not UTF-8,
    and more than `largest` bytes of text; memory stays within a small multiple of that.
    """
    data = _read_bytes(path, largest + 1)
    if len(data) > largest:
        raise InputError(
            f"more than {largest} bytes of text", place=path.name, way_out="split it, or read a part of it"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"byte {error.start} ({data[error.start]:#04x}) is not UTF-8",
            place=path.name,
            way_out="save it as UTF-8; if it is packed, use gzip",
        ) from None


def read_head(path: Path, *, size: int = 1 << 16) -> str:
    """Return about the first `size` bytes of a file as text; what is not UTF-8 becomes U+FFFD."""
    return _read_bytes(path, size).decode("utf-8", errors="replace").removeprefix("\ufeff")


def write_atomic(path: Path, text: str) -> None:
    """Write `text` as UTF-8, gzip where the name ends in `.gz`; readers see the old file or the new one, never a part.

    Equal text gives equal bytes. Raises InputError where the folder is missing or may not be written.
    """
    data = text.encode()
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise _from_os(error, path, "written") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).chmod(0o666 & ~_umask())  # mkstemp makes it private; a file by open() would not be
        Path(temporary).replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise _from_os(error, path, "written") from None


def save(document: Request | Placement | Outcome, path: str | Path) -> None:
    """Write a request, placement or outcome as JSON, one field a line; `.gz` packs it."""
    write_atomic(Path(path), to_json(document, indent=1) + "\n")


def load_placement(path: str | Path) -> Placement:
    """Return the placement in a JSON or YAML file, also from an outcome that holds one."""
    source = Path(path)
    data = load_data(read_text(source), source.name)
    if isinstance(data, dict) and "status" in data and "placement" in data:
        if data["placement"] is None:
            raise InputError(
                f"this outcome is {data['status']!r} and holds no placement",
                place=source.name,
                way_out="name a file with a placement",
            )
        data = data["placement"]
    return parse(Placement, data, place=source.name)


def _read_bytes(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as file:
            packed = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
            file.seek(0)
            stream = cast("BinaryIO", gzip.GzipFile(fileobj=file)) if packed else file
            return _up_to(stream, most)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        text = str(error).rstrip(".").lower()
        raise InputError(f"broken gzip data ({text})", place=path.name, way_out="copy or pack the file again") from None
    except OSError as error:
        raise _from_os(error, path, "read") from None


def _up_to(stream: BinaryIO, most: int) -> bytes:
    """Read in pieces, so that a small file that unpacks to a huge one stops at `most`."""
    pieces: list[bytes] = []
    left = most
    while left > 0 and (piece := stream.read(min(left, 1 << 20))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _from_os(error: OSError, path: Path, verb: str) -> InputError:
    reason = (error.strerror or str(error)).lower()
    return InputError(f"cannot be {verb}: {reason}", place=str(path), way_out="check the path and its permissions")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
