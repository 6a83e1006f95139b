"""The store behind other people's interfaces: each framework in a room of its own, with an extra of its own."""
