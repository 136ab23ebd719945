"""Error texts for a gateway's page that cannot be read, with the repair."""

import dataclasses
import http.client
import ssl

from weft.wire.address import Address

# Error text of a TLS port in answer to plain HTTP, within a native frame.
_TLS_ONLY = "this port speaks TLS only"
# OpenSSL's names for an answer that is not TLS.
_NO_TLS = {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"}


def sentence_about(address: Address, error: Exception) -> str:
    """Return why the page cannot be read."""
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
            return f"{where} closes the connection: not a Weft gateway, or one that is closing down"
        case TimeoutError():
            return f"no gateway answers at {where} in time"
        case OSError():
            return f"no gateway answers at {where}: {error.strerror or error}"
        case _:
            return f"{where} is not a Weft gateway"


def place(address: Address) -> str:
    """Return an address without the default scheme."""
    return str(address).removeprefix("tcp://")
