"""The numerical core: sampling rules, stopping rules and the loop. No input or output, no clock."""
