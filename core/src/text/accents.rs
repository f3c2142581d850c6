//! Letters without their accents: how words are compared where accents are not to count.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

/// Letters that Unicode does not take apart.
fn replacement(letter: char) -> Option<&'static str> {
    Some(match letter {
        'ø' => "o",
        'ł' => "l",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'æ' => "ae",
        'œ' => "oe",
        'ı' => "i",
        'ħ' => "h",
        _ => return None,
    })
}

/// Whether this is a Latin or Greek letter beyond ASCII, or a mark on one.
fn may_have_accent(letter: char) -> bool {
    ('\u{80}'..'\u{400}').contains(&letter) || ('\u{1e00}'..'\u{2000}').contains(&letter)
}

/// A text in which Latin and Greek letters have no accents; other scripts stay as they are.
///
/// Beyond these two, marks make other letters: и is not й, and a vowel sign is no ornament.
pub fn without_accents(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let mut replaced = String::with_capacity(text.len());
    for letter in text.chars() {
        match replacement(letter) {
            Some(letters) => replaced.push_str(letters),
            None => replaced.push(letter),
        }
    }
    let (mut out, mut plain) = (String::with_capacity(text.len()), false);
    for letter in replaced.nfd() {
        if canonical_combining_class(letter) == 0 {
            plain = letter.is_ascii() || may_have_accent(letter);
        } else if plain {
            continue;
        }
        out.push(letter);
    }
    if out.is_ascii() { out } else { out.nfc().collect() }
}

#[cfg(test)]
mod tests {
    use super::without_accents;

    #[test]
    fn signs_are_folded_alone_as_within_a_word() {
        assert_eq!(without_accents("≮"), "<");
        assert_eq!(without_accents("é≮"), "e<");
    }

    #[test]
    fn latin_and_greek_lose_their_accents() {
        assert_eq!(
            without_accents("Ærøskøbing größe ά й"),
            "Ærøskøbing größe ά й"
                .replace("ærøskøbing", "")
                .replace("Ærøskøbing", "Æroskobing")
                .replace("ö", "o")
                .replace("ά", "α")
        );
    }
}
