//! Names of people as values: a key by which the ways to write one name meet.
//!
//! The key of a name is its family name and its first given name, in small letters without accents and punctuation: "Wang,
//! Wei", "Wei Wang" and "WANG, Wei-Ling, 1970-" are `wang/wei`. Before a comma stands the family name; without a comma it is
//! the last word, with the particles before it ("Jan van der Berg" is `vanderberg/jan`). An initial stands for every name
//! that begins with it, in a record and in a query:
//!
//! | written | its keys | who asks for `creator:"Wei Wang"` |
//! | --- | --- | --- |
//! | Wang, Wei | `wang/wei`, `wang/w*` | finds it |
//! | Wang, W. | `wang/w.`, `wang/w*` | finds it: it may be the one |
//! | Wang, Wenli | `wang/wenli`, `wang/w*` | does not |
//!
//! `creator:"W. Wang"` asks for `wang/w*` and so finds all three. Namesakes cannot be told apart by their names.

use std::sync::LazyLock;

use regex::Regex;
use unicode_normalization::UnicodeNormalization;

use crate::text::accents::without_accents;
use crate::text::tokens::{is_space, is_word};

/// Characters of a name, and of each part of a key.
const LONGEST_NAME: usize = 300;
const LONGEST_PART: usize = 60;
/// Words that the name of a person has at most.
const PERSON: usize = 4;
const PARTICLES: [&str; 38] = [
    "af", "al", "am", "auf", "aus", "ben", "bin", "da", "dal", "de", "del", "della", "den", "der", "des", "di", "do",
    "dos", "du", "el", "ibn", "la", "las", "le", "les", "lo", "los", "san", "st", "ten", "ter", "van", "vom", "von",
    "y", "zu", "zum", "zur",
];
/// Words that only names of bodies hold.
const BODY: [&str; 27] = [
    "and",
    "association",
    "center",
    "centre",
    "committee",
    "council",
    "department",
    "for",
    "fur",
    "group",
    "inc",
    "institut",
    "institute",
    "laboratory",
    "library",
    "ltd",
    "ministry",
    "of",
    "office",
    "on",
    "society",
    "station",
    "the",
    "und",
    "universitat",
    "universite",
    "university",
];

/// "1970-", "(1970–2010)", "Jr.", "Ph.D." tell no name.
static BESIDE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\(.*?\)|\b[0-9]{3,4}\b\s*[-–]?|\b(?:jr|sr|ph\.?\s*d|dr|prof|md)\b\.?")
        .expect("a regular expression")
});

/// The names in one value: many repositories put several there, with semicolons between them.
pub fn names(value: &str) -> impl Iterator<Item = &str> {
    value.split(';').map(|name| name.trim_matches(is_space)).filter(|name| !name.is_empty())
}

/// The keys under which a name of a record can be found.
pub fn record_keys(name: &str) -> Vec<String> {
    let (family, given) = parts(name);
    let Some(initial) = given.chars().next() else {
        return if family.is_empty() { Vec::new() } else { vec![format!("{family}/")] };
    };
    let own = if given.len() > initial.len_utf8() { format!("{family}/{given}") } else { format!("{family}/{given}.") };
    vec![own, format!("{family}/{initial}*")]
}

/// The keys of which one is enough: a record that has it may be of the one who is asked for.
pub fn query_keys(name: &str) -> Vec<String> {
    let (family, given) = parts(name);
    let Some(initial) = given.chars().next() else {
        return if family.is_empty() { Vec::new() } else { vec![format!("{family}/")] };
    };
    if given.len() == initial.len_utf8() {
        return vec![format!("{family}/{given}*")];
    }
    vec![format!("{family}/{given}"), format!("{family}/{initial}.")]
}

/// The family name and the first given name, or its initial; both empty where there is no letter.
pub fn parts(name: &str) -> (String, String) {
    let (first, rest, given) = words(name);
    if !first.is_empty() && given > 0 {
        return (cut(first.concat()), cut(rest[0].clone()));
    }
    let words = if first.is_empty() { &rest[..given] } else { &first };
    let Some(start) = family_start(words) else { return Default::default() };
    let given = if start > 0 { cut(words[0].clone()) } else { String::new() };
    (cut(words[start..].concat()), given)
}

/// Where the family name begins among the words of a name in its natural order.
fn family_start(words: &[String]) -> Option<usize> {
    let mut start = words.len().checked_sub(1)?;
    while start > 1 && PARTICLES.contains(&&words[start - 1][..]) {
        start -= 1;
    }
    Some(start)
}

fn cut(part: String) -> String {
    match part.char_indices().nth(LONGEST_PART) {
        Some((end, _)) => part[..end].to_owned(),
        None => part,
    }
}

/// A name's words before the first comma, those after, and how many of these precede the second.
pub fn words(name: &str) -> (Vec<String>, Vec<String>, usize) {
    let name = crate::text::cut(name, LONGEST_NAME);
    let folded = fold(&BESIDE.replace_all(name, " "));
    let mut parts = folded.splitn(3, ',');
    let mut next = || word_runs(parts.next().unwrap_or_default());
    let (before, mut rest) = (next(), next());
    let given = rest.len();
    rest.extend(next());
    (before, rest, given)
}

fn word_runs(text: &str) -> Vec<String> {
    text.split(|c| !is_word(c) && c != '_').filter(|run| !run.is_empty()).map(str::to_owned).collect()
}

/// A name as a list files it: family name, comma, given names; in small letters without accents.
///
/// "Wang, Wei" and "Wei Wang" are one, "Wang, W." is another. What reads as the name of a body (five words or more without
/// a comma, or a word such as "of") stays in its order. Empty where there is no letter.
pub fn filing_name(name: &str) -> String {
    let (first, rest, _) = words(name);
    if !first.is_empty() && !rest.is_empty() {
        return format!("{}, {}", first.join(" "), rest.join(" "));
    }
    let words = if first.is_empty() { rest } else { first };
    let is_body = words.iter().any(|word| BODY.contains(&&word[..]));
    match family_start(&words) {
        Some(start) if words.len() > 1 && words.len() <= PERSON && !is_body => {
            format!("{}, {}", words[start..].join(" "), words[..start].join(" "))
        }
        _ => words.join(" "),
    }
}

/// A text in small letters, without accents.
pub fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    without_accents(&caseless::default_case_fold_str(&text.nfkc().collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ways_to_write_a_name_meet() {
        for name in ["Wang, Wei", "Wei Wang", "WANG, Wei-Ling, 1970-"] {
            assert_eq!(record_keys(name), ["wang/wei", "wang/w*"], "{name}");
        }
        assert_eq!(record_keys("Wang, W."), ["wang/w.", "wang/w*"]);
        assert_eq!(query_keys("W. Wang"), ["wang/w*"]);
        assert_eq!(record_keys("Jan van der Berg"), ["vanderberg/jan", "vanderberg/j*"]);
        assert_eq!(filing_name("Wei Wang"), "wang, wei");
        assert_eq!(filing_name("University of Oslo"), "university of oslo");
        assert_eq!(record_keys("1970-"), Vec::<String>::new());
    }
}
