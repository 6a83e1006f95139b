"""Which `Host` and `Origin` are ours: exact names, so that no page of another site, port or rebound name gets in."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

from memsift.errors import InvalidValue

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_HOST = re.compile(
    r"(?P<name>[a-z0-9](?:[a-z0-9.-]{0,252})|\[[0-9a-f:.]{2,45}\])(?::(?P<port>[0-9]{1,5}))?"
)


class Names:
    """The names under which a server is reached.

    Parameters
    ----------
    port : int
        Where it listens.
    allowed : names, or names with ports
        In addition to the loopback names. A name without a port stands for itself, as a proxy hands it on, and for
        itself with the server's port.
    loopback : bool
        Whether the loopback names count.
    """

    def __init__(self, port: int, allowed: Iterable[str] = (), *, loopback: bool = True) -> None:
        self.hosts: set[str] = set()
        for name in LOOPBACK if loopback else ():
            self.hosts.add(f"{name}:{port}")
            if port == 80:
                self.hosts.add(name)
        for entry in allowed:
            found = _HOST.fullmatch(entry.lower())
            if found is None:
                raise InvalidValue(
                    f"--allowed-host must be a name like memory.example.org, or one with a port; got {entry[:60]!r}"
                )
            self.hosts.add(entry.lower())
            if found["port"] is None:
                self.hosts.add(f"{entry.lower()}:{port}")
        # A page of ours comes from one of these; https is what a proxy in front makes of it.
        self.origins = {f"{scheme}://{host}" for host in self.hosts for scheme in ("http", "https")}

    def serves(self, host: str) -> bool:
        """Whether a `Host` header names this server."""
        return host.lower() in self.hosts

    def trusts(self, origin: str) -> bool:
        """Whether an `Origin` header names a page of this server."""
        return origin.lower() in self.origins


def is_loopback(host: str) -> bool:
    """Whether binding to `host` reaches this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
