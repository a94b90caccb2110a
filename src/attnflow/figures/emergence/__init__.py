"""Figures of [E], *The emergence of clusters in self-attention dynamics*."""
