"""Imports point down this list only. The same list is drawn in docs/architecture.md."""

import ast
from pathlib import Path

import shortlist

ROOT = Path(shortlist.__file__).parent
LAYERS = [
    ["cli"],
    ["web"],
    ["outputs"],
    ["judges", "report"],
    ["plots"],
    ["analysis"],
    ["study", "votes"],
    ["simulation"],
    ["baselines"],
    ["core"],
    ["errors", "verify"],
]
CORE_LAYERS = [
    ["arrays", "revisions"],
    ["loop"],
    ["sampling"],
    ["stopping", "oracle"],
    ["evidence"],
    ["betting", "estimate"],
    ["ridge"],
    ["units"],
    ["outcomes", "tally"],
    ["problem"],
    ["families", "linalg"],
    ["draws", "pairs"],
]
HEIGHT = {name: len(LAYERS) - level for level, names in enumerate(LAYERS) for name in names}
CORE_HEIGHT = {name: len(CORE_LAYERS) - level for level, names in enumerate(CORE_LAYERS) for name in names}
NUMERIC = ("baselines", "core", "errors")
CORE_MAY_IMPORT = {
    "collections", "concurrent", "contextlib", "dataclasses", "functools", "hashlib", "html", "importlib", "math",
    "multiprocessing", "numba", "numpy", "operator", "scipy", "shortlist", "threadpoolctl", "time", "typing",
}  # fmt: skip


def modules():
    for file in sorted(ROOT.rglob("*.py")):
        yield file.relative_to(ROOT).with_suffix("").parts, file


def imports(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            if node.module == "shortlist":
                yield from (f"shortlist.{alias.name}" for alias in node.names)


def test_every_module_has_a_place():
    parts = [name for name, _ in modules()]
    assert {name[0] for name in parts} - {"__init__", "__main__"} == set(HEIGHT)
    assert {name[1] for name in parts if name[0] == "core"} - {"__init__"} == set(CORE_HEIGHT)


def check_direction(name, target, file):
    part = target.split(".")[1:]
    if not part or part[0] not in HEIGHT:
        return
    if part[0] != name[0]:
        assert HEIGHT[part[0]] < HEIGHT[name[0]], f"{file.relative_to(ROOT)} imports {target}"
    elif part[0] == "core" and len(part) > 1 and part[1] != name[1]:
        assert CORE_HEIGHT[part[1]] < CORE_HEIGHT[name[1]], f"{file.relative_to(ROOT)} imports {target}"


def test_imports_point_down():
    for name, file in modules():
        for target in imports(file) if name[0] not in ("__init__", "__main__") else ():
            if target.startswith("shortlist."):
                check_direction(name, target, file)


def test_the_package_imports_only_itself_and_its_dependencies():
    """Experiments, benchmarks and tests use the package; the package never uses them."""
    for _, file in modules():
        used = {target.split(".")[0] for target in imports(file)} & {"benchmarks", "experiments", "tests"}
        assert not used, f"{file.relative_to(ROOT)} imports {used}"


def test_the_core_knows_only_numbers():
    for name, file in modules():
        if name[0] in NUMERIC:
            foreign = {target.split(".")[0] for target in imports(file)} - CORE_MAY_IMPORT
            assert not foreign, f"{file.relative_to(ROOT)} imports {foreign}"


def test_optional_packages_are_imported_nowhere_by_name():
    """They are loaded where they are used, by `votes.files.load`, which says how to install them."""
    for _, file in modules():
        assert not {target.split(".")[0] for target in imports(file)} & {"openpyxl", "pandas", "polars", "pyarrow"}


def test_no_hidden_randomness():
    for _, file in modules():
        text = file.read_text()
        assert "np.random.seed" not in text
        assert "default_rng()" not in text
