"""Figures of [P], *A mathematical perspective on Transformers*."""
