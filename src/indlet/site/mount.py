"""The lines that mount a node below a path of a web server: docs/site.md shows them, and tests start servers
with them."""

from __future__ import annotations

from typing import Final

PATH: Final = "/modoai"

_APACHE = """\
# a2enmod proxy proxy_http remoteip
ProxyPass "{path}" "{node}{path}"
ProxyPassReverse "{path}" "{node}{path}"
# The node asks on behalf of its requesters: rules for addresses see theirs. (So could any other program on
# this machine.)
RemoteIPHeader X-Forwarded-For
RemoteIPInternalProxy 127.0.0.1 ::1
"""
_NGINX = """\
# In the server block.
location ~ ^{path}(/|$) {{
    proxy_pass {node};
    proxy_set_header X-Forwarded-For $remote_addr;
}}
# The node asks on behalf of its requesters: rules for addresses see theirs.
set_real_ip_from 127.0.0.1;
set_real_ip_from ::1;
real_ip_header X-Forwarded-For;
"""
_CADDY = """\
# In the site block. Caddy's rules see the node's own address (127.0.0.1), not that of a requester.
@indlet path {path} {path}/*
reverse_proxy @indlet {node}
"""
SNIPPETS: Final = {"apache": _APACHE, "nginx": _NGINX, "caddy": _CADDY}


def snippet(server: str, host: str, port: int, path: str = PATH) -> str:
    """The lines for a node that listens there and whose public root has that path."""
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return SNIPPETS[server].format(path=path, node=f"http://{authority}")
