//! Text becomes tokens: the same for every language.
//!
//! 1. A soft hyphen at the end of a line joins the two halves of its word. No other hyphen does: "infor-" at a line's end
//!    is as likely to be the first half of "infor-mation" as of "T-shirt", and a guess is not exact.
//! 2. White space and every ASCII character that is neither letter nor digit separate: "don't" is "don" and "t", "T-shirt"
//!    is "t" and "shirt". What lies between is a *piece*. An ASCII piece, in small letters, is a token.
//! 3. Any other piece is folded: characters without a shape of their own (soft hyphens, joiners, marks of direction)
//!    vanish; compatible characters become one (NFKC: "ﬁ" is "fi", "Ｗ" is "w"); case goes (Unicode case folding: "ß" is
//!    "ss"). Accents stay, up to thirty on a letter: they tell words apart, and the stemmers want them. A trade mark sign
//!    separates, or "Linux™" would become "linuxtm".
//! 4. In that, a token is a run of letters, digits and combining marks that starts with a letter or digit. Anything else
//!    separates, typographic quotes, dashes and the zero-width space among it.
//! 5. Scripts that are written without spaces between words (Han, Kana, Hangul, Thai, Lao, Khmer, Myanmar) give overlapping
//!    pairs of characters instead, each character with its marks: 情報検索 is 情報, 報検, 検索. A character that stands alone
//!    is a token. Hangul is among them because its words carry their particles.
//!
//! 6. A TeX command of which a reader sees no word (`\frac`, `\mathrm`) is no token (`tex.rs`).
//!
//! A token holds letters, digits and marks only: no white space, no control character, nothing that XML forbids.

use std::borrow::Cow;

use unicode_general_category::{GeneralCategory as Category, get_general_category};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

use super::tex;

const SOFT_HYPHEN: char = '\u{ad}';
/// Marks on one letter. Ordering a pile takes the square of its height; no language stacks more (UAX 15, stream-safe
/// text).
const HIGHEST_PILE: usize = 30;

/// Default ignorable code points (Unicode, DerivedCoreProperties), less the zero-width space U+200B, which some scripts
/// put between words.
fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Letters of scripts that are written without spaces between words.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{1100}'..='\u{11ff}' | '\u{3131}'..='\u{318e}' | '\u{a960}'..='\u{a97c}' | '\u{ac00}'..='\u{d7fb}' // Hangul
        | '\u{3041}'..='\u{3096}' | '\u{309d}'..='\u{309f}' | '\u{30a1}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' // Kana
        | '\u{1aff0}'..='\u{1b16f}'
        | '\u{3005}'..='\u{3007}' | '\u{3021}'..='\u{3029}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' // Han
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}'
        | '\u{e01}'..='\u{e46}' | '\u{e81}'..='\u{ec6}' | '\u{edc}'..='\u{edf}' // Thai, Lao
        | '\u{1780}'..='\u{17d3}' | '\u{17d7}' | '\u{17dc}' // Khmer
        | '\u{1000}'..='\u{103f}' | '\u{1050}'..='\u{109d}' | '\u{a9e0}'..='\u{a9ef}' | '\u{a9fa}'..='\u{a9fe}' // Myanmar
        | '\u{aa60}'..='\u{aa7f}')
        && is_word(c)
}

/// Whether a character separates words wherever it stands, as `str.isspace` has it.
pub fn is_space(c: char) -> bool {
    matches!(c, '\t'..='\r' | '\u{1c}'..=' ' | '\u{85}' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}'
        | '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
}

/// A letter or digit.
pub fn is_word(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric();
    }
    matches!(
        get_general_category(c),
        Category::UppercaseLetter
            | Category::LowercaseLetter
            | Category::TitlecaseLetter
            | Category::ModifierLetter
            | Category::OtherLetter
            | Category::DecimalNumber
            | Category::LetterNumber
            | Category::OtherNumber
    )
}

/// A combining mark.
pub fn is_mark(c: char) -> bool {
    c >= '\u{300}'
        && matches!(get_general_category(c), Category::NonspacingMark | Category::SpacingMark | Category::EnclosingMark)
}

