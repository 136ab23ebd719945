"""The files that a gateway serves to browsers: data that nothing imports and the front reads."""
