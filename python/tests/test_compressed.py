"""Compressed files: everything in them is read, or an error names the byte; nothing is lost."""

import bz2
import gzip
import lzma
import os
import re
import threading
import zipfile

import pyarrow
import pytest

from graven.basics import compressed
from graven.basics.compressed import CompressedError, Reading

ONE = bytes(range(256)) * 40
TWO = os.urandom(3000) + bytes(1 << 20)

PACKERS = {"gzip": gzip.compress, "xz": lzma.compress, "bzip2": bz2.compress}

# Streams of nothing.
EMPTY = {name: pack(b"") for name, pack in PACKERS.items()}


def read(path):
    with Reading(path) as file:
        return file.read()


@pytest.fixture(params=PACKERS)
def name(request):
    return request.param


@pytest.fixture
def file(tmp_path):
    def write(content, called="file"):
        path = tmp_path / called
        path.write_bytes(content)
        return path

    return write


@pytest.fixture(autouse=True, params=[7, 1 << 18])
def _chunks(request, monkeypatch):
    """Streams end anywhere in what is read at a time."""
    monkeypatch.setattr(compressed, "CHUNK_BYTES", request.param)


@pytest.fixture
def pack(name):
    return PACKERS[name]


def test_all_streams_are_read(file, name, pack):
    content = pack(ONE) + pack(b"") + pack(ONE[:1000])
    assert read(file(content)) == ONE + ONE[:1000]
    with Reading(file(content)) as opened:
        assert opened.compression.name == name
        assert opened.beginning == ONE[: compressed.BEGINNING_BYTES]
    assert read(file(pack(b""))) == b""


def test_the_name_does_not_matter(file, pack):
    for called in ("trace", "trace.gz", "trace.xz", "trace.bz2", "trace.champsim"):
        assert read(file(pack(ONE), called)) == ONE


@pytest.mark.parametrize("called", ["trace.gz", "trace.xz", "trace.bz2"])
def test_a_name_that_says_more_than_there_is_is_an_error(file, called):
    for content, found in [(ONE, "bytes 00 01 02 03"), (b"", "the end of the file")]:
        with pytest.raises(CompressedError, match=rf"byte 0: expected a stream of .*{found}"):
            read(file(content, called))


def test_zeros_behind_a_stream_are_padding_where_the_format_has_it(file, name, pack):
    one, two = pack(ONE), pack(b"two")
    for zeros in (1, 3, 4, 5, 64, 1000):
        if name == "gzip" or (name == "xz" and zeros % 4 == 0):
            assert read(file(one + bytes(zeros) + two)) == ONE + b"two"
            assert read(file(one + bytes(zeros))) == ONE
            continue
        with pytest.raises(CompressedError, match=f"^byte {len(one)}: expected"):
            read(file(one + bytes(zeros) + two))
        with pytest.raises(CompressedError, match=f"^byte {len(one)}: expected"):
            read(file(one + bytes(zeros)))


def test_something_else_behind_a_stream_is_an_error(file, name, pack):
    one = pack(ONE)
    others = [
        b"<html>503</html>",
        b"x",
        one[:3],
        ONE[1:],
        *(p for n, p in EMPTY.items() if n != name),
    ]
    for other in others:
        with pytest.raises(CompressedError, match=f"^byte {len(one)}: .*"):
            read(file(one + other))


def test_a_stream_that_ends_too_early_is_an_error(file, name, pack):
    one, two = pack(ONE), pack(ONE[:999])
    where = f"the stream of {name} that begins at byte"
    for left in (len(two) - 1, len(two) // 2, 12):
        with pytest.raises(CompressedError, match=f"{where} {len(one)} ends too early"):
            read(file(one + two[:left]))
        with pytest.raises(CompressedError, match=f"{where} 0 ends too early"):
            read(file(two[:left]))


def test_a_changed_byte_of_a_second_stream_is_an_error_or_changes_nothing(file, name, pack):
    """Times, flags and the like say nothing of the content; xz has a checksum of all it has."""
    one, two = pack(ONE), pack(ONE[:300])
    whole = ONE + ONE[:300]
    begin = rf"^byte {len(one)}: |that begins at byte {len(one)} ends too early$"
    for at in range(len(two)):
        damaged = bytearray(two)
        damaged[at] ^= 1 if at < 4 else 0xFF
        found = outcome(file(one + bytes(damaged)))
        assert (found == whole and name != "xz") or re.search(begin, str(found))


def outcome(path):
    try:
        return read(path)
    except CompressedError as error:
        return str(error)


def test_much_from_little_is_read_in_pieces(file, pack):
    content = pack(TWO)
    with Reading(file(content)) as opened:
        pieces = iter(lambda: opened.read(1 << 20), b"")
        assert b"".join(pieces) == TWO


@pytest.mark.parametrize("begin", [b"7z\xbc\xaf\x27\x1c", b"\x04\x22\x4d\x18"])
def test_other_compressions_are_named(file, begin):
    with pytest.raises(
        CompressedError, match=r"compressed by \S+; \.gz, .*\.zst and \.zip are read"
    ):
        read(file(begin + bytes(100)))


def zstandard(content):
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, "zstd") as out:
        out.write(content)
    return sink.getvalue().to_pybytes()


