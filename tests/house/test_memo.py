"""Short values are looked up; long ones are not kept."""

from __future__ import annotations

from indlet.memo import SHORT, memoize


def test_only_short_values_are_remembered() -> None:
    asked: list[str] = []

    @memoize(10)
    def made(kind: int, value: str) -> str:
        asked.append(value)
        return f"{kind} {value}"

    short, long = "a" * SHORT, "b" * (SHORT + 1)
    for _ in range(3):
        assert (made(1, short), made(1, long), made(2, short)) == (f"1 {short}", f"1 {long}", f"2 {short}")
    assert sorted(asked) == [short, short, long, long, long]
