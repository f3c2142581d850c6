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

use std::borrow::Cow;
use std::ops::Range;

use crate::text::accents::without_accents;
use crate::text::tokens::{is_space, is_word, nfkc};

/// Characters of a name, and of each part of a key.
const LONGEST_NAME: usize = 300;
const LONGEST_PART: usize = 60;
/// Words that the name of a person has at most.
const PERSON: usize = 4;
const PARTICLES: &str = "af al am auf aus ben bin da dal de del della den der des di do dos du el ibn la las le les lo los san st \
    ten ter van vom von y zu zum zur";
/// Words that only names of bodies hold.
const BODY: &str = "and association center centre committee council department for fur group inc institut institute \
    laboratory library ltd ministry of office on society station the und universitat universite university";

// "1970-", "(1970–2010)", "Jr.", "Ph.D." tell no name.
pattern!(BESIDE, r"(?i)\(.*?\)|\b[0-9]{3,4}\b\s*[-–]?|\b(?:jr|sr|ph\.?\s*d|dr|prof|md)\b\.?");

/// Whether something of `BESIDE` may be in a name; of most names, without a regular expression.
fn tells_more(name: &str) -> bool {
    let is_title = |word: &str| word.len() < 5 && is_listed("jr sr ph phd dr prof md", &word.to_ascii_lowercase());
    name.bytes().any(|byte| byte == b'(' || byte.is_ascii_digit())
        || name.split(|c: char| !c.is_alphabetic()).any(is_title)
}

/// Whether a word is among some with spaces between them.
fn is_listed(words: &str, word: &str) -> bool {
    words.split(' ').any(|listed| listed == word)
}

/// The names in one value: many repositories put several there, with semicolons between them.
pub fn names(value: &str) -> impl Iterator<Item = &str> {
    value.split(';').map(|name| name.trim_matches(is_space)).filter(|name| !name.is_empty())
}

/// A name in its words, in small letters without accents and punctuation.
pub struct Name {
    folded: String,
    /// Where its words are.
    words: Vec<Range<usize>>,
    /// How many words precede the first comma, and how many the second.
    first: usize,
    second: usize,
}

impl Name {
    pub fn parse(name: &str) -> Name {
        let name = crate::text::cut(name, LONGEST_NAME);
        let told = if tells_more(name) { BESIDE.replace_all(name, " ") } else { name.into() };
        let folded = fold(&told).into_owned();
        let (mut words, mut ends, mut begin) = (Vec::new(), [None; 2], None);
        for (at, c) in folded.char_indices().chain([(folded.len(), ' ')]) {
            if is_word(c) || c == '_' {
                begin = begin.or(Some(at));
                continue;
            }
            words.extend(begin.take().map(|begin| begin..at));
            if c == ','
                && let Some(end) = ends.iter_mut().find(|end| end.is_none())
            {
                *end = Some(words.len());
            }
        }
        let [first, second] = ends.map(|end| end.unwrap_or(words.len()));
        Name { folded, words, first, second }
    }

    fn words(&self, which: Range<usize>) -> impl Iterator<Item = &str> {
        self.words[which].iter().map(|word| &self.folded[word.clone()])
    }

    fn join(&self, which: Range<usize>, separator: &str) -> String {
        self.words(which).collect::<Vec<_>>().join(separator)
    }

    /// Its words before the first comma, those after, and how many of these precede the second.
    pub fn parts_at_commas(&self) -> (Vec<String>, Vec<String>, usize) {
        let owned = |which| self.words(which).map(str::to_owned).collect();
        (owned(0..self.first), owned(self.first..self.words.len()), self.second - self.first)
    }

    /// The words of a name without a comma that matters.
    fn natural(&self) -> Range<usize> {
        if self.first > 0 { 0..self.first } else { self.first..self.second }
    }

