"""Pallas, Rung by Rung: the package that the book's chapters draw from, and its ladder."""

__version__ = "0.1.0"
