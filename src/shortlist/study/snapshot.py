"""A state as bytes and back: the snapshot that saves folding a long study from its first event.

Only arrays, plain values and this package's own records are written; reading runs no code from the file. Parts
that are one object are written once. A checksum comes first: what was damaged is not read at all.
"""

import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import numpy as np

FORMAT = 5
CHECKSUM = 32  # bytes
PLAIN: dict[type[Any], str] = {tuple: "plain tuple", list: "list", frozenset: "frozenset", set: "set"}


def encode(value: Any, known: Sequence[Any]) -> bytes:
    """The value as bytes. The `known` objects in it are stored as references."""
    writer = _Writer(known)
    root = writer.place(value)
    file = io.BytesIO()
    head = np.frombuffer(json.dumps({"format": FORMAT, "root": root, "nodes": writer.nodes}).encode(), dtype=np.uint8)
    np.savez_compressed(file, head=head, **{f"a{place}": array for place, array in enumerate(writer.arrays)})
    return hashlib.sha256(file.getvalue()).digest() + file.getvalue()


def decode(data: bytes, known: Sequence[Any]) -> Any:
    """The value again, or None if these bytes are not an undamaged snapshot of this version."""
    if hashlib.sha256(data[CHECKSUM:]).digest() != data[:CHECKSUM]:
        return None
    try:
        with np.load(io.BytesIO(data[CHECKSUM:]), allow_pickle=False) as arrays:
            head = json.loads(arrays["head"].tobytes())
            if head["format"] != FORMAT:
                return None
            reader = _Reader(head["nodes"], {name: arrays[name] for name in arrays.files}, known)
        return reader.take(head["root"])
    except Exception:  # another version of the package wrote it; whatever is wrong with it, the events are enough
        return None


class _Writer:
    def __init__(self, known: Sequence[Any]) -> None:
        self.nodes: list[Any] = []
        self.arrays: list[Any] = []
        self.places = {id(thing): ["known", number] for number, thing in enumerate(known)}
        self.kept: list[Any] = []  # an id is valid while its object lives

    def place(self, value: Any) -> Any:
        """Plain values as they are, others as a reference to a node."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if id(value) not in self.places:
            self.kept.append(value)
            node = self._node(value)
            self.nodes.append(node)
            self.places[id(value)] = ["node", len(self.nodes) - 1]
        return self.places[id(value)]

    def _node(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            self.arrays.append(value)
            return ["array", len(self.arrays) - 1]
        if isinstance(value, np.generic):
            return ["number", value.dtype.str, value.item()]
        if isinstance(value, dict):
            return ["dict", [[self.place(key), self.place(item)] for key, item in value.items()]]
        if hasattr(value, "_fields"):
            return ["tuple", _address(value), [self.place(item) for item in value]]
        if is_dataclass(value):
            parts = {part.name: self.place(getattr(value, part.name)) for part in fields(value) if part.init}
            return ["record", _address(value), parts]
        # the order of a set depends on how it grew
        items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        return [PLAIN[type(value)], [self.place(item) for item in items]]


class _Reader:
    def __init__(self, nodes: list[Any], arrays: dict[str, Any], known: Sequence[Any]) -> None:
        self.arrays, self.known, self.made = arrays, known, list[Any]()
        for node in nodes:  # parts come before what holds them
            self.made.append(self._make(*node))

    def take(self, place: Any) -> Any:
        if not isinstance(place, list):
            return place
        where, number = place
        return self.known[number] if where == "known" else self.made[number]

    def _make(self, kind: str, what: Any, parts: Any = None) -> Any:
        if kind == "array":
            return self.arrays[f"a{what}"]
        if kind == "number":
            return np.dtype(what).type(parts)
        if kind == "dict":
            return {self.take(key): self.take(item) for key, item in what}
        if kind == "tuple":
            return _class(what)(*(self.take(part) for part in parts))
        if kind == "record":
            return _class(what)(**{name: self.take(part) for name, part in parts.items()})
        plain = next(kept for kept, name in PLAIN.items() if name == kind)
        return plain(self.take(part) for part in what)


def _address(value: Any) -> str:
    address = f"{type(value).__module__}:{type(value).__qualname__}"
    assert _class(address) is type(value)
    return address


def _class(address: str) -> Any:
    module, name = address.split(":")
    found = getattr(import_module(module), name) if module.startswith("shortlist.") else None
    if found is None or not (hasattr(found, "_fields") or is_dataclass(found)):
        raise ValueError(f"{address} is not a record of this package")
    return found
