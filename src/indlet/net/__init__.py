"""Requests that leave the node: connections, limits, retry policy, address policy."""
