"""The survey of a trained model as a self-contained page, and as JSON."""

from attnflow.model_report.numbers import to_json
from attnflow.model_report.page import html_report

__all__ = ["html_report", "to_json"]
