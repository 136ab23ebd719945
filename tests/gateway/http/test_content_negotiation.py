import pytest

from weft.gateway.http.content_negotiation import accepts_gzip, has_tag


@pytest.mark.parametrize(
    ("accepted", "is_taken"),
    [
        ("gzip, deflate, br, zstd", True),
        ("GZIP", True),
        ("br;q=1.0, gzip;q=0.8", True),
        ("deflate, gzip; q=0.001", True),
        ("*", True),
        ("*;q=0.5", True),
        ("", False),
        ("identity", False),
        ("br", False),
        ("gzip;q=0", False),
        ("gzip;q=0.000", False),
        ("*;q=0", False),
        ("gzip;q=0, *", False),
        ("gzip;q=no", False),
        ("xgzip", False),
    ],
)
def test_gzip_is_used_only_where_it_is_accepted(accepted: str, is_taken: bool) -> None:
    assert accepts_gzip({"accept-encoding": accepted}) == is_taken


def test_who_says_nothing_of_encodings_gets_none() -> None:
    assert not accepts_gzip({})


@pytest.mark.parametrize(
    ("had", "is_had"),
    [
        ('"1a"', True),
        ('W/"1a"', True),
        ('"2b", W/"1a"', True),
        ("*", True),
        ('"2b"', False),
        ("1a", False),
        ('"1a-gzip"', False),
        ("", False),
    ],
)
def test_a_tag_is_found_among_those_that_the_client_has(had: str, is_had: bool) -> None:
    assert has_tag({"if-none-match": had}, '"1a"') == is_had
