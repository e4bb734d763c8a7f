"""Damages files as disks, networks, editors and attackers do. Every function takes its randomness from `rng` alone."""

import io
import json
import random
import re
import struct
import zipfile
from collections.abc import Callable
from typing import Any

Mutation = Callable[[bytes, random.Random], bytes]

# Numbers, and what stands where a number is expected.
_NUMBERS = ("0", "-1", "-0.0", "0.5", "2147483647", "2147483648", "4294967301", "9223372036854775808", "-" + "9" * 30,
            "1" + "0" * 400, "9" * 5000, "1e308", "1e999", "-1e999", "NaN", "Infinity", "-Infinity", "1e", "0x10", "٣")
_TEXTS = ("", " ", "\x00", "\ud800", "\udcff", "\ufeff", "line\nfeed", "\r", "\u2028", "\x85", "../../etc/passwd",
          "/etc/passwd", "..", "x" * 3000, "O", "B-PER", "[MASK]", "[PAD]", "bert", "true", "\x1b[31m", "ﬃ\u0301")
_BYTES = (b"", b"\x00", b"\x00" * 64, b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
          b"\xc0\x80", b"\xc3", b"\r", b"\r\n", b"\n", b"\n\n\n", b"\t", b",", b" ", b'"', b"'", b"\\", b"{", b"]",
          b"\xe2\x80\xa8", b"\xc2\x85", b"\xc2\xa0", b"\x1c", b"-DOCSTART-", b"[UNK]\n", b"\x1b[2J", b"a" * 20000,
          *(struct.pack("<Q", number) for number in (0, 1 << 31, 1 << 40, 1 << 62, (1 << 64) - 1)))
# As JSON text: some of it no JSON module would write.
_DEEP = 100_000
_JSON = (*_NUMBERS, "true", "false", "null", '""', "[]", "{}", "[[]]", '"x"', "[null]", '{"a": 1}', '"\\ud800"',
         '["a", "a"]', "[1.5]", "[" * _DEEP + "]" * _DEEP, '{"a":' * _DEEP + "1" + "}" * _DEEP, "[" * _DEEP)


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Bytes with one to three damages."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        data = rng.choice(_DAMAGES)(data, rng)
    return data


def edited(data: bytes, rng: random.Random) -> bytes:
    """A text with numbers exchanged, lines or words moved, or damaged."""
    return rng.choice((damaged, damaged, _swap_number, _move_lines, _swap_words, _all_line_ends))(data, rng)


def json_edited(data: bytes, rng: random.Random) -> bytes:
    """A JSON file with another value, a key less or a key more; sometimes damaged as well."""
    if rng.random() < 0.2:
        return edited(data, rng)
    raws: list[str] = []
    value = _json_edited(json.loads(data), rng, raws)
    if rng.random() < 0.3:
        value = _json_edited(value, rng, raws)
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
    for index, raw in enumerate(raws):
        text = text.replace(f'"<{index}>"', raw)
    data = text.encode("utf-8", "surrogatepass")
    return edited(data, rng) if rng.random() < 0.1 else data


def json_lines_edited(data: bytes, rng: random.Random) -> bytes:
    """A file of JSON lines with one of them edited; sometimes damaged."""
    if rng.random() < 0.3:
        return edited(data, rng)
    lines = data.splitlines()
    index = rng.randrange(len(lines))
    lines[index] = json_edited(lines[index], rng)
    return b"\n".join(lines) + rng.choice((b"\n", b"", b"\n\n"))


def header_edited(data: bytes, rng: random.Random) -> bytes:
    """A safetensors file with its JSON header edited, or damaged."""
    if rng.random() < 0.4:
        return damaged(data, rng)
    end = 8 + struct.unpack("<Q", data[:8])[0]
    header = json_edited(data[8:end], rng)
    return struct.pack("<Q", len(header)) + header + data[end:]


