"""Tunnels behind a real nginx; without one these tests are skipped.

`apt-get install nginx-light` is enough, or set WEFT_NGINX to the program.
"""

import asyncio
import json
import os
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.transports.pages import Browser, Line, gateway

from weft.transports.http.origins import WebSettings

NGINX = os.environ.get("WEFT_NGINX") or shutil.which(
    "nginx", path=os.environ["PATH"] + ":/usr/sbin"
)
ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 15

pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed: see this file")

CONFIG = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {site}
}}
"""
SITE = """
server {{
    listen unix:{folder}/nginx;
    location / {{
        proxy_pass http://{address};
        proxy_http_version 1.1;
        {options}
    }}
}}
"""


@asynccontextmanager
async def nginx(
    folder: Path, browser: Browser, options: str = "", site: str = SITE
) -> AsyncIterator[Path]:
    """An nginx before the gateway, on a socket of its own."""
    address = ":".join(map(str, browser.address))
    config = folder / "nginx.conf"
    made = site.format(folder=folder, address=address, options=options)
    config.write_text(CONFIG.format(folder=folder, site=made))
    assert NGINX is not None
    log = str(folder / "error.log")
    process = await asyncio.create_subprocess_exec(NGINX, "-e", log, "-c", str(config))
    try:
        async with asyncio.timeout(WAIT_S):
            while not (folder / "nginx").exists():
                assert process.returncode is None, (folder / "error.log").read_text()
                await asyncio.sleep(0.01)
        yield folder / "nginx"
    finally:
        process.terminate()
        await process.wait()


async def asked(path: Path, target: str, body: bytes | None = None) -> Line:
    line = Line(*await asyncio.open_unix_connection(path))
    return await line.ask(f"/default/{target}", body)


@pytest.mark.req("TUN-13")
@pytest.mark.parametrize("buffering", ["on", "off"])
@pytest.mark.parametrize("form", ["ndjson", "sse"])
async def test_datagrams_come_through_nginx_as_they_are_told(
    tmp_path: Path, buffering: str, form: str
) -> None:
    async with (
        gateway() as browser,
        nginx(tmp_path, browser, f"proxy_buffering {buffering};") as path,
    ):
        line = await asked(path, f"tunnel?new=1&format={form}")
        header = await line.json() if form == "ndjson" else json.loads((await line.event())["data"])
        said = json.dumps([{"interest": "/a"}, {"path": "/a", "data": "x"}]).encode()
        answer = await asked(path, f"events?tunnel={header['tunnel']}", said)
        assert answer.status == 202
        told = await line.json() if form == "ndjson" else json.loads((await line.event())["data"])
        assert told["data"] == "x"
        answer.close()
        line.close()


async def test_polls_come_through_whatever_a_proxy_does(tmp_path: Path) -> None:
    ignoring = "proxy_buffering on; proxy_ignore_headers X-Accel-Buffering;"
    async with gateway() as browser, nginx(tmp_path, browser, ignoring) as path:
        line = await asked(path, "tunnel?new=1&format=poll")
        [header] = json.loads(await line.rest())
        known_by = header["tunnel"]
        line.send(f"/default/tunnel?tunnel={known_by}&format=poll")
        said = json.dumps([{"interest": "/a"}, {"path": "/a", "data": "x"}]).encode()
        answer = await asked(path, f"events?tunnel={known_by}", said)
        assert answer.status == 202
        await line.answered()
        assert json.loads(await line.rest())[0]["data"] == "x"
        answer.close()
        line.close()


async def test_the_configuration_in_the_docs_lets_pages_through_by_every_way(
    tmp_path: Path,
) -> None:
    found = re.search(r"```nginx\n(.*?)```", (ROOT / "docs" / "doors.md").read_text(), re.DOTALL)
    assert found is not None
    site = re.sub(r" *ssl_certificate.*\n", "", found[1])
    site = site.replace("{", "{{").replace("}", "}}")
    site = site.replace("listen 443 ssl", "listen unix:{folder}/nginx")
    site = site.replace("127.0.0.1:7411", "{address}")
    page = {"Host": "weft.example", "Origin": "https://weft.example"}
    socket = page | {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Protocol": "weft.json",
    }
    elsewhere = socket | {"Origin": "https://elsewhere.example"}
    async with (
        gateway(web=WebSettings(hosts=("weft.example",))) as browser,
        nginx(tmp_path, browser, site=site) as path,
    ):
        for target, headers, status in (
            ("stream/a", page, 200),
            ("tunnel?new=1&format=sse", page, 200),
            ("ws", socket, 101),
            ("ws", elsewhere, 403),
        ):
            line = Line(*await asyncio.open_unix_connection(path))
            line.send(f"/default/{target}", headers=headers)
            await line.answered()
            assert line.status == status, (target, line.head)
            line.close()


@pytest.mark.req("TUN-21")
async def test_a_client_that_nginx_lost_comes_back(tmp_path: Path) -> None:
    async with gateway() as browser, nginx(tmp_path, browser, "") as path:
        line = await asked(path, "tunnel?new=1&format=ndjson")
        known_by = (await line.json())["tunnel"]
        await browser.interest(known_by, "/a")
        line.close()
        await browser.publish("/a", 1)
        line = await asked(path, f"tunnel?tunnel={known_by}&format=ndjson")
        await line.json()
        assert (await line.json())["data"] == 1
        line.close()
