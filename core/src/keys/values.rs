//! Values of metadata as facets, lists and orders know them: terms of the index that people never type.
//!
//! A value becomes a term of its field's mark, its key and its spelling: `␟Cwang, wei␁Wang, Wei`. Spellings that differ by
//! case, accents, or the order of a name have one key and count as one value; it is shown in the spelling that most records
//! have. The dictionary keeps terms in order, so it is also the list from A to Z, and the records' order by title or author.
//! Spaces are U+0002 here, for they separate terms.

use unicode_general_category::{GeneralCategory as Category, get_general_category};

use super::people::{filing_name, fold};
use crate::text::cut;
use crate::text::tokens::{for_each_word, is_space, pieces};

/// Characters of a value, of a key, and of a title; longer ones are cut.
const LONGEST_VALUE: usize = 200;
const LONGEST_KEY: usize = 120;
const LONGEST_TITLE: usize = 1000;
const LONGEST_KEYED_TITLE: usize = 2000;
/// Words of a title that its key counts.
const WORDS: usize = 60;

/// The mark of a facet whose values are terms (`indlet.model.VALUE_MARKS`).
fn mark(facet: &str) -> Option<&'static str> {
    Some(match facet {
        "creator" => "\x1fC",
        "format" => "\x1fF",
        "subject" => "\x1fS",
        "inferred_subject" => "\x1fU",
        "inferred_type" => "\x1fY",
        _ => return None,
    })
}

/// A text with white space folded.
fn fold_spaces(text: &str) -> String {
    text.split(is_space).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

pub fn is_printable(c: char) -> bool {
    c == ' '
        || !matches!(
            get_general_category(c),
            Category::Control
                | Category::Format
                | Category::Surrogate
                | Category::PrivateUse
                | Category::Unassigned
                | Category::LineSeparator
                | Category::ParagraphSeparator
                | Category::SpaceSeparator
        )
}

/// A text as a part of a term.
pub fn pack(text: &str) -> String {
    text.chars().map(|c| if c == ' ' || !is_printable(c) { '\u{2}' } else { c }).collect()
}

/// By what a value is told from others of its facet; empty for none.
pub fn value_key(facet: &str, value: &str) -> String {
    if facet == "creator" {
        return cut(&filing_name(value), LONGEST_KEY).to_owned();
    }
    let folded = fold(&fold_spaces(cut(value, LONGEST_VALUE)));
    cut(&folded, LONGEST_KEY).trim_matches(is_space).to_owned()
}

/// The term of a value of a facet (of creators: of one name); empty if it has no letter.
pub fn value_term(facet: &str, value: &str) -> String {
    let key = value_key(facet, value);
    if key.is_empty() {
        return key;
    }
    format!("{}{}\u{1}{}", mark(facet).unwrap_or_default(), pack(&key), pack(&fold_spaces(cut(value, LONGEST_VALUE))))
}

/// What all terms of a value begin with, and no others; `None` for a facet whose values are no terms.
pub fn value_beginning(facet: &str, value: &str) -> Option<String> {
    Some(format!("{}{}\u{1}", mark(facet)?, pack(&value_key(facet, value))))
}

/// What a record is sorted by whose first author has this name; empty for none.
pub fn author_term(name: &str) -> String {
    let filed = filing_name(name);
    if filed.is_empty() { filed } else { format!("\x1fA{}", pack(cut(&filed, LONGEST_KEY))) }
}

/// The key of a title: a digest of its words without case and accents; none if it has no word.
pub fn title_keys(title: &str) -> Option<String> {
    let mut words = Vec::new();
    for (_, piece) in pieces(cut(title, LONGEST_KEYED_TITLE)) {
        if words.len() >= WORDS {
            break;
        }
        for_each_word(piece, |word| words.push(fold(word)));
    }
    words.truncate(WORDS);
    if words.is_empty() {
        return None;
    }
    let digest = blake2b_simd::Params::new().hash_length(6).hash(words.join(" ").as_bytes());
    Some(format!("\x1fw{}", digest.to_hex()))
}

/// The words of a title without case and accents, by which titles are filed.
pub fn title_words(title: &str) -> Vec<String> {
    let title = cut(title, LONGEST_TITLE);
    let mut words = Vec::new();
    // After this white space a mark is no accent: the title is folded as a whole.
    if title.contains(['\u{1680}', '\u{2028}', '\u{2029}']) {
        words.extend(pieces(&fold(title)).map(|(_, piece)| piece.to_ascii_lowercase()));
        return words;
    }
    for (_, piece) in pieces(title) {
        if piece.is_ascii() {
            words.push(piece.to_ascii_lowercase());
        } else {
            // After a space, as it stands in the title: a mark that begins it is an accent.
            let folded = fold(&format!(" {}", piece.to_ascii_lowercase()));
            words.extend(pieces(&folded).map(|(_, piece)| piece.to_ascii_lowercase()));
        }
    }
    words
}

/// Words that do not count where a title begins with them, by language.
fn is_article(word: &str, language: &str) -> bool {
    match &cut(language, 2).to_lowercase()[..] {
        "de" => matches!(word, "der" | "die" | "das" | "ein" | "eine"),
        "fr" => matches!(word, "le" | "la" | "les" | "un" | "une" | "l"),
        "es" => matches!(word, "el" | "la" | "los" | "las" | "un" | "una"),
        "it" => matches!(word, "il" | "lo" | "la" | "i" | "gli" | "le" | "un" | "una"),
        "nl" => matches!(word, "de" | "het" | "een"),
        "pt" => matches!(word, "o" | "a" | "os" | "as" | "um" | "uma"),
        _ => matches!(word, "a" | "an" | "the"),
    }
}

/// The term by which a record stands among titles: the words of its first one, without an article before them; empty if it
/// has no word.
pub fn title_term(title: &str, language: &str) -> String {
    let words = title_words(title);
    let skip = usize::from(words.len() > 1 && is_article(&words[0], language));
    let filed = words[skip..].join(" ");
    let filed = cut(&filed, LONGEST_KEY).trim_matches(is_space);
    if filed.is_empty() { String::new() } else { format!("\x1fT{}", pack(filed)) }
}
