import gzip
import re
from importlib import resources

from weft.gateway.http.static_files import static_files, static_page, versioned_path


def test_the_client_is_one_module_that_imports_nothing() -> None:
    page = static_files()["/weft.js"]
    assert page.kind == "text/javascript; charset=utf-8"
    assert not re.search(r"^import\b", page.body, re.M)
    assert re.findall(r"^export .*", page.body, re.M) == [
        "export { WeftError };",
        "export async function connect(url, options = {}) {",
    ]


def test_every_file_is_compressed_beforehand_and_has_a_tag() -> None:
    for path, page in static_files().items():
        assert gzip.decompress(page.gzipped).decode() == page.body, path
        assert re.fullmatch(r'"[0-9a-f]{16}"', page.tag)
        assert page.is_immutable == (path == versioned_path())
    assert len(static_files()["/weft.js"].gzipped) < 32 << 10


def test_the_versioned_path_names_the_content_of_the_client() -> None:
    page = static_files()["/weft.js"]
    assert versioned_path() == "/weft.{}.js".format(page.tag.strip('"'))
    assert static_files()[versioned_path()].body == page.body


def test_the_path_of_another_version_leads_to_this_one() -> None:
    page = static_page("/weft.0123456789abcdef.js")
    assert page is not None
    assert page.status == 307
    assert dict(page.headers) == {"Location": "/weft.js", "Access-Control-Allow-Origin": "*"}
    assert not page.tag
    assert static_page("/weft.0123.js") is None


def test_all_files_of_the_package_are_served() -> None:
    names = {file.name for file in resources.files("weft.static").iterdir()}
    served = {f"/{name}" for name in names if name.endswith((".js", ".d.ts"))}
    assert served == static_files().keys() - {versioned_path()}
