"""Outputs that other tools have written: one text per item and case, read from their files."""