def archive_edited(data: bytes, rng: random.Random) -> bytes:
    """A zip archive with one member damaged under a right checksum, missing or renamed; or damaged."""
    if rng.random() < 0.3:
        return damaged(data, rng)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(list(members))
    change = rng.random()
    if change < 0.7:
        members[name] = edited(members[name], rng)
    elif change < 0.85:
        del members[name]
    else:
        members[rng.choice(["x.npy", "tokens/.npy", "values/x.npy", "tokens/x.npy"])] = members.pop(name)
    with zipfile.ZipFile(buffer := io.BytesIO(), "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def number(rng: random.Random) -> str:
    """Something where a number is expected."""
    return rng.choice(_NUMBERS)


def text(rng: random.Random) -> str:
    """Something where a word is expected."""
    return rng.choice((*_NUMBERS, *_TEXTS))


def _json_edited(value: Any, rng: random.Random, raws: list[str]) -> Any:
    """A value with one change somewhere inside."""
    inside = list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(
        value, list) else []
    if not inside or rng.random() < 0.1:
        return _other_value(value, rng, raws)
    key, _ = rng.choice(inside)
    copy = value.copy()
    change = rng.random()
    if change < 0.15:
        copy.pop(key)
    elif change < 0.25 and isinstance(copy, dict):
        copy[rng.choice((key.upper(), *_TEXTS))] = copy.pop(key)
    elif change < 0.25:
        copy.insert(key, copy[key])
    else:
        copy[key] = _json_edited(copy[key], rng, raws)
    return copy


def _other_value(value: Any, rng: random.Random, raws: list[str]) -> Any:
    if rng.random() < 0.4:
        return rng.choice(_TEXTS)
    if rng.random() < 0.15:
        return [value]
    raws.append(rng.choice(_JSON))
    return f"<{len(raws) - 1}>"


def _span(data: bytes, rng: random.Random) -> tuple[int, int]:
    begin = rng.randint(0, len(data))
    return begin, min(len(data), begin + rng.choice((1, 2, 8, 100, len(data))))


def _flip_bits(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 4)) if data else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.choice((0, 1, 8, rng.randint(0, len(data)), max(0, len(data) - rng.randint(1, 8))))]


def _delete(data: bytes, rng: random.Random) -> bytes:
    begin, end = _span(data, rng)
    return data[:begin] + data[end:]


def _duplicate(data: bytes, rng: random.Random) -> bytes:
    begin, end = _span(data, rng)
    times = rng.choice((1, 2, 50)) if end - begin < 2000 else 1
    return data[:end] + data[begin:end] * times + data[end:]


def _splice(data: bytes, rng: random.Random) -> bytes:
    begin, end = _span(data, rng)
    at = rng.randint(0, len(data))
    return data[:at] + data[begin:end] + data[at + rng.choice((0, end - begin)):]


def _insert(data: bytes, rng: random.Random) -> bytes:
    at = rng.choice((0, len(data), rng.randint(0, len(data))))
    return data[:at] + rng.choice(_BYTES) + data[at:]


def _overwrite(data: bytes, rng: random.Random) -> bytes:
    at, new = rng.randint(0, len(data)), rng.choice(_BYTES[:3] + _BYTES[-5:])
    return data[:at] + new + data[at + len(new):]


_DAMAGES: tuple[Mutation, ...] = (_flip_bits, _flip_bits, _truncate, _delete, _duplicate, _splice, _insert, _overwrite)


def _swap_number(data: bytes, rng: random.Random) -> bytes:
    found = list(re.finditer(rb"-?\d+(\.\d+)?(e-?\d+)?", data))
    if not found:
        return damaged(data, rng)
    place = rng.choice(found)
    return data[: place.start()] + number(rng).encode() + data[place.end():]


def _move_lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[first], lines[second] = rng.choice(((lines[second], lines[first]), (lines[first], lines[first]),
                                              (b"", lines[second]), (lines[first] + lines[second], b" ")))
    return b"\n".join(lines)


def _swap_words(data: bytes, rng: random.Random) -> bytes:
    words = re.split(rb"(\s)", data)
    words[rng.randrange(len(words))] = text(rng).encode("utf-8", "surrogatepass")
    return b"".join(words)


def _all_line_ends(data: bytes, rng: random.Random) -> bytes:
    return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b"\x00\n", b"\xe2\x80\xa8")))
