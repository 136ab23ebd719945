"""Messages between gateways: sending, receiving, retransmission."""
