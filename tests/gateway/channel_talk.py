"""Asking a gateway for channels by hand, as docs/channels.md has it."""

from contextlib import AsyncExitStack
from functools import cache
from pathlib import Path
from ssl import SSLContext
from typing import Any, Self

from tests.broker.locksmith import key_of
from tests.gateway.meshes import LIMIT_S, SERVICE, gateway

import weft
from weft.broker.auth.keys import KeyRecord
from weft.errors import WeftError
from weft.gateway.gateway import Gateway
from weft.gateway.keys.key_file import change_keys
from weft.wire.password_proof import ProofInput, Secret, prove, secret_of

CHESS = "games.chess"
PASSWORD = "correct horse"  # noqa: S105  # the one that tests are about
NONCE = b"n" * 16

Facts = dict[str, Any]


@cache
def secret(password: str = PASSWORD, name: str = CHESS) -> Secret:
    """The keys of a password, made once: that takes a while, on purpose."""
    return secret_of(SERVICE, name.encode(), password)


def keys(password: str = PASSWORD, name: str = CHESS) -> Facts:
    """What a channel with this password is opened with."""
    verifier = secret(password, name).verifier
    return {"stored": verifier.stored, "server": verifier.server}


def proof_of(challenge: bytes, password: str = PASSWORD, name: str = CHESS) -> Facts:
    """What answers a challenge."""
    claim = ProofInput(SERVICE, name.encode(), challenge, NONCE)
    proof = prove(secret(password, name), claim)
    return {"name": name, "challenge": challenge, "nonce": NONCE, "proof": proof}


class Caller:
    """Someone at a gateway."""

    def __init__(self, client: weft.AsyncConnection) -> None:
        self.client = client

    async def ask(self, question: str, **about: Any) -> Facts:
        """What the gateway answers to a request about channels."""
        answer = await self.client.send_request(
            f"_WEFT.ask.channel.{question}", weft.Message.from_dict(about), LIMIT_S
        )
        return answer.to_dict()

    async def refused(self, question: str, **about: Any) -> str:
        """The name of the error that the gateway answers with."""
        return type(await self.error(question, **about)).__name__

    async def error(self, question: str, **about: Any) -> WeftError:
        """The error that the gateway answers with; the connection outlives it."""
        try:
            answer = await self.ask(question, **about)
        except WeftError as error:
            await self.client.flush()
            assert self.client.statistics.connects == 1
            return error
        raise AssertionError(f"channel.{question} was answered: {answer}")

    async def open(self, name: str = CHESS, **more: Any) -> str:
        """Open a channel; its id."""
        return str((await self.ask("open", name=name, **more))["id"])

    async def prove(self, password: str = PASSWORD, name: str = CHESS) -> Facts:
        """Ask for a challenge, and answer it."""
        challenge = (await self.ask("join", name=name))["challenge"]
        return await self.ask("prove", **proof_of(challenge, password, name))

    async def guess(self, password: str, name: str = CHESS) -> WeftError:
        """Ask for a challenge, and answer it; the error that comes of it."""
        challenge = (await self.ask("join", name=name))["challenge"]
        return await self.error("prove", **proof_of(challenge, password, name))

    async def listed(self) -> list[str]:
        """The names of all channels that it may see."""
        return [each["name"] for each in (await self.ask("list"))["channels"]]


class Place:
    """A gateway on the running loop, and callers that are connected with it until it ends."""

    def __init__(self, data: Path | None = None, *records: KeyRecord, **settings: Any) -> None:
        self._stack = AsyncExitStack()
        self._settings = settings
        if data is not None:
            self._settings["data"] = str(data)
        if records:
            assert data is not None
            change_keys(data, lambda _: records)

    async def __aenter__(self) -> Self:
        self.gateway: Gateway = await self._stack.enter_async_context(
            gateway("london", **self._settings)
        )
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self._stack.aclose()

    async def caller(
        self, name: str = "", key: str = "", way: str = "", tls: SSLContext | None = None
    ) -> Caller:
        """Someone who was greeted; with the key of this name, and by the door for this scheme."""
        client = await self._stack.enter_async_context(
            weft.connect(
                way + self.gateway.address,
                service=SERVICE,
                name=name,
                timeout_s=LIMIT_S,
                key=key_of(key) if key else "",
                tls=tls,
            )
        )
        return Caller(client)