    /// Where the family name begins among the words of a name in its natural order.
    fn family_start(&self, which: Range<usize>) -> Option<usize> {
        let mut start = which.end.checked_sub(1).filter(|&last| last >= which.start)?;
        let is_particle = |number: usize| is_listed(PARTICLES, &self.folded[self.words[number].clone()]);
        while start > which.start + 1 && is_particle(start - 1) {
            start -= 1;
        }
        Some(start)
    }

    /// The family name and the first given name, or its initial; both empty where there is no letter.
    pub fn parts(&self) -> (String, String) {
        let given = |number: usize| self.join(number..number + 1, "");
        let (family, given) = if self.first > 0 && self.second > self.first {
            (self.join(0..self.first, ""), given(self.first))
        } else {
            let own = self.natural();
            let Some(start) = self.family_start(own.clone()) else { return Default::default() };
            (self.join(start..own.end, ""), if start > own.start { given(own.start) } else { String::new() })
        };
        let cut = |part: String| crate::text::cut(&part, LONGEST_PART).to_owned();
        (cut(family), cut(given))
    }

    /// The keys under which a name of a record can be found.
    pub fn record_keys(&self) -> Vec<String> {
        let (family, given) = self.parts();
        let Some(initial) = given.chars().next() else {
            return if family.is_empty() { Vec::new() } else { vec![format!("{family}/")] };
        };
        let point = if given.len() > initial.len_utf8() { "" } else { "." };
        vec![format!("{family}/{given}{point}"), format!("{family}/{initial}*")]
    }

    /// The keys of which one is enough: a record that has it may be of the one who is asked for.
    pub fn query_keys(&self) -> Vec<String> {
        let (family, given) = self.parts();
        let Some(initial) = given.chars().next() else {
            return if family.is_empty() { Vec::new() } else { vec![format!("{family}/")] };
        };
        if given.len() == initial.len_utf8() {
            return vec![format!("{family}/{given}*")];
        }
        vec![format!("{family}/{given}"), format!("{family}/{initial}.")]
    }

    /// A name as a list files it: family name, comma, given names.
    ///
    /// "Wang, Wei" and "Wei Wang" are one, "Wang, W." is another. What reads as the name of a body (five words or more
    /// without a comma, or a word such as "of") stays in its order. Empty where there is no letter.
    pub fn filing_form(&self) -> String {
        let all = self.words.len();
        if self.first > 0 && all > self.first {
            return format!("{}, {}", self.join(0..self.first, " "), self.join(self.first..all, " "));
        }
        let is_body = self.words(0..all).any(|word| is_listed(BODY, word));
        match self.family_start(0..all) {
            Some(start) if all > 1 && all <= PERSON && !is_body => {
                format!("{}, {}", self.join(start..all, " "), self.join(0..start, " "))
            }
            _ => self.join(0..all, " "),
        }
    }
}

/// A text in small letters, without accents.
pub fn fold(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        return text.into();
    }
    if text.is_ascii() {
        return text.to_ascii_lowercase().into();
    }
    without_accents(&caseless::default_case_fold_str(&nfkc(text))).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ways_to_write_a_name_meet() {
        let record_keys = |name| Name::parse(name).record_keys();
        for name in ["Wang, Wei", "Wei Wang", "WANG, Wei-Ling, 1970-"] {
            assert_eq!(record_keys(name), ["wang/wei", "wang/w*"], "{name}");
        }
        assert_eq!(record_keys("Wang, W."), ["wang/w.", "wang/w*"]);
        assert_eq!(Name::parse("W. Wang").query_keys(), ["wang/w*"]);
        assert_eq!(record_keys("Jan van der Berg"), ["vanderberg/jan", "vanderberg/j*"]);
        assert_eq!(Name::parse("Wei Wang").filing_form(), "wang, wei");
        assert_eq!(Name::parse("University of Oslo").filing_form(), "university of oslo");
        assert_eq!(record_keys("1970-"), Vec::<String>::new());
    }
}
