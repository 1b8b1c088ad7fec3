"""One file per thing that is asked for."""
