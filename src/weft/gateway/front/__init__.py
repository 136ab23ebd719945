"""The front process: accepting connections and passing them on."""
