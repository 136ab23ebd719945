"""weft.js in Node against real gateways: what its tests in JavaScript say, file by file.

They import it as gateways serve it: bundled into one module, beside the modules that it is made of.
"""

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import weft
from weft.broker.limits import Limits
from weft.gateway.config.mesh_settings import MeshSettings
from weft.gateway.config.settings import Settings
from weft.gateway.http.static_files import static_files
from weft.gateway.keys.manage import make_key, new_record
from weft.transports.http.origins import WebSettings

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGES = ROOT / "src" / "weft" / "static"
EXAMPLES = [
    pytest.param(code, id=page.name)
    for page in (ROOT / "README.md", ROOT / "docs" / "javascript.md")
    for code in re.findall(r"^```js\n(.*?)^```", page.read_text(), re.M | re.S)
]
FILES = sorted(path.name for path in HERE.glob("*.test.mjs"))
# Those that say the same of every transport.
BY_TRANSPORT = (
    "weft.test.mjs",
    "resuming.test.mjs",
    "channels.test.mjs",
    "leaving.test.mjs",
    "silence.test.mjs",
)
RUNS = [(name, "") for name in FILES if name not in BY_TRANSPORT] + [
    (name, transport) for name in BY_TRANSPORT for transport in ("websocket", "sse", "poll")
]
OPTION = re.compile(r"^  (\w+): ([\d_]+),", re.M)
NODE = shutil.which("node")
NODE_MIN = 20
# Node 20 and 21 have a WebSocket only for those who ask.
WEBSOCKET_FROM = 22


def node_version() -> int:
    """The version of Node that is here, or 0."""
    if NODE is None:
        return 0
    said = subprocess.run([NODE, "--version"], capture_output=True, text=True, check=True)  # noqa: S603
    found = re.match(r"v(\d+)", said.stdout)
    return int(found[1]) if found else 0


VERSION = node_version()


@asynccontextmanager
async def gateways() -> AsyncIterator[dict[str, str]]:
    """Where the gateways are that the tests in JavaScript need; one goes when they say so."""
    strict = Limits(ping_s=0.25, control_burst=100, control_per_s=50)
    every = {
        "WEFT_URL": Settings(name="first"),
        "WEFT_OTHER_URL": Settings(name="other"),
        "WEFT_STRICT_URL": Settings(name="strict", limits=strict),
    }
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        make_key(folder, new_record("page", "service", "default"))
        every["WEFT_LOCKED_URL"] = Settings(name="locked", data=str(folder))

        async def started(settings: Settings) -> weft.Gateway:
            made = weft.Gateway(listen="127.0.0.1:0", settings=settings, workers="inline")
            return await stack.enter_async_context(made)

        running = {name: await started(settings) for name, settings in every.items()}
        # It has somewhere else to send those who must leave it.
        mesh = MeshSettings(join=(running["WEFT_URL"].address,))
        running["WEFT_DRAINED_URL"] = await started(Settings(name="drained", mesh=mesh))
        control = weft.connect(running["WEFT_URL"].address, service="control")
        connection = await stack.enter_async_context(control)
        drained = running["WEFT_DRAINED_URL"]
        connection.subscribe("drain", lambda _message: drained.drain())
        yield {name: f"http://{gateway.address}" for name, gateway in running.items()}


needs_node = pytest.mark.skipif(
    VERSION < NODE_MIN, reason=f"needs Node {NODE_MIN} or newer, and here is {VERSION or 'none'}"
)


async def run_node(*arguments: str, **environment: str) -> str:
    """What Node prints, if it ends well."""
    flags = "" if VERSION >= WEBSOCKET_FROM else "--experimental-websocket"
    process = await asyncio.create_subprocess_exec(
        *(str(NODE), *arguments),
        env={**os.environ, **environment, "NODE_OPTIONS": flags, "NODE_NO_WARNINGS": "1"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, said.decode()
    return said.decode()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tests and, where they look for them, the files that gateways serve."""
    folder = tmp_path_factory.mktemp("served")
    pages = folder / "src" / "weft" / "static"
    pages.mkdir(parents=True)
    for path, page in static_files().items():
        (pages / path.removeprefix("/")).write_text(page.body)
    (folder / "package.json").write_text('{"type": "module"}')
    tests = folder / "tests" / "javascript"
    tests.mkdir(parents=True)
    for program in HERE.glob("*.mjs"):
        shutil.copy(program, tests)
    shutil.copytree(ROOT / "docs" / "vectors", folder / "docs" / "vectors")
    return folder


@needs_node
@pytest.mark.parametrize(("name", "transport"), RUNS)
async def test_in_node(name: str, transport: str, served: Path) -> None:
    async with gateways() as addresses:
        program = served / "tests" / "javascript" / name
        arguments = ("--test", "--test-reporter=tap", str(program))
        await run_node(*arguments, **addresses, WEFT_TRANSPORT=transport)


@needs_node
@pytest.mark.parametrize("code", EXAMPLES)
async def test_an_example_runs_as_it_is_printed(code: str, tmp_path: Path) -> None:
    async with weft.Gateway(listen="127.0.0.1:0", workers="inline") as gateway:
        (tmp_path / "weft.mjs").write_text(static_files()["/weft.js"].body)
        example = code.replace("http://127.0.0.1:7411/weft.js", "./weft.mjs")
        example = example.replace("http://127.0.0.1:7411", f"http://{gateway.address}")
        program = tmp_path / "example.mjs"
        program.write_text(f"{example}\nawait weft.close();\n")
        service = re.findall(r'service: "(\w+)"', code)[0]
        async with weft.connect(gateway.address, service=service) as connection:
            quotes = connection.subscribe("quotes.get", lambda m: m.respond({"price": 3}))
            await quotes.ready()
            assert "3" in await run_node(str(program))


def test_options_are_the_same_in_the_program_its_types_and_its_page() -> None:
    program = (PAGES / "weft-options.js").read_text()
    types = (PAGES / "weft.d.ts").read_text()
    page = (ROOT / "docs" / "javascript.md").read_text()
    known = re.findall(r"^  (\w+):", program.partition("DEFAULTS = {")[2].partition("};")[0], re.M)
    typed = types.partition("interface ConnectOptions {")[2].partition("\n}")[0]
    table = page.partition("| option | default")[2].partition("\n\n")[0]
    assert len(known) == 13
    assert sorted(re.findall(r"^  (\w+)\?:", typed, re.M)) == sorted(known)
    named = [cell for row in table.splitlines()[2:] for cell in row.split("|")[1:2]]
    assert sorted(re.findall(r"`(\w+)`", " ".join(named))) == sorted(known)


def test_a_gateway_keeps_things_for_longer_than_a_page_takes_to_come_back() -> None:
    program = (PAGES / "weft-options.js").read_text()
    known = {name: int(text.replace("_", "")) for name, text in OPTION.findall(program)}
    dialling_s = (3 * known["connectTimeout"] + known["backoffCap"]) / 1000
    # Once a minute is how often timers of a page in the background go off.
    noticed_s = max(2.5 * known["heartbeat"] / 1000, 2 * 60)
    rules = WebSettings()
    assert noticed_s + dialling_s < min(rules.ring_s, rules.cull_s)
