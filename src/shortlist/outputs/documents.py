"""Open the files of outputs: JSON in its forms, tables, Inspect's archives, and folders."""

import io
import json
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from shortlist.errors import BadVotes, NotInstalled
from shortlist.votes.files import (
    BLANK,
    EXCEL,
    STANDARD_INPUT,
    TOO_LARGE,
    ZIP,
    BadRow,
    Bytes,
    Source,
    decode,
    is_parquet,
    json_array,
    json_lines,
    open_source,
    read_bytes,
    read_delimited,
    read_table,
    shown_path,
)

TABLES = (".csv", ".tsv")
YAML = (".yaml", ".yml")
DATA = (".json", ".jsonl", ".ndjson", ".parquet", ".pq", ".eval", ".gz", *TABLES, *EXCEL)
QUESTIONS = "question.jsonl"
ZSTANDARD = 93  # a way of packing that zipfile knows from Python 3.14 on
CASES = "cases"
LARGEST = 1 << 30  # bytes of a file, unpacked; reading takes about four times as much memory
_SAMPLE = re.compile(r"samples/(?:[^/]+|.+_epoch_\d+(?:/sample)?)\.json")  # an id may contain a slash
_ATTACHMENTS = re.compile(r"samples/.+_epoch_\d+/attachments/\d+\.json")


