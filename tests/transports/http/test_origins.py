import pytest

from weft.transports.http.origins import (
    UntrustedOrigin,
    WebSettings,
    check_page,
    is_here,
    is_welcome,
)

OURS = ("mesh.example", "Other.Example", "10.1.2.3")


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LOCALHOST:7411", "127.0.0.1", "127.0.0.1:7411", "127.9.9.9", "[::1]:7411"),
        *("mesh.example", "MESH.example:443", "other.example", "10.1.2.3:7411"),
    ],
)
def test_a_gateway_goes_by_its_names_whatever_the_port(host: str) -> None:
    assert is_here(host, OURS)


@pytest.mark.parametrize(
    "host",
    [
        *(
            "",
            ":7411",
            "evil.example",
            "localhost.evil.example",
            "evil.localhost",
            "localhost@evil",
        ),
        *("127.0.0.1.evil.example", "[evil.example]", "[::2]", "8.8.8.8", "0x7f000001", "mesh"),
        *("mesh.example.evil", "localhost, evil.example", " localhost", "2130706433"),
        *("[::1]evil", "[::1]evil:7411", "evil[::1]", "[::1]:7411evil", "localhost:7411evil"),
        *("[::1", "::1", "[localhost]", "[mesh.example]", "localhost:80:80", "localhost:123456"),
    ],
)
def test_a_gateway_goes_by_no_name_that_a_stranger_gave_it(host: str) -> None:
    assert not is_here(host, OURS)


TRUSTED = ("https://pages.example",)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"host": "localhost:7411"},
        {"host": "localhost:7411", "origin": "http://localhost:7411"},
        {"host": "localhost:7411", "origin": "https://pages.example"},
        {"host": "localhost", "sec-fetch-site": "same-origin"},
        {"host": "localhost", "sec-fetch-site": "none"},
        {"origin": "https://pages.example", "sec-fetch-site": "cross-site"},
    ],
)
def test_no_page_an_own_page_and_a_trusted_one_are_welcome(headers: dict[str, str]) -> None:
    assert is_welcome(headers, TRUSTED)


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "localhost:7411", "origin": "https://evil.example"},
        {"host": "localhost:7411", "origin": "http://localhost:1"},
        {"host": "localhost:7411", "origin": "http://localhost"},
        {"host": "localhost:7411", "origin": "https://pages.example.evil"},
        {"host": "localhost:7411", "origin": "http://pages.example"},
        {"host": "localhost:7411", "origin": "null"},
        {"host": "", "origin": "null"},
        {"origin": "null"},
        {"origin": "file://"},
        {"host": "localhost", "sec-fetch-site": "cross-site"},
        {"host": "localhost", "sec-fetch-site": "same-site"},
    ],
)
def test_a_page_from_elsewhere_is_not(headers: dict[str, str]) -> None:
    assert not is_welcome(headers, TRUSTED)


SCRIPT = {
    "host": "localhost",
    "sec-fetch-site": "cross-site",
    "sec-fetch-mode": "no-cors",
    "sec-fetch-dest": "script",
}


@pytest.mark.parametrize("referrer", ["https://pages.example/", "https://pages.example"])
def test_a_trusted_page_may_load_scripts_where_there_are_any(referrer: str) -> None:
    headers = {**SCRIPT, "referer": referrer}
    check_page(headers, WebSettings(origins=TRUSTED, jsonp=True))
    with pytest.raises(UntrustedOrigin):
        check_page(headers, WebSettings(origins=TRUSTED, jsonp=False))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"referer": ""},
        {"referer": "https://pages.example.evil/"},
        {"referer": "https://pages.example@evil.example/"},
        {"referer": "https://evil.example/https://pages.example/"},
        {"referer": "http://pages.example/"},
        {"referer": "https://pages.example:444/"},
        {"referer": "pages.example"},
        {"referer": "https://pages.example/", "origin": "null"},
        {"referer": "https://pages.example/", "origin": "https://evil.example"},
        {"referer": "https://pages.example/", "sec-fetch-dest": "document"},
        {"referer": "https://pages.example/", "sec-fetch-dest": "image"},
    ],
)
def test_a_script_of_any_other_page_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(UntrustedOrigin):
        check_page({**SCRIPT, **headers}, WebSettings(origins=TRUSTED, jsonp=True))
