"""Imports point down this list only. The same list is drawn in docs/architecture.md."""

import ast
from pathlib import Path

import shortlist

ROOT = Path(shortlist.__file__).parent
LAYERS = [
    ["cli"],
    ["web"],
    ["experiments", "judges", "report"],
    ["plots"],
    ["findings"],
    ["study", "io"],
    ["simulation"],
    ["arrays", "baselines", "instances"],
    ["loop"],
    ["rules"],
    ["certificates", "oracle", "tracking"],
    ["resistance"],
    ["estimate", "facts"],
    ["ledger"],
    ["belief"],
    ["problem", "tally"],
    ["families"],
    ["pairs"],
    ["checks", "dice", "threads"],
    ["errors"],
]
HEIGHT = {name: len(LAYERS) - level for level, names in enumerate(LAYERS) for name in names}
SHELL = ("cli", "web", "experiments", "judges", "report", "plots", "findings", "study", "io")
CORE_MAY_IMPORT = {
    "collections", "concurrent", "contextlib", "dataclasses", "functools", "hashlib", "importlib", "math",
    "multiprocessing", "numba", "numpy", "operator", "scipy", "shortlist", "threadpoolctl", "time", "typing",
}  # fmt: skip


def modules():
    for file in sorted(ROOT.rglob("*.py")):
        name = file.relative_to(ROOT).with_suffix("").parts
        yield name[0], file


def imports(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            if node.module == "shortlist":
                yield from (f"shortlist.{alias.name}" for alias in node.names)


def test_every_module_has_a_place():
    assert {name for name, _ in modules()} - {"__init__", "__main__"} == set(HEIGHT)


def test_imports_point_down():
    for name, file in modules():
        if name in ("__init__", "__main__"):
            continue
        for target in imports(file):
            part = target.split(".")[1] if target.startswith("shortlist.") else None
            if part in HEIGHT and part != name:
                assert HEIGHT[part] < HEIGHT[name], f"{file.relative_to(ROOT)} imports {target}"


def test_the_core_knows_only_numbers():
    for name, file in modules():
        if name not in ("__init__", "__main__", *SHELL):
            foreign = {target.split(".")[0] for target in imports(file)} - CORE_MAY_IMPORT
            assert not foreign, f"{file.relative_to(ROOT)} imports {foreign}"


def test_optional_packages_are_imported_nowhere_by_name():
    """They are loaded where they are used, by `io.frames.load`, which says how to get them."""
    for _, file in modules():
        assert not {target.split(".")[0] for target in imports(file)} & {"pandas", "polars", "pyarrow"}


def test_no_hidden_randomness():
    for _, file in modules():
        text = file.read_text()
        assert "np.random.seed" not in text
        assert "default_rng()" not in text
