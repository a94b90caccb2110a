"""Figures that answer the questions of [S], the slides."""