@dataclass(frozen=True)
class Document:
    """A file: its records with their places. `whole` is set if the file is one JSON object."""

    path: Path
    file: str
    kind: str
    records: tuple[Mapping[str, Any], ...]
    places: tuple[str, ...]
    whole: Mapping[str, Any] | None = None
    table: Source | None = None
    bad: tuple[BadRow, ...] = ()

    @property
    def first(self) -> Mapping[str, Any]:
        """The first record, by which a format is recognised."""
        return self.records[0] if self.records else {}

    @property
    def stem(self) -> str:
        """The name of the file without its endings."""
        name = self.path.name.removesuffix(".gz")
        return name.rpartition(".")[0] or name

    @property
    def folder(self) -> str:
        return self.path.resolve().parent.name

    def where(self, number: int) -> str:
        return f"{self.file}, {self.places[number]}"

    def numbered(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Each record with its place."""
        return ((self.where(number), record) for number, record in enumerate(self.records))


def find_paths(path: Path) -> list[Path]:
    """The files of outputs in a folder; the folder itself if its files are outputs by their place."""
    if str(path) == STANDARD_INPUT or not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.is_file() and not _is_hidden(file.relative_to(path)))
    known = [file for file in files if _is_known(file)]
    direct = [file for file in files if file.parent == path and file.suffix.lower() in DATA]
    return known or direct or [path]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _is_known(file: Path) -> bool:
    """Is it a file of outputs, by the name that its tool gives it?"""
    name = file.name.removesuffix(".gz")
    return (
        name in ("scenario_state.json", "model_outputs.json")
        or name.endswith(".eval")
        or (name.startswith("samples_") and name.endswith(".jsonl"))
        or (file.parent.name == "model_answer" and name.endswith(".jsonl"))
    )


def open_document(path: Path) -> Document:
    """Raises BadVotes or NotInstalled if the file cannot be read."""
    if str(path) != STANDARD_INPUT and path.is_dir():
        return _folder(path)
    if is_parquet(path):
        return _table(path, open_source(path))
    packed = read_bytes(path, LARGEST)
    if packed.suffix in EXCEL:
        return _table(path, read_table(packed))
    if packed.data.startswith(ZIP):
        return _archive(path, packed)
    text = decode(packed.file, packed.data)
    if packed.suffix in YAML:
        raise BadVotes(f"{packed.file} is YAML, which is not read; let the tool write .json")
    is_json = packed.suffix not in TABLES and text.lstrip()[:1] in ("{", "[")
    return _json(path, packed.file, text) if is_json else _table(path, read_delimited(packed.file, text))


def _json(path: Path, file: str, text: str) -> Document:
    """One object, an array of objects, or an object on each line."""
    if text.lstrip(BLANK).startswith("["):
        rows, lines, bad = json_array(file, text)
        return Document(path, file, "JSON array", tuple(rows), _places(lines), bad=tuple(bad))
    try:
        whole, end = json.JSONDecoder().raw_decode(text.lstrip(BLANK))
    except (ValueError, RecursionError):
        whole, end = None, 0
    if isinstance(whole, dict) and not text.lstrip(BLANK)[end:].strip(BLANK):
        return Document(path, file, "JSON", (whole,), ("line 1",), whole)
    rows, lines, bad = json_lines(text)
    if not rows:
        raise BadVotes(f"{file}, line {bad[0].line}: {bad[0].reason}" if bad else f"{file} is empty")
    return Document(path, file, "JSON lines", tuple(rows), _places(lines), bad=tuple(bad))


def _places(lines: Iterable[int], word: str = "line") -> tuple[str, ...]:
    return tuple(f"{word} {line}" for line in lines)


def _table(path: Path, source: Source) -> Document:
    columns = [source.column(number) for number in range(len(source.names))]
    records = tuple(dict(zip(source.names, row, strict=True)) for row in zip(*columns, strict=True))
    places = _places(source.lines, source.numbered_by)
    return Document(path, source.file, source.kind, records, places, table=source, bad=source.bad)


def _folder(path: Path) -> Document:
    """ITEM/CASE.EXT, and optionally cases/CASE.EXT with what was asked."""
    file, records, places, bad = shown_path(path), [], [], []
    asked = dict(_texts(path / CASES)) if (path / CASES).is_dir() else {}
    for item in sorted(one for one in path.iterdir() if one.is_dir() and not one.name.startswith(".")):
        for case, text in () if item.name == CASES else _texts(item):
            place = f"{item.name}/{case}"
            if text is None:
                bad.append(BadRow(0, f"{place} is not UTF-8 text"))
                continue
            records.append({"item": item.name, "case": case, "text": asked.get(case) or "", "output": text})
            places.append(place)
    return Document(path, file, "folder", tuple(records), tuple(places), bad=tuple(bad))


def _texts(folder: Path) -> Iterator[tuple[str, str | None]]:
    for file in sorted(one for one in folder.rglob("*") if one.is_file() and not _is_hidden(one.relative_to(folder))):
        case = file.relative_to(folder).with_suffix("").as_posix()
        try:
            yield case, file.read_text(encoding="utf-8-sig").removesuffix("\n")
        except UnicodeDecodeError:
            yield case, None


# --- Inspect's archives ---


def _archive(path: Path, packed: Bytes) -> Document:
    """`.eval`: a zip with header.json, or _journal/start.json if the run died, and a file for each sample."""
    file = packed.file
    try:
        members = _members(packed)
    except (zipfile.BadZipFile, ValueError, RecursionError, OSError, EOFError) as reason:
        raise BadVotes(f"cannot read {file}: {reason}") from None
    header = members.get("header.json", members.get("_journal/start.json"))
    if not isinstance(header, dict):
        raise BadVotes(f"{file} is an archive without header.json; Inspect's .eval archives are read")
    names = sorted(name for name in members if _SAMPLE.fullmatch(name))
    samples = [
        {"sample_file": name, **members[name], **_attachments(name, members)}
        for name in names
        if isinstance(members[name], dict)
    ]
    status = header.get("status", "started")
    whole = {"version": 2, **header, "status": status, "samples": samples}
    return Document(path, file, "Inspect archive", (whole,), ("header.json",), whole)


def _attachments(name: str, members: Mapping[str, Any]) -> dict[str, Any]:
    """Texts that a large sample keeps in further files, by their numbers. A file is named by its first number."""
    folder = name.removesuffix("sample.json") + "attachments/"
    if not name.endswith("/sample.json"):
        return {}
    files = {int(Path(one).stem): texts for one, texts in members.items() if one.startswith(folder)}
    texts = {str(first + place): text for first, texts in files.items() for place, text in enumerate(texts)}
    return {"attachments": texts} if texts else {}


def _members(packed: Bytes) -> dict[str, Any]:
    with zipfile.ZipFile(io.BytesIO(packed.data)) as plain:
        wanted = [one for one in plain.infolist() if one.filename.endswith(".json") and _is_read(one.filename)]
        if sum(one.file_size for one in wanted) > LARGEST:
            raise ValueError(TOO_LARGE)
        needs = any(one.compress_type == ZSTANDARD for one in wanted)
    opener = _zstandard() if needs and sys.version_info < (3, 14) else zipfile
    with opener.ZipFile(io.BytesIO(packed.data)) as archive:
        return {one.filename: json.loads(archive.read(one.filename)) for one in wanted}


def _is_read(name: str) -> bool:
    return name in ("header.json", "_journal/start.json") or bool(
        _SAMPLE.fullmatch(name) or _ATTACHMENTS.fullmatch(name)
    )


def _zstandard() -> Any:
    try:
        return import_module("backports.zstd.zipfile")
    except ImportError:
        raise NotInstalled("an Inspect log packed with zstd", "backports.zstd", "inspect") from None
