"""Figures of the papers, made again: a module a figure."""
