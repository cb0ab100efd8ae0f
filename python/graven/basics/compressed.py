"""Compressed files: read by what is in them, written by their names.

Traces of others come compressed, and under names that do not say how. A file is taken for what its
first bytes say. All of its streams are read, one behind the other, each with its checksums; what is
damaged, ends too early, or is followed by something else is an error that names the byte. A zip
file is read if it has one file, or the chunks of a trace of drmemtrace.
"""

from __future__ import annotations

import bz2
import contextlib
import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

CHUNK_BYTES = 1 << 18
"""Bytes that are read, or decompressed, at a time."""

BEGINNING_BYTES = 4096
"""Bytes of a file's content that are there to be looked at before it is read."""


class CompressedError(OSError):
    """A compressed file cannot be read; the message names the byte of the file, not the file."""


class _Stream(Protocol):
    """A decompressor of one stream."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _Gzip:
    """A decompressor like those of `lzma` and `bz2`, which keep what they have not used yet."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def needs_input(self) -> bool:
        return not self._inflate.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inflate.unused_data

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        return self._inflate.decompress(self._inflate.unconsumed_tail + data, max_length)


@dataclass(frozen=True)
class Compression:
    """A way to compress.

    Attributes:
        name: As messages say it.
        suffix: The end of a file's name.
        magic: The first bytes, of a stream or of the file.
    """

    name: str
    suffix: str
    magic: re.Pattern[bytes]


@dataclass(frozen=True)
class Streamed(Compression):
    """A way to compress that has streams, one behind the other.

    Attributes:
        stream: Makes what decompresses a stream.
        padding: Zero bytes may follow a stream, in multiples of this number; 0: none.
    """

    stream: Callable[[], _Stream]
    padding: int


KNOWN = (
    # The flags have no bit that is reserved.
    Streamed("gzip", ".gz", re.compile(rb"\x1f\x8b\x08[\x00-\x1f]", re.DOTALL), _Gzip, 1),
    Streamed(
        "xz",
        ".xz",
        re.compile(rb"\xfd7zXZ\x00"),
        lambda: lzma.LZMADecompressor(format=lzma.FORMAT_XZ),
        4,
    ),
    Streamed(
        "bzip2",
        ".bz2",
        re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)", re.DOTALL),
        bz2.BZ2Decompressor,
        0,
    ),
)
"""Compressions that are read and written."""

ZSTANDARD = Compression("Zstandard", ".zst", re.compile(rb"\x28\xb5\x2f\xfd"))

# The version behind it is below 256: else it may be the address of an instruction.
ZIP = Compression("zip", ".zip", re.compile(rb"PK\x03\x04[\x0a-\x3f]\x00", re.DOTALL))

READ = (*KNOWN, ZSTANDARD, ZIP)
"""Compressions that are read."""

MAGIC_BYTES = 10
"""The longest first bytes of a stream."""

OTHERS = {
    "LZ4": (".lz4", re.compile(rb"\x04\x22\x4d\x18")),
    "7-Zip": (".7z", re.compile(rb"7z\xbc\xaf\x27\x1c")),
    "LZMA": (".lzma", None),
    "compress": (".Z", None),
    "Brotli": (".br", None),
}
"""Compressions that are neither: the end of a file's name, and its first bytes if they say it."""

SUFFIXES = tuple(known.suffix for known in KNOWN)

ALLOWED = f"{', '.join(SUFFIXES[:-1])} and {SUFFIXES[-1]}"
"""Ends of the names of files that are written compressed."""

ALLOWED_TO_READ = f"{', '.join(of.suffix for of in READ[:-1])} and {READ[-1].suffix}"

CHUNK_NAME = re.compile(r"chunk\.\d{4,}")
"""Names of the files in a zip file of drmemtrace, which are one trace in the order of numbers."""


def named(path: Path) -> Compression | None:
    """The compression that a file's name says."""
    return next((known for known in KNOWN if known.suffix == path.suffix), None)


def named_other(path: Path) -> str | None:
    """The compression that a file's name says, of those that are not written."""
    others = {ZSTANDARD.name: ZSTANDARD.suffix, ZIP.name: ZIP.suffix}
    others |= {name: suffix for name, (suffix, _) in OTHERS.items()}
    return next((name for name, suffix in others.items() if suffix == path.suffix), None)


