"""One POST of JSON, and what may go wrong with it: time, size, redirects, busy servers, a key that must not leak."""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import ssl
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.error import HTTPError
from urllib.parse import SplitResult, urlsplit

from memsift import checks
from memsift.errors import EmbedderFailed, InvalidType, InvalidValue

# Answers that say: later. What else a server refuses, it will refuse again.
LATER = {408, 429, 500, 502, 503, 504}
LONGEST_PAUSE_SECONDS = 30.0
# 128 vectors of 4,096 numbers take 12 MiB.
LARGEST_ANSWER = 32 * 2**20
CHUNK = 64 * 1024


@dataclass(frozen=True)
class Endpoint:
    """Where to post, how long to wait, how often to try.

    Parameters
    ----------
    url : str
        `https`, or `http` on loopback; no user, no query.
    key_env : str
        The environment variable with the bearer token. It is read for each request and kept nowhere.
    timeout_seconds : float
        For connecting and for each silence of the server, and for an answer as a whole.
    attempts : int
        In all, the first included.
    sleep : callable
        For tests.
    """

    url: str
    key_env: str
    timeout_seconds: float = 30.0
    attempts: int = 4
    sleep: Callable[[float], object] = time.sleep

    def __post_init__(self) -> None:
        checked_url(self.url)
        seconds = checks.at_least_zero(self.timeout_seconds, "timeout_seconds")
        if not seconds:
            raise InvalidValue("timeout_seconds must be above 0; got 0")
        checks.integer(self.attempts, "attempts", 1, 20)

    def post(self, message: dict[str, Any]) -> Any:
        """The JSON that the server answers.

        Raises
        ------
        EmbedderFailed
            After the last attempt, or at once where another would not help. It says the host and what happened, never
            what was sent, the key, or the server's own words, which may quote either.
        """
        body = json.dumps(message).encode()
        for attempt in range(1, self.attempts + 1):
            try:
                return self._once(body)
            except Later as later:
                if attempt == self.attempts:
                    said = f"{self.host} {later.why}, {attempt} times in a row"
                    raise EmbedderFailed(said) from None
                self.sleep(min(max(later.seconds, 0.5 * 2 ** (attempt - 1)), LONGEST_PAUSE_SECONDS))
        raise AssertionError("the last attempt returns or raises")

    @property
    def host(self) -> str:
        """Host and port, as errors name them."""
        return urlsplit(self.url).netloc

    def _once(self, body: bytes) -> Any:
        request = urllib.request.Request(self.url, body, self._headers(), method="POST")
        until = time.monotonic() + self.timeout_seconds
        try:
            with _opener(self.url).open(request, timeout=self.timeout_seconds) as response:
                answer = self._read(response, until)
        except HTTPError as error:
            with error:
                raise self._refused(error) from None
        except (OSError, http.client.HTTPException) as error:
            raise self._unreached(getattr(error, "reason", error)) from None
        try:
            return json.loads(answer)
        except (ValueError, RecursionError):
            raise EmbedderFailed(f"{self.host} must answer with JSON; it did not") from None

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        key = os.environ.get(self.key_env, "").strip()
        if key:
            # The standard library would quote a bad header, key and all, in its error.
            if not (key.isascii() and key.isprintable()):
                raise InvalidValue(f"{self.key_env} must be printable ASCII; it is not")
            headers["Authorization"] = f"Bearer {key}"
        return headers

    def _read(self, response: http.client.HTTPResponse, until: float) -> bytes:
        """The whole answer, though never more than the limit and never for longer than was said."""
        parts, size = [], 0
        while part := response.read1(CHUNK):
            size += len(part)
            if size > LARGEST_ANSWER:
                raise EmbedderFailed(
                    f"{self.host} must answer in {LARGEST_ANSWER:,} bytes; got more"
                )
            if time.monotonic() > until:
                raise TimeoutError
            parts.append(part)
        if response.length:  # fewer bytes than it announced
            raise http.client.IncompleteRead(b"")
        return b"".join(parts)

    def _unreached(self, reason: object) -> Exception:
        if isinstance(reason, TimeoutError):
            return Later(f"did not answer within {self.timeout_seconds:g} seconds")
        kind = type(reason).__name__
        if isinstance(reason, ssl.SSLCertVerificationError):
            return EmbedderFailed(f"{self.host} could not prove who it is ({kind})")
        return Later(f"could not be reached ({kind})")

    def _refused(self, error: HTTPError) -> Exception:
        words = f"answered {error.code} {_phrase(error.code)}"
        if error.code in LATER:
            return Later(words, _seconds(error.headers.get("Retry-After")))
        if 300 <= error.code < 400:
            words += "; redirects are not followed, for the key would go along"
        return EmbedderFailed(f"{self.host} {words}")


class Later(Exception):
    """Another attempt may help."""

    def __init__(self, why: str, seconds: float = 0.0) -> None:
        super().__init__(why)
        self.why, self.seconds = why, seconds


def checked_url(url: object) -> SplitResult:
    """A URL that a key may be sent to.

    Raises
    ------
    InvalidValue
        Plain http to anywhere but loopback; a user, a query or a fragment in it; no host.
    """
    if not isinstance(url, str):
        raise InvalidType(f"base_url must be text; got {type(url).__name__}")
    allowed = "base_url must be https://HOST[:PORT]/PATH, or http:// on loopback"
    # A URL with a password in it is not repeated.
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise InvalidValue(f"{allowed}; got something else") from None
    odd = not url.isascii() or not url.isprintable() or " " in url
    if not host or odd or parts.query or parts.fragment or parts.scheme not in ("https", "http"):
        raise InvalidValue(f"{allowed}; got something else")
    if parts.username is not None or parts.password is not None:
        raise InvalidValue(f"{allowed}, without a user: keys come from the environment")
    if parts.scheme == "http" and not is_loopback(host):
        raise InvalidValue(f"{allowed}; got http:// to {host[:60]}")
    return parts


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _opener(url: str) -> urllib.request.OpenerDirector:
    # Plain http through a proxy would show it the key; loopback needs none.
    local = urllib.request.ProxyHandler({} if urlsplit(url).scheme == "http" else None)
    return urllib.request.build_opener(local, _NoRedirects)


def _phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return ""


def _seconds(retry_after: str | None) -> float:
    """What the server asks for; a date is taken as if it had said nothing."""
    text = (retry_after or "").strip()
    return float(text) if text.isdecimal() and len(text) < 6 else 0.0
