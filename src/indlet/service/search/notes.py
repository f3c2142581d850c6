"""What there is to say about a query, in English; a page may say it in another language.

A note is a text that also knows which one it is and what was put in. Numbers are put in as `int` where
they count something, so that each language can write them in its own way.
"""

from __future__ import annotations

from typing import Final

from indlet.model import JsonObject

TEXTS: Final = {
    # About the index
    "index_anew": "the index was made anew: {reason}",
    "index_stuck": "the index could not be brought up to date: {reason}",
    "index_behind": "the index is {changes} changes behind: another process is bringing it up to date",
    "other_policy": (
        "{sources}: indexed under another analysis policy than this query; "
        "search with the settings that were used then (--config), or harvest again"
    ),
    "pruned": "the index is incomplete ({loss}): totals count what it keeps",
    "loose": (
        "phrases in the full text: {loose} came without word positions, so there a phrase means that all of "
        "its words occur"
    ),
    "loose_some": (
        "phrases in the full text: exact in {exact}; {loose} came without word positions, so there a phrase "
        "means that all of its words occur"
    ),
    # About how a query was taken
    "read_as_word": "“{word}” was read as a word: to search a field, leave no space after the colon",
    "only_excludes": "the query only says what to leave out: it finds every other record",
    "too_many_to_verify": (
        "more than {most} records hold the words of “{phrase}” in {field}: there the phrase means all of its "
        "words; add a filter to have it exact"
    ),
    "too_many_texts": (
        "more than {most} records without word positions hold the words of “{phrase}”: there the phrase "
        "means all of its words; add a filter or a word to have it exact"
    ),
    "no_such_form": "“{value}” does not have the form of a {field}",
    "known_item": "“{text}” was read as an identifier; to search for its words, put them in quotation marks",
    "some_words": "no record has all of the words; these have some of them",
    "no_source": "no source is called “{name}”",
    # Faults of a query
    "all_stopped": (
        "{words}: nothing but words that are too common to be indexed, or too long; add a more telling one"
    ),
    "too_long": "the query has {characters} characters; {most} are allowed",
    "no_word": "the query holds no word",
    "no_word_but_all": "the query holds no word; * finds every record",
    "empty": "the query is empty; write a word, or * for every record",
    "too_many_parts": (
        "the query has more than {most} parts; shorten it, "
        "or raise max_clauses in the section [search] of the settings"
    ),
    "too_many_phrases": "the query has more than {most} phrases; leave some out",
    "too_many_prefixes": "more than {most} words end in *; write some of them out",
    "too_deep": "parentheses are nested more than {most} deep",
    "unclosed_quote": "this quotation mark is never closed",
    "unclosed": "this parenthesis is never closed",
    "unopened": "nothing was opened that this closes",
    "empty_group": "there is nothing between these parentheses",
    "empty_phrase": "this phrase holds no word",
    "right": "{word} needs something to its right",
    "right_of_this": "this needs something to its right",
    "left": "{word} needs something to its left",
    "no_field": "no field is called {field}; there are {known} (in quotation marks it is searched as text)",
    "no_field_but": (
        "no field is called {field}; did you mean {near}:? (in quotation marks it is searched as text)"
    ),
    "field_alone": "{field}: needs a word, a phrase or a parenthesis after it",
    "colon_alone": "a field needs a word, a phrase or a parenthesis after its colon",
    "star_alone": "{field}: needs at least the beginning of a word before *",
    "star_within": "* stands for the rest of a word, so only at its end",
    "date": "a date is written 2001, 2001-05 or 2001-05-31, and a range of them 2001..2005",
    "no_month": "there is no month {month}",
    "no_day": "{month} has no day {day}",
    "backwards": "this range of dates ends before it begins",
}


class Note(str):
    """A text in English, with its code and the values that were put in."""

    __slots__ = ("code", "values")
    code: str
    values: JsonObject

    def __new__(cls, code: str, **values: object) -> Note:
        shown = {name: f"{value:,}" if isinstance(value, int) else value for name, value in values.items()}
        note = super().__new__(cls, TEXTS[code].format(**shown))
        note.code, note.values = code, values
        return note
