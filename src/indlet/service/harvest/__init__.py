"""Harvest a source: what to do next (`decide`), HTTP (`client`), and the loop between them (`run`)."""
