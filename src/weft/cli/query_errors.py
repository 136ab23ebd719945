"""Why a gateway's page could not be had, in one sentence that says what to do about it."""

import dataclasses
import http.client
import ssl

from weft.wire.address import Address

# How a port that wants TLS refuses plain HTTP: its words, within a frame of Weft's own.
_TLS_ONLY = "this port speaks TLS only"
# What OpenSSL calls an answer that is none of TLS.
_NO_TLS = {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"}


def sentence_about(address: Address, error: Exception) -> str:
    """What kept the page from being read, for whoever asked for it."""
    where = place(address)
    match error:
        case ssl.SSLCertVerificationError():
            return f"the certificate of {where} cannot be trusted: {error.verify_message}"
        case ssl.SSLError() if error.reason in _NO_TLS:
            plain = place(dataclasses.replace(address, is_tls=False))
            return f"this port does not speak TLS: use {plain}"
        case http.client.BadStatusLine() if _TLS_ONLY in str(error):
            return f"{_TLS_ONLY}: use {dataclasses.replace(address, is_tls=True)}"
        case ConnectionResetError():
            return f"{where} hangs up when asked: it is no gateway, or one that is closing down"
        case TimeoutError():
            return f"no gateway answers at {where} in time"
        case OSError():
            return f"no gateway answers at {where}: {error.strerror or error}"
        case _:
            return f"what answers at {where} is no gateway"


def place(address: Address) -> str:
    """An address as people write it: only TLS needs to be said."""
    return str(address).removeprefix("tcp://")
