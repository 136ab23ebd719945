"""Files for browsers: weft.js as one module, its source modules, and its types.

Prepared once per process: bundled, compressed, and named by a hash of their content.
"""

import gzip
import re
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import PurePath

from weft.gateway.http.js_bundle import bundled
from weft.gateway.http.response import PageResponse

_ENTRY = "weft.js"
_KINDS = {
    ".js": "text/javascript; charset=utf-8",
    ".ts": "application/typescript; charset=utf-8",
}
# The path of weft.js with a hash of its content, in this version of Weft or another.
_VERSIONED = re.compile(r"/weft\.[0-9a-f]{16}\.js")


def static_page(path: str) -> PageResponse | None:
    """Return the file that is served at a path; None if there is none.

    The versioned path of another version redirects to the current weft.js: a page that names it
    still works after its gateway is upgraded.
    """
    page = static_files().get(path)
    if page is None and _VERSIONED.fullmatch(path):
        headers = (("Location", f"/{_ENTRY}"), ("Access-Control-Allow-Origin", "*"))
        return PageResponse(307, "", headers=headers)
    return page


def versioned_path() -> str:
    """Return the path of weft.js that names its content, which browsers may cache permanently."""
    return next(path for path, page in static_files().items() if page.is_immutable)


@cache
def static_files() -> dict[str, PageResponse]:
    """Return all files by the paths that they are served at."""
    texts = {
        file.name: file.read_text(encoding="utf-8")
        for file in resources.files("weft.static").iterdir()
        if PurePath(file.name).suffix in _KINDS
    }
    modules = {name: text for name, text in texts.items() if name.endswith(".js")}
    texts[_ENTRY] = bundle = bundled(modules, _ENTRY)
    pages = {f"/{name}": _page(name, text) for name, text in texts.items()}
    pages[f"/weft.{_hash(bundle)}.js"] = _page(_ENTRY, bundle, is_immutable=True)
    return pages


def _page(name: str, text: str, *, is_immutable: bool = False) -> PageResponse:
    return PageResponse(
        200,
        text,
        _KINDS[PurePath(name).suffix],
        tag=f'"{_hash(text)}"',
        # No timestamp: the same text compresses to the same bytes in every gateway.
        gzipped=gzip.compress(text.encode(), 9, mtime=0),
        is_immutable=is_immutable,
    )


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]
