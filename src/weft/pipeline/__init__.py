"""Jobs over what was said: the ones that come with Weft, a user's own, and SQL."""
