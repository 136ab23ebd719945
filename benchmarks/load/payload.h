/* What is sent: bytes that can be told from any others when they come back. */
#pragma once

#include "protocol.h"

/* A message to this subject with a payload of so many bytes, made once and kept. */
struct message message_to(const char *subject, size_t size);
/* Fails unless what was delivered is what was sent. */
void check_payload(const struct unit *unit, const struct message *message);
