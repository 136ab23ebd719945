import re
from pathlib import Path

import msgspec
import pytest

from weft.errors import BadOption
from weft.gateway.config import load as config
from weft.gateway.config.settings import Log, Settings
from weft.transports.tunnel.formats import FormatSettings

OPERATIONS = Path(__file__).resolve().parents[3] / "docs" / "operations.md"


def written(folder: Path, text: str) -> Path:
    path = folder / "weft.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_a_file_everything_is_by_default() -> None:
    assert config.load() == Settings()


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    assert config.load(written(tmp_path, "")) == Settings()


def test_a_file_sets_what_it_names(tmp_path: Path) -> None:
    path = written(tmp_path, 'name = "a"\nservices = ["x"]\ndrain_s = 3\n[log]\nformat = "json"\n')
    settings = config.load(path)
    expected = Settings(name="a", services=("x",), drain_s=3.0, log=Log(format="json"))
    assert settings == expected


def test_an_option_wins_over_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, '[log]\nlevel = "debug"\nformat = "json"\n')
    settings = config.load(path, {"log.level": "error", "name": "b"})
    assert settings.log == Log(level="error", format="json")
    assert settings.name == "b"


def test_options_need_no_file() -> None:
    assert config.load(None, {"limits.ping_s": 3.0}).limits.ping_s == 3.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("drain_ms = 3", "no setting 'drain_ms'; did you mean 'drain_s'?"),
        ("[limits]\nping = 3", "no setting 'limits.ping'; did you mean 'limits.ping_s'?"),
        ("ping_s = 3", "no setting 'ping_s'; did you mean 'limits.ping_s'?"),
        ("[limit]\nping_s = 3", "no setting 'limit.ping_s'; did you mean 'limits.ping_s'?"),
        ("[tls]\ncertificate = ''", "no setting 'tls.certificate'; did you mean 'tls.cert'?"),
        ("zzzzzz = 3", "no setting 'zzzzzz'"),
        ("[zzzzzz]", "no setting 'zzzzzz'"),
        ("[name]\nx = 1", "no setting 'name.x'"),
        ('drain_s = "10s"', "drain_s: expected a number of seconds, got str"),
        ("[limits]\nbody_bytes = 1.5", "limits.body_bytes: expected a whole number of bytes"),
        ("[limits]\nping_s = true", "limits.ping_s: expected a number of seconds, got bool"),
        ("connections = 1e4", "connections: expected a whole number, got float"),
        ('services = "a"', "services: expected a list, got str"),
        ("limits = 3", "limits: expected a table, got int"),
        ('[log]\nlevel = "loud"', "log.level: expected one of debug, info, warning, error, got"),
        ("drain_s = 0", "drain_s is 0"),
        ("name", "not TOML"),
        ("[web]\ntunnels = 0", "web.tunnels is 0"),
        ("[web]\nring_s = -1", "web.ring_s is -1"),
        ("[formats.own]\nheder = ''", "no setting 'formats.NAME.heder'; did you mean"),
        ("[formats.own]\nheader = 3", "formats.NAME.header: expected str, got int"),
        ("[formats.own]\nfooter = '%(id)s'", "formats.own.footer: '%(id)s' cannot stand here"),
        ("[formats.own]\nencoding = 'x'", "formats.own.encoding is 'x'"),
        ("[formats]\nown = 3", "formats"),
        ("formats = 3", "formats: expected a table, got int"),
        ("[formats.poll]", "formats.poll: this one is built in"),
    ],
)
def test_a_mistake_in_the_file_names_the_file_and_the_key(
    tmp_path: Path, text: str, said: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(BadOption) as caught:
        config.load(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_mistake_in_an_option_does_not_blame_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "drain_s = 3")
    with pytest.raises(BadOption) as caught:
        config.load(path, {"listen": "0.0.0.0:1"})
    assert str(path) not in str(caught.value)


@pytest.mark.req("TUN-5")
def test_an_operator_names_formats(tmp_path: Path) -> None:
    path = written(tmp_path, '[formats.own]\nheader = "h"\n[formats.two-2]\n')
    settings = config.load(path, {"formats.own.footer": "f"})
    own = FormatSettings(header="h", footer="f")
    assert settings.formats == {"own": own, "two-2": FormatSettings()}


def test_an_option_under_what_is_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="log must be a table"):
        config.load(None, {"log": "info", "log.level": "info"})
    with pytest.raises(BadOption, match=r"weft\.toml: log: expected a table"):
        config.load(written(tmp_path, "log = 3"), {"log.level": "info"})


def test_an_option_may_complete_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, '[tls]\ncert = "a.pem"')
    assert config.load(path, {"tls.key": "a.key"}).tls.is_on


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match=r"none\.toml cannot be read: No such file"):
        config.load(tmp_path / "none.toml")


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "weft.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadOption, match="not TOML"):
        config.load(path)


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "#" * ((1 << 20) + 1))
    with pytest.raises(BadOption, match="over the limit"):
        config.load(path)


def test_every_key_is_explained_with_its_default() -> None:
    explained = {}
    table = ""
    for line in OPERATIONS.read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"`\[([\w.]+)\]`", line):
            table = f"{heading[1]}."
        elif line.startswith("### "):
            break
        elif row := re.match(r"\| `(\w+)` \| (.+?) \|", line):
            explained[table + row[1]] = row[2].strip("`")
    defaults = msgspec.to_builtins(Settings())
    defaults["formats"] = {"NAME": msgspec.to_builtins(FormatSettings())}
    for key in config.all_keys():
        value = defaults
        for name in key.split("."):
            value = value[name]
        said = explained.pop(key)
        if key != "name":
            assert said == msgspec.json.encode(value).decode(), key
    assert not explained
