//! Values of metadata as facets, lists and orders know them: terms of the index that people never type.
//!
//! A value becomes a term of its field's mark, its key and its spelling: `␟Cwang, wei␁Wang, Wei`. Spellings that differ by
//! case, accents, or the order of a name have one key and count as one value; it is shown in the spelling that most records
//! have. The dictionary keeps terms in order, so it is also the list from A to Z, and the records' order by title or author.
//! Spaces are U+0002 here, for they separate terms.

use unicode_general_category::{GeneralCategory as Category, get_general_category};

use super::people::{Name, fold};
use crate::text::tokens::{for_each_word, is_space, pieces};
use crate::text::{cut, fold_spaces};

/// Characters of a value, of a key, and of a title; longer ones are cut.
const LONGEST_VALUE: usize = 200;
const LONGEST_KEY: usize = 120;
const LONGEST_TITLE: usize = 1000;
const LONGEST_KEYED_TITLE: usize = 2000;
/// Words of a title that its key counts.
const WORDS: usize = 60;

/// The mark of a facet whose values are terms (`indlet.model.VALUE_MARKS`).
pub fn mark(facet: &str) -> Option<&'static str> {
    Some(match facet {
        "creator" => "\x1fC",
        "format" => "\x1fF",
        "subject" => "\x1fS",
        "inferred_subject" => "\x1fU",
        "inferred_type" => "\x1fY",
        _ => return None,
    })
}

pub fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return matches!(c, ' '..='~');
    }
    !matches!(
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

/// Write a text as a part of a term.
pub fn push_packed(out: &mut String, text: &str) {
    out.extend(text.chars().map(|c| if c == ' ' || !is_printable(c) { '\u{2}' } else { c }));
}

pub fn cut_key(key: &str) -> String {
    cut(key, LONGEST_KEY).to_owned()
}

/// By what a value is told from others of its facet (of creators: of one name); empty if it has no letter.
pub fn value_key(facet: &str, value: &str) -> String {
    if facet == "creator" {
        return cut_key(&Name::parse(value).filing_form());
    }
    cut(&fold(&fold_spaces(cut(value, LONGEST_VALUE))), LONGEST_KEY).trim_matches(is_space).to_owned()
}

/// Write the term of a value, behind its mark; nothing if its key is empty.
pub fn push_value(out: &mut String, key: &str, value: &str) {
    if !key.is_empty() {
        push_packed(out, key);
        out.push('\u{1}');
        push_packed(out, &fold_spaces(cut(value, LONGEST_VALUE)));
    }
}

/// What all terms of a value begin with, and no others; `None` for a facet whose values are no terms.
pub fn value_beginning(facet: &str, value: &str) -> Option<String> {
    let mut out = mark(facet)?.to_owned();
    push_packed(&mut out, &value_key(facet, value));
    out.push('\u{1}');
    Some(out)
}

/// The key of a title: a digest of its words without case and accents; none if it has no word.
pub fn title_key(title: &str) -> Option<String> {
    let (mut words, mut count) = (String::new(), 0);
    for (_, piece) in pieces(cut(title, LONGEST_KEYED_TITLE)) {
        for_each_word(piece, |word| {
            if count < WORDS {
                words.push_str(if count > 0 { " " } else { "" });
                words.push_str(&fold(word));
                count += 1;
            }
        });
        if count == WORDS {
            break;
        }
    }
    let digest = blake2b_simd::Params::new().hash_length(6).hash(words.as_bytes());
    (count > 0).then(|| format!("\x1fw{}", digest.to_hex()))
}

/// The words of a title without case and accents, by which titles are filed, with spaces between them.
pub fn filed_title(title: &str) -> String {
    let title = cut(title, LONGEST_TITLE);
    let mut out = String::with_capacity(title.len());
    let mut add = |words: &str| {
        for (_, word) in pieces(words) {
            out.push_str(if out.is_empty() { "" } else { " " });
            out.push_str(word);
        }
    };
    // After this white space a mark is no accent: the title is folded as a whole.
    if title.contains(['\u{1680}', '\u{2028}', '\u{2029}']) {
        add(&fold(title));
    } else {
        for (_, piece) in pieces(title) {
            if piece.is_ascii() {
                add(piece);
            } else {
                // After a space, as it stands in the title: a mark that begins it is an accent.
                add(&fold(&format!(" {}", piece.to_ascii_lowercase())));
            }
        }
    }
    out.make_ascii_lowercase();
    out
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

/// Write what a record stands under among titles: the words of its first one, without an article before them.
pub fn push_title(out: &mut String, title: &str, language: &str) {
    let words = filed_title(title);
    let filed =
        words.split_once(' ').filter(|(first, _)| is_article(first, language)).map_or(&words[..], |(_, rest)| rest);
    push_packed(out, cut(filed, LONGEST_KEY).trim_matches(is_space));
}