class Reading(io.RawIOBase):
    """The content of a file, decompressed as it is read.

    Attributes:
        path: The file.
        compression: How it is compressed; nothing if it is not.
        beginning: The first bytes of the content, up to `BEGINNING_BYTES`, which are read again.
    """

    def __init__(self, path: Path) -> None:
        """Opens a file.

        Raises:
            CompressedError: it is damaged, or compressed in a way that is not read, or not
                compressed though its name says so.
            OSError: it cannot be read.
        """
        super().__init__()
        self.path = path
        self._file = path.open("rb", buffering=0)
        try:
            start = _exactly(self._file, MAGIC_BYTES)
            self.compression = _compression(path, start)
            self._chunks = _content(self._file, start, self.compression)
            self._rest = memoryview(b"")
            self.beginning = self._begin()
        except BaseException:
            self._file.close()
            raise

    def _begin(self) -> bytes:
        found = b""
        while len(found) < BEGINNING_BYTES and (chunk := next(self._chunks, b"")):
            found += chunk
        self._rest = memoryview(found)
        return found[:BEGINNING_BYTES]

    def readable(self) -> bool:
        """Says that it can be read."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Gives some bytes, none at the end."""
        if not self._rest:
            self._rest = memoryview(next(self._chunks, b""))
        target = memoryview(buffer).cast("B")
        taken = min(len(target), len(self._rest))
        target[:taken] = self._rest[:taken]
        self._rest = self._rest[taken:]
        return taken

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
        super().close()


def _exactly(file: io.FileIO, count: int) -> bytes:
    """Reads a number of bytes, or all that are left: a pipe gives what there is at a time."""
    found = b""
    while len(found) < count and (more := file.read(count - len(found))):
        found += more
    return found


def _compression(path: Path, start: bytes) -> Compression | None:
    if found := next((known for known in READ if known.magic.match(start)), None):
        return found
    for name, (_, magic) in OTHERS.items():
        if magic is not None and magic.match(start):
            raise CompressedError(f"it is compressed by {name}; {ALLOWED_TO_READ} are read")
    if said := next((known for known in READ if known.suffix == path.suffix), None):
        expected = f"byte 0: expected a stream of {said.name}, as the name says"
        raise CompressedError(f"{expected}, found {_shown(start)}")
    if other := named_other(path):
        raise CompressedError(f"a file compressed by {other} is not read; {ALLOWED_TO_READ} are")
    return None


def _shown(found: bytes) -> str:
    return f"bytes {found[:8].hex(' ')}" if found else "the end of the file"


def _content(file: io.FileIO, start: bytes, compression: Compression | None) -> Iterator[bytes]:
    if compression is None:
        if start:
            yield start
        while chunk := file.read(CHUNK_BYTES):
            yield chunk
    elif compression is ZIP:
        yield from _zip_content(file)
    elif compression is ZSTANDARD:
        yield from _zstandard_content(file, start)
    else:
        yield from _Unpacking(file, start, cast("Streamed", compression)).content()


def _zip_content(file: io.FileIO) -> Iterator[bytes]:
    """The content of the one file in a zip file, or of all chunks of a trace of drmemtrace."""
    if not file.seekable():
        raise CompressedError("a zip file is not read from a pipe, as its end says what is in it")
    begin = 0
    try:
        archive = zipfile.ZipFile(file)
        members = [of for of in archive.infolist() if not of.filename.endswith("/")]
        _check_names([member.filename for member in members])
        for member in members:
            begin = member.header_offset
            with archive.open(member) as content:
                while chunk := content.read(CHUNK_BYTES):
                    yield chunk
    except (zipfile.BadZipFile, EOFError, RuntimeError, zlib.error, lzma.LZMAError) as error:
        # RuntimeError is that of passwords, and of compressions that are not known.
        where = f"byte {begin}: the part of the zip file that begins there cannot be read"
        raise CompressedError(f"{where}: {error}") from None


def _check_names(names: list[str]) -> None:
    """Refuses a zip file of which it is not known what is to be read."""
    chunks = sum(CHUNK_NAME.fullmatch(name) is not None for name in names)
    if not names or (len(names) > 1 and chunks != len(names)):
        expected = "one file, or chunk.0000, chunk.0001 and so on of drmemtrace"
        found = f"{len(names)} files, {names[0]} the first" if names else "none"
        raise CompressedError(f"the zip file must have {expected}, and has {found}")
    for number, name in enumerate(names if chunks else []):
        if int(name.partition(".")[2]) != number:
            expected = f"the zip file must have chunk.{number:04} as file {number + 1}"
            raise CompressedError(f"{expected} of {len(names)}, and has {name}")


