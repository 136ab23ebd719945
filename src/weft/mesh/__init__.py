"""How gateways become one fabric: pure, without clocks, sockets or chance."""