/// A text whose words are whole where a soft hyphen broke them at the end of a line.
pub fn join_lines(text: &str) -> Cow<'_, str> {
    if !text.contains(SOFT_HYPHEN) {
        return Cow::Borrowed(text);
    }
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(SOFT_HYPHEN) {
        let (before, after) = (&rest[..at], &rest[at + SOFT_HYPHEN.len_utf8()..]);
        out.push_str(before);
        let broken = ["\r\n", "\r", "\n", "\u{2028}"].iter().find_map(|end| after.strip_prefix(end));
        match broken {
            Some(next) => rest = next.trim_start_matches([' ', '\t']),
            None => {
                out.push(SOFT_HYPHEN);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The bytes of the white space or ASCII punctuation at a place; 0 if part of a piece is there.
fn separator(text: &str, at: usize) -> usize {
    match text.as_bytes()[at] {
        byte if byte.is_ascii_alphanumeric() => 0,
        ..0x80 => 1,
        // What begins the white space beyond ASCII.
        0xc2 | 0xe1..=0xe3 => text[at..].chars().next().filter(|&c| is_space(c)).map_or(0, char::len_utf8),
        _ => 0,
    }
}

/// The pieces of a text between white space and ASCII punctuation, with their places in it.
pub fn pieces(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < text.len() {
            match separator(text, at) {
                0 => break,
                1 if text.as_bytes()[at] == b'\\' => at += 1 + tex::unseen(&text[at + 1..]),
                size => at += size,
            }
        }
        let begin = at;
        while at < text.len() && separator(text, at) == 0 {
            at += 1;
        }
        (at > begin).then(|| (begin, &text[begin..at]))
    })
}

/// Call `f` with each token of a piece, or of any text without a line break in it.
pub fn for_each_word(piece: &str, mut f: impl FnMut(&str)) {
    if piece.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        if piece.bytes().any(|byte| byte.is_ascii_uppercase()) {
            f(&piece.to_ascii_lowercase());
        } else if !piece.is_empty() {
            f(piece);
        }
        return;
    }
    let folded = fold(piece);
    let mut rest = &folded[..];
    while let Some(begin) = rest.find(is_word) {
        let run = &rest[begin..];
        let end = run.find(|c| !is_word(c) && !is_mark(c)).unwrap_or(run.len());
        split_run(&run[..end], &mut f);
        rest = &run[end..];
    }
}

/// The tokens of a run of letters, digits and marks: stretches of unspaced script become pairs of characters.
fn split_run(run: &str, f: &mut impl FnMut(&str)) {
    let mut rest = run;
    while let Some(first) = rest.chars().next() {
        if !is_unspaced(first) {
            let end = rest.find(is_unspaced).unwrap_or(rest.len());
            f(&rest[..end]);
            rest = &rest[end..];
            continue;
        }
        // Where each character with its marks begins, and where the stretch ends.
        let (mut begins, mut end) = (vec![0], rest.len());
        for (at, c) in rest.char_indices().skip(1) {
            if is_unspaced(c) {
                begins.push(at);
            } else if !is_mark(c) {
                end = at;
                break;
            }
        }
        begins.push(end);
        if begins.len() == 2 {
            f(&rest[..end]);
        }
        begins.windows(3).for_each(|pair| f(&rest[pair[0]..pair[2]]));
        rest = &rest[end..];
    }
}

/// A text without case, compatible variants and ignorable characters; folding it again changes nothing.
pub fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let mut text = text.replace(['\u{2120}', '\u{2122}'], " ");
    loop {
        let shown = without_piles(&text);
        // Case folding leaves a dot above the i of a Turkish capital: İzmir has to meet izmir. It also takes some Greek
        // letters apart, hence the second normalisation.
        let cased = caseless::default_case_fold_str(&nfkc(&shown));
        let folded = nfkc(&without_dots(&cased)).into_owned();
        if folded == text {
            return text;
        }
        text = folded;
    }
}

pub fn nfkc(text: &str) -> Cow<'_, str> {
    match is_nfkc_quick(text.chars()) {
        IsNormalized::Yes => Cow::Borrowed(text),
        _ => Cow::Owned(text.nfkc().collect()),
    }
}

/// Without ignorable characters, and without marks beyond the thirtieth on a letter.
fn without_piles(text: &str) -> String {
    let (mut out, mut height) = (String::with_capacity(text.len()), 0);
    for c in text.chars().filter(|&c| !is_ignorable(c)) {
        height = if is_mark(c) { height + 1 } else { 0 };
        if height <= HIGHEST_PILE {
            out.push(c);
        }
    }
    out
}

fn without_dots(text: &str) -> Cow<'_, str> {
    if !text.contains("i\u{307}") {
        return Cow::Borrowed(text);
    }
    let (mut out, mut after_i) = (String::with_capacity(text.len()), false);
    for c in text.chars() {
        if c == '\u{307}' && after_i {
            continue;
        }
        after_i = c == 'i';
        out.push(c);
    }
    Cow::Owned(out)
}

/// All tokens of a text.
pub fn tokens(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for (_, piece) in pieces(&join_lines(text)) {
        for_each_word(piece, |word| out.push(word.to_owned()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::tokens;

    #[test]
    fn text_becomes_tokens() {
        let cases: [(&str, &[&str]); 12] = [
            ("Don't stop, T-shirt 3.5", &["don", "t", "stop", "t", "shirt", "3", "5"]),
            ("infor\u{ad}\n  mation so\u{ad}ft", &["information", "soft"]),
            ("Straße ﬁne Ｗord Linux™", &["strasse", "fine", "word", "linux"]),
            ("情報検索 of 情", &["情報", "報検", "検索", "of", "情"]),
            ("İzmir IZMIR", &["izmir", "izmir"]),
            ("naïve café\u{301}", &["naïve", "caf\u{e9}\u{301}"]),
            ("a\u{200b}b a\u{2019}b", &["a", "b", "a", "b"]),
            ("x_y é_à", &["x", "y", "é", "à"]),
            ("ภาษาไทย", &["ภา", "าษ", "ษา", "าไ", "ไท", "ทย"]),
            ("２０２０ ¾", &["2020", "3", "4"]),
            ("\u{301}abc", &["abc"]),
            ("", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(tokens(text), expected, "{text:?}");
        }
    }
}
