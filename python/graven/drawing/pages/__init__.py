"""The report: one HTML file that shows a comparison, and opens without a network."""

from graven.drawing.pages.page import render

__all__ = ["render"]