def test_streams_of_zstandard_are_read_and_damage_is_an_error(file):
    one, two = zstandard(ONE), zstandard(TWO)
    assert read(file(one + two + zstandard(b""))) == ONE + TWO
    with Reading(file(one)) as opened:
        assert opened.compression.name == "Zstandard"
    wrong = bytearray(two)
    wrong[2000] ^= 1
    for content in (
        one + b"xx",
        one + bytes(8),
        one[:-3],
        one + two[:2000],
        one + bytes(wrong)[:-9],
    ):
        with pytest.raises(CompressedError, match=r"^byte \d+ or before: a stream of Zstandard"):
            read(file(content))


def packed(tmp_path, members, how=zipfile.ZIP_DEFLATED):
    path = tmp_path / "packed"
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_zip_files_of_one_file_or_of_chunks_are_read(tmp_path, how):
    assert read(packed(tmp_path, {"any name": ONE}, how)) == ONE
    chunks = {"chunk.0000": ONE, "chunk.0001": b"", "chunk.0002": TWO}
    assert read(packed(tmp_path, chunks, how)) == ONE + TWO
    # An empty folder is no file.
    assert read(packed(tmp_path, {"folder/": b"", "folder/a": ONE}, how)) == ONE


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a", "b"], "must have one file, or chunk.0000, .* and has 2 files, a the first"),
        (["chunk.0000", "b"], "must have one file, or .* and has 2 files, chunk.0000 the first"),
        (["chunk.0000", "chunk.0002"], "must have chunk.0001 as file 2 of 2, and has chunk.0002"),
        (["chunk.0001"], "must have chunk.0000 as file 1 of 1, and has chunk.0001"),
        (["folder/"], "and has none"),
    ],
)
def test_zip_files_of_anything_else_are_refused(tmp_path, names, expected):
    with pytest.raises(CompressedError, match=expected):
        read(packed(tmp_path, dict.fromkeys(names, b"")))


def test_damaged_zip_files_are_refused_with_their_byte(tmp_path):
    path = packed(tmp_path, {"chunk.0000": ONE, "chunk.0001": TWO[:3000]})
    content = bytearray(path.read_bytes())
    second = content.index(b"PK\x03\x04", 1)
    assert read(path) == ONE + TWO[:3000]
    for at, begin in [(100, 0), (second + 1000, second)]:
        damaged = bytearray(content)
        damaged[at] ^= 0xFF
        path.write_bytes(damaged)
        with pytest.raises(CompressedError, match=f"^byte {begin}: the part of the zip file"):
            read(path)
    path.write_bytes(content[:-10])
    with pytest.raises(CompressedError, match=r"^byte 0: the part of the zip file"):
        read(path)


def test_a_file_without_a_name_in_a_zip_file_is_a_file(tmp_path):
    path = packed(tmp_path, {"a": ONE, "b": TWO[:10]})
    content = bytearray(path.read_bytes())
    for at in [found.start() for found in re.finditer(rb"PK\x01\x02", content)]:
        # The name's length in the directory; the name is taken for a field of another kind then.
        content[at + 28 : at + 30] = b"\0\0"
        content[at + 30 : at + 32] = b"\1\0"
    path.write_bytes(content)
    with pytest.raises(CompressedError, match="must have one file, or chunk"):
        read(path)


def test_a_zip_file_is_not_read_from_a_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    content = packed(tmp_path, {"a": ONE}).read_bytes()
    writer = threading.Thread(target=lambda: path.write_bytes(content[:100]))
    writer.start()
    with pytest.raises(CompressedError, match="a zip file is not read from a pipe"):
        read(path)
    writer.join()


def test_addresses_of_instructions_are_no_compression(file):
    for address in (0x088B1F + (0x5555 << 24) + (0x40 << 24), 0x04034B50, 0x5555_0403_4B50):
        content = address.to_bytes(8, "little") + bytes(56)
        with Reading(file(content)) as opened:
            assert opened.compression is None
            assert opened.read() == content


def test_a_pipe_is_read_once_and_whole(tmp_path, pack):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    content = pack(ONE) + pack(b"two")

    def write():
        with path.open("wb", buffering=0) as pipe:
            for byte in content[:8]:
                pipe.write(bytes([byte]))
            pipe.write(content[8:])

    writer = threading.Thread(target=write)
    writer.start()
    assert read(path) == ONE + b"two"
    writer.join()


def test_what_is_packed_is_unpacked(tmp_path, name):
    known = next(known for known in compressed.KNOWN if known.name == name)
    place = tmp_path / "place"
    with compressed.packing(place, tmp_path / f"file{known.suffix}") as out:
        out.write(ONE)
    assert read(place) == ONE
    assert place.read_bytes() != ONE
    with compressed.packing(place, tmp_path / "plain") as out:
        out.write(ONE)
    assert place.read_bytes() == ONE
