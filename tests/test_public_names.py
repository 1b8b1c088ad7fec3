import subprocess
import sys

import shortlist


def test_all_names_resolve_and_are_complete():
    assert shortlist.__all__ == sorted(shortlist._HOMES)
    for name in shortlist.__all__:
        assert getattr(shortlist, name).__name__ == name
        assert getattr(shortlist, name).__doc__
    assert set(dir(shortlist)) == {*shortlist.__all__, "__version__"}


def test_public_functions_are_not_hidden_by_modules_of_the_same_name():
    code = "import shortlist.simulation.run, shortlist.core.arrays, shortlist.core.oracle; import shortlist as s; "
    code += "assert callable(s.simulate)"
    subprocess.run([sys.executable, "-c", code + " and callable(s.certify) and callable(s.fit)"], check=True)


def test_importing_is_light():
    """The command line's help must not pay for numerics."""
    code = "import sys, shortlist, shortlist.cli.app; assert not set(sys.modules) & "
    code += "{'numpy', 'scipy', 'numba', 'pandas', 'polars', 'pyarrow'}"
    subprocess.run([sys.executable, "-c", code], check=True)
