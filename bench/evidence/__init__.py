"""Experiments that anyone can rerun, and the page that shows what they found.

    INDLET_DATA=… python -m bench.evidence [experiment …] [--size small|usual|full]

Each experiment is a module with a `TITLE`, a `run(setting)` that gives what was found as plain values, and a
`show(found, figures)` that tells it. What was found is kept as JSON; the page is made from those files alone.
"""
