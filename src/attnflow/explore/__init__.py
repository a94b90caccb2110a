"""A web page that shows attention as a flow."""

from attnflow.explore.app import create_app
from attnflow.explore.form import Form

__all__ = ["Form", "create_app"]
