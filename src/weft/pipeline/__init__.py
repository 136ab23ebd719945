"""Jobs over the messages in journals: the ones shipped with Weft, a user's own, and SQL."""