class _Counted(io.RawIOBase):
    """A file with what has been read of it before, and the number of bytes that were given."""

    def __init__(self, file: io.FileIO, start: bytes) -> None:
        super().__init__()
        self._file = file
        self._start = start
        self.given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        target = memoryview(buffer).cast("B")
        found = self._start or self._file.read(min(len(target), CHUNK_BYTES)) or b""
        found, self._start = found[: len(target)], found[len(target) :]
        target[: len(found)] = found
        self.given += len(found)
        return len(found)


def _zstandard_content(file: io.FileIO, start: bytes) -> Iterator[bytes]:
    """All streams of a file, each with its checksum; Arrow's library reads them."""
    import pyarrow

    counted = _Counted(file, start)
    try:
        with pyarrow.CompressedInputStream(
            pyarrow.PythonFile(counted, mode="r"), "zstd"
        ) as content:
            while chunk := content.read(CHUNK_BYTES):
                yield chunk
    except OSError as error:
        where = f"byte {counted.given} or before: a stream of Zstandard is damaged, ends too early,"
        raise CompressedError(f"{where} or is followed by something else: {error}") from None


class _Unpacking:
    """The streams of a compressed file."""

    def __init__(self, file: io.FileIO, start: bytes, compression: Streamed) -> None:
        self._file = file
        self._of = compression
        self._data = start
        self._read = len(start)

    @property
    def _at(self) -> int:
        """The byte of the file at which what has been read and not been used begins."""
        return self._read - len(self._data)

    def _more(self) -> bool:
        """Reads on; false at the end of the file."""
        chunk = self._file.read(CHUNK_BYTES) or b""
        self._data += chunk
        self._read += len(chunk)
        return bool(chunk)

    def content(self) -> Iterator[bytes]:
        while self._data:
            yield from self._one_stream()
            self._pass_padding()
            while len(self._data) < MAGIC_BYTES and self._more():
                pass
            if self._data and not self._of.magic.match(self._data):
                expected = f"byte {self._at}: expected another stream of {self._of.name} or the end"
                raise CompressedError(f"{expected} of the file, found {_shown(self._data)}")

    def _one_stream(self) -> Iterator[bytes]:
        begin = self._at
        stream = self._of.stream()
        where = f"the stream of {self._of.name} that begins at byte {begin}"
        while not stream.eof:
            if stream.needs_input and not self._data and not self._more():
                raise CompressedError(f"byte {self._read}: {where} ends too early")
            data, self._data = (self._data, b"") if stream.needs_input else (b"", self._data)
            try:
                chunk = stream.decompress(data, CHUNK_BYTES)
            except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
                raise CompressedError(f"byte {begin}: {where} is damaged: {error}") from None
            if chunk:
                yield chunk
        self._data = stream.unused_data + self._data

    def _pass_padding(self) -> None:
        """Passes over zeros behind a stream, if its format has them there."""
        begin = self._at
        while self._of.padding and (self._data or self._more()):
            self._data = self._data.lstrip(b"\0")
            if self._data:
                break
        zeros = self._at - begin
        if zeros % (self._of.padding or 1):
            expected = f"byte {begin}: expected zeros in multiples of {self._of.padding} bytes"
            raise CompressedError(f"{expected} behind a stream of {self._of.name}, found {zeros}")


@contextlib.contextmanager
def packing(place: Path, name: Path) -> Iterator[BinaryIO]:
    """Writes a file, compressed as a name says: the same bytes for the same content.

    Raises:
        OSError: it cannot be written.
    """
    compression = named(name)
    with place.open("wb") as file, contextlib.ExitStack() as stack:
        if compression is None:
            yield file
        elif compression.suffix == ".gz":
            import gzip

            # Neither the time nor the name of the file, which is another each time.
            packed = gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)
            yield cast("BinaryIO", stack.enter_context(packed))
        elif compression.suffix == ".xz":
            yield cast("BinaryIO", stack.enter_context(lzma.open(file, "wb")))
        else:
            yield cast("BinaryIO", stack.enter_context(bz2.open(file, "wb")))
