"""Which requests are admitted, and the security headers of every response."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from dash import Dash
from flask import Response, request

from attnflow.explore import limits

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers besides the content security policy."""

POLICY = {
    "default-src": "'self'",
    "script-src": "'self' 'unsafe-eval'",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "worker-src": "'self' blob:",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
"""The page loads nothing from elsewhere. Plotly may not need `unsafe-eval` any more."""

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


def is_local(host: str) -> bool:
    """Whether an address can be reached only from this machine.

    >>> is_local("localhost"), is_local("127.0.0.2"), is_local("::1"), is_local("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def protect(app: Dash, host: str) -> None:
    """Reject requests that do not come from this page, and set the headers of all responses.

    An app on a local `host` answers only under local names. Otherwise a page elsewhere could point
    its own name at this machine and read what is here. Call this after all callbacks exist, because
    the policy allows the inline scripts that Dash writes for them one by one.
    """
    names = {*LOCAL_HOSTS, host.lower()} if is_local(host) else None
    scripts = " ".join([POLICY["script-src"], *app.csp_hashes()])
    policy = "; ".join(
        f"{key} {value}" for key, value in (POLICY | {"script-src": scripts}).items()
    )
    app.server.config["MAX_CONTENT_LENGTH"] = limits.MAX_REQUEST_BYTES

    @app.server.before_request
    def _admit() -> Response | None:
        if names is not None and _name(request.host) not in names:
            return _refused(403, "this page is served to this machine alone, under its own name")
        if request.method in SAFE_METHODS:
            return None
        if request.content_length is None:
            return _refused(411, "a request must tell its length")
        if request.mimetype != "application/json":
            return _refused(415, "a request must be JSON")
        if not _from_here():
            return _refused(403, "a request must come from this page itself")
        return None

    @app.server.after_request
    def _secure(answer: Response) -> Response:
        answer.headers.update(HEADERS | {"Content-Security-Policy": policy})
        answer.headers.setdefault("Cache-Control", "no-store")
        return answer


def _name(host: str) -> str | None:
    """The name in a Host header, without its port."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _from_here() -> bool:
    """Whether the request comes from the page itself; programs that are not browsers pass."""
    if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        return False
    origin = request.headers.get("Origin")
    return origin is None or urlsplit(origin).netloc == request.host


def _refused(status: int, why: str) -> Response:
    return Response(why + ".\n", status, mimetype="text/plain")
