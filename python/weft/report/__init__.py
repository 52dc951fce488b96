"""The HTML report: one file, no network, light and dark, for a laptop and for a phone."""

from weft.report.page import render

__all__ = ["render"]
