//! Which language a text is in: its script, its function words, and only then a statistical model.
//!
//! Function words make up a third of running text and cost one look-up a word, so they decide nearly every document. A
//! model is asked where they leave a doubt and the text is long enough to tell. A wrong language costs more than none, for
//! its stemmer spoils every word: detection is silent rather than rash.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use ahash::RandomState;
use unicode_general_category::{GeneralCategory, get_general_category};

use super::cut;
use super::langid::LanguageModel;
use super::tokens::is_space;

/// A sample from the start and, as title pages mislead, one from the middle, in characters.
const SAMPLE: usize = 2000;
/// What the model reads: it takes 1 ms for 500 characters and 5 ms for 4,000, and is as sure.
const READ: usize = 600;
/// A function word speaks for its languages the louder the fewer they are, with six units between them. Three words that
/// amount to two of its own make a language sure, if the runner-up is this far behind.
const UNITS: u32 = 6;
const ENOUGH: u32 = 2 * UNITS;
const WORDS: usize = 3;
/// Abbreviations in tables look like function words, so there it takes more of them.
const TABLE_WORDS: usize = 6;
/// A text whose letters are this few is too short for the model, and an answer below this probability too weak.
const LETTERS: u32 = 100;
const SURE: f32 = 0.9;

/// Scripts by their letters, with the languages that they are used for.
type Script = (&'static [(char, char)], &'static [&'static str]);
const CYRILLIC: usize = 1;
const HAN: usize = 23;
const SCRIPTS: [Script; 24] = [
    (&[('\u{370}', '\u{3ff}'), ('\u{1f00}', '\u{1fff}')], &["el"]),
    (&[('\u{400}', '\u{52f}')], &["ru", "uk", "bg", "sr", "mk", "be", "kk", "ky", "mn", "tg", "tt", "ba"]),
    (&[('\u{530}', '\u{58f}')], &["hy"]),
    (&[('\u{590}', '\u{5ff}')], &["he", "yi"]),
    (
        &[('\u{600}', '\u{77f}'), ('\u{fb50}', '\u{fdff}'), ('\u{fe70}', '\u{fefe}')],
        &["ar", "fa", "ur", "ps", "ku", "ug"],
    ),
    (&[('\u{900}', '\u{97f}')], &["hi", "mr", "ne", "sa"]),
    (&[('\u{980}', '\u{9ff}')], &["bn", "as"]),
    (&[('\u{a00}', '\u{a7f}')], &["pa"]),
    (&[('\u{a80}', '\u{aff}')], &["gu"]),
    (&[('\u{b00}', '\u{b7f}')], &["or"]),
    (&[('\u{b80}', '\u{bff}')], &["ta"]),
    (&[('\u{c00}', '\u{c7f}')], &["te"]),
    (&[('\u{c80}', '\u{cff}')], &["kn"]),
    (&[('\u{d00}', '\u{d7f}')], &["ml"]),
    (&[('\u{d80}', '\u{dff}')], &["si"]),
    (&[('\u{e00}', '\u{e7f}')], &["th"]),
    (&[('\u{e80}', '\u{eff}')], &["lo"]),
    (&[('\u{f00}', '\u{fff}')], &["bo", "dz"]),
    (&[('\u{1000}', '\u{109f}')], &["my"]),
    (&[('\u{10a0}', '\u{10ff}')], &["ka"]),
    (&[('\u{1200}', '\u{137f}')], &["am", "ti"]),
    (&[('\u{1780}', '\u{17ff}')], &["km"]),
    (&[('\u{1100}', '\u{11ff}'), ('\u{ac00}', '\u{d7ff}')], &["ko"]),
    (
        &[('\u{3005}', '\u{30ff}'), ('\u{3400}', '\u{9fff}'), ('\u{f900}', '\u{faff}'), ('\u{20000}', '\u{3ffff}')],
        &["zh", "ja"],
    ),
];

fn is_foreign(c: char) -> bool {
    matches!(c, '\u{370}'..='\u{167f}' | '\u{1681}'..='\u{1cff}' | '\u{2d00}'..='\u{2dff}' | '\u{3005}'..='\u{d7ff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Letters that Russian, and those that its neighbours, use alone.
const RUSSIAN: &str = "ыэёЫЭЁ";
const NOT_RUSSIAN: &str = "іїєґўјљњћђџѓќѕәғқңөұүһІЇЄҐЎЈЉЊЋЂЏЃЌЅӘҒҚҢӨҰҮҺ";

/// What every code and name of a language means, in small letters.
static MEANINGS: LazyLock<HashMap<&'static str, &'static str, RandomState>> = LazyLock::new(|| {
    let mut found = HashMap::default();
    for line in include_str!("../../../src/indlet/text/languages.tsv").lines().filter(|line| !line.starts_with('#')) {
        let mut columns = line.split('\t');
        let two = columns.next().unwrap_or_default();
        let forms = columns.next().into_iter().chain(columns.next());
        let names = line.splitn(4, '\t').nth(3).unwrap_or_default().split('|');
        for form in std::iter::once(two).chain(forms).chain(names).filter(|form| !form.is_empty()) {
            found.insert(form, two);
        }
    }
    found
});

/// The ISO 639-1 code that a tag, code or name means ("ger", "de-AT", "Deutsch"), else its ISO 639-3 code; empty if
/// neither. The one rule for languages: metadata and analysis both go by it.
pub fn language_code(value: &str) -> String {
    let folded = value.trim_matches(is_space).to_lowercase();
    if let Some(meaning) = MEANINGS.get(&folded[..]) {
        return (*meaning).to_owned();
    }
    let whole = folded.split(['-', '_']).next().unwrap_or_default();
    // Codes that ISO 639 has withdrawn, with what stands for them now.
    let renamed = match whole {
        "in" => "id",
        "iw" => "he",
        "ji" => "yi",
        "jw" => "jv",
        "mo" | "mol" => "ro",
        "sh" => "sr",
        _ => "",
    };
    if !renamed.is_empty() {
        return renamed.to_owned();
    }
    let primary = folded.split(['-', '_', '.', ';', ',', ' ']).next().unwrap_or_default();
    if matches!(primary.chars().count(), 2 | 3)
        && let Some(meaning) = MEANINGS.get(primary)
    {
        return (*meaning).to_owned();
    }
    // Codes of ISO 639-2 that name no single language, and what people write who know none.
    let none = matches!(primary, "und" | "mul" | "zxx" | "mis" | "xxx" | "n/a");
    if primary.len() == 3 && primary.bytes().all(|byte| byte.is_ascii_lowercase()) && !none && whole == primary {
        return primary.to_owned();
    }
    String::new()
}

/// The language by whose rules a text is analysed: as [`language_code`] has it, if ISO 639-1 knows it.
pub fn analysis_language(name: &str) -> String {
    let found = language_code(name);
    match &found[..] {
        "nb" | "nn" => "no".to_owned(), // both written forms of Norwegian have one set of rules
        _ if found.chars().count() == 2 => found,
        _ => String::new(),
    }
}

/// What one piece of a text tells of its language.
#[derive(Debug, Clone, Copy)]
pub struct Clue {
    characters: u32,
    /// Characters of other scripts than the Latin one.
    foreign: u32,
    is_number: bool,
    /// The number of the function word that it is.
    word: Option<u32>,
}

/// Function words, and what they say of languages.
#[derive(Default)]
pub struct Evidence {
    pub languages: Vec<String>,
    stops: Vec<HashSet<String, RandomState>>,
    /// Each function word with its number. Single letters of ours are left out: they are initials and symbols as well.
    words: HashMap<String, u32, RandomState>,
    /// The languages that have each function word.
    having: Vec<Vec<u16>>,
}

impl Evidence {
    /// `stops`: languages with their stop words, as tokens.
    pub fn new(stops: Vec<(String, Vec<String>)>) -> Evidence {
        let mut evidence = Evidence::default();
        for (number, (language, words)) in stops.into_iter().enumerate() {
            for word in words.iter().filter(|word| word.chars().count() > 1 || !word.is_ascii()) {
                let word = *evidence.words.entry(word.clone()).or_insert(evidence.having.len() as u32) as usize;
                evidence.having.resize_with(evidence.having.len().max(word + 1), Vec::new);
                evidence.having[word].push(number as u16);
            }
            evidence.languages.push(language);
            evidence.stops.push(words.into_iter().collect());
        }
        evidence
    }

    /// The stop words of a language; none where there is no list of it.
    pub fn stops(&self, language: &str) -> Option<&HashSet<String, RandomState>> {
        let number = self.languages.iter().position(|own| own == language)?;
        Some(&self.stops[number]).filter(|stops| !stops.is_empty())
    }

    /// What a piece tells whose ASCII letters are small.
    pub fn clue(&self, piece: &str) -> Clue {
        let is_digit = |c: char| c.is_ascii_digit() || get_general_category(c) == GeneralCategory::DecimalNumber;
        Clue {
            characters: piece.chars().count() as u32,
            foreign: piece.chars().filter(|&c| is_foreign(c)).count() as u32,
            is_number: piece.chars().all(is_digit),
            word: self.words.get(piece).copied(),
        }
    }

    /// The ISO 639-1 code of a text's language; empty where the text does not tell, or where it leaves a doubt and tells
    /// nothing against the language that is stated. `taken` is the text's [`sample`], `clues` are those of its pieces.
    pub fn detect(
        &self,
        taken: &str,
        clues: impl Iterator<Item = Clue>,
        stated: &str,
        model: &dyn Fn() -> Option<std::sync::Arc<LanguageModel>>,
    ) -> String {
        let (mut counts, mut words) = (Counts::default(), Vec::with_capacity(64));
        for clue in clues {
            counts.add(clue);
            words.extend(clue.word);
        }
        words.sort_unstable();
        words.dedup();
        let mut hits = vec![0u32; self.languages.len()];
        for &word in &words {
            let having = &self.having[word as usize];
            let units = (UNITS / having.len() as u32).max(1);
            having.iter().for_each(|&language| hits[usize::from(language)] += units);
        }
        let mut candidates: &[&str] = &[];
        if 2 * counts.foreign > counts.characters {
            let (script, languages) = script_of(taken);
            candidates = languages;
            if let [only] = candidates {
                return (*only).to_owned();
            }
            if script == CYRILLIC
                && taken.contains(|c| RUSSIAN.contains(c))
                && !taken.contains(|c| NOT_RUSSIAN.contains(c))
            {
                return "ru".to_owned();
            }
        }
        let first = hits.iter().copied().max().unwrap_or(0);
        let best = hits.iter().position(|&units| units == first).unwrap_or(0);
        let second = hits.iter().enumerate().filter(|(n, _)| *n != best).map(|(_, &units)| units).max().unwrap_or(0);
        // Bulgarian shares words with Russian, Urdu letters with Arabic: there, words alone do not tell.
        if first >= ENOUGH && 2 * first > 3 * second && candidates.is_empty() {
            let words = words.iter().filter(|&&word| self.having[word as usize].contains(&(best as u16))).count();
            if words >= TABLE_WORDS || (words >= WORDS && counts.is_prose()) {
                return self.languages[best].clone();
            }
        }
        let of_stated = self.languages.iter().position(|language| language == stated).map(|number| hits[number]);
        if candidates.is_empty() && of_stated == Some(first) {
            return String::new();
        }
        self.ask_model(taken, &counts, &hits, candidates, model)
    }

    /// What the statistical model makes of a text, where its answer can be believed.
    fn ask_model(
        &self,
        taken: &str,
        counts: &Counts,
        hits: &[u32],
        candidates: &[&str],
        model: &dyn Fn() -> Option<std::sync::Arc<LanguageModel>>,
    ) -> String {
        if counts.letters < if candidates.is_empty() { LETTERS } else { LETTERS / 4 } {
            return String::new();
        }
        // Tables, lists of names and program text look like anything to the model: its answer needs words for it, and
        // where we have no words of a language, at least running text.
        let most = hits.iter().copied().max().unwrap_or(0);
        let listed = most >= if taken.is_ascii() { ENOUGH } else { UNITS };
        let unlisted = most < counts.pieces - counts.digits && counts.is_prose();
        if candidates.is_empty() && !listed && !unlisted {
            return String::new();
        }
        let Some(model) = model() else { return String::new() };
        let read = cut(taken, READ);
        let (answer, probability) = model.classify(read);
        let language = analysis_language(answer);
        let believed = if probability < SURE {
            false
        } else if !candidates.is_empty() {
            candidates.contains(&&language[..])
        } else if self.stops(&language).is_some() {
            let own = self.languages.iter().position(|own| *own == language).map_or(0, |number| hits[number]);
            listed && 2 * own >= most
        } else {
            unlisted
        };
        if believed { language } else { String::new() }
    }
}

/// What the pieces of a text come to.
#[derive(Default)]
struct Counts {
    pieces: u32,
    /// Pieces that are numbers.
    digits: u32,
    /// Characters of all pieces, of those that are no numbers, and those of other scripts than the Latin one.
    characters: u32,
    letters: u32,
    foreign: u32,
}

impl Counts {
    fn add(&mut self, clue: Clue) {
        self.pieces += 1;
        self.digits += u32::from(clue.is_number);
        self.characters += clue.characters;
        self.letters += if clue.is_number { 0 } else { clue.characters };
        self.foreign += clue.foreign;
    }

    fn is_prose(&self) -> bool {
        5 * self.digits < self.pieces
    }
}

/// The part of a text by which its language is judged: all of it unless it is long.
pub fn sample(text: &str) -> std::borrow::Cow<'_, str> {
    if text.len() <= 2 * SAMPLE {
        return text.into();
    }
    let size = text.chars().count();
    if size <= 2 * SAMPLE {
        return text.into();
    }
    let from = |skip: usize| text.chars().skip(skip).take(SAMPLE);
    from(0).chain(std::iter::once(' ')).chain(from(size / 2)).collect::<String>().into()
}

/// The script that most letters of a text are in, and the languages that it may be.
fn script_of(taken: &str) -> (usize, &'static [&'static str]) {
    let mut counts = [0usize; SCRIPTS.len()];
    let mut kana = 0;
    for c in taken.chars().filter(|c| !c.is_ascii()) {
        kana += usize::from(('\u{3041}'..='\u{30ff}').contains(&c));
        for (count, (ranges, _)) in counts.iter_mut().zip(&SCRIPTS) {
            *count += usize::from(ranges.iter().any(|&(low, high)| (low..=high).contains(&c)));
        }
    }
    let most = counts.iter().copied().max().unwrap_or(0);
    let script = counts.iter().position(|&count| count == most).unwrap_or(0);
    // Japanese mixes Han with kana; a Chinese text holds hardly any.
    if script == HAN {
        return (script, if 20 * kana > counts[HAN] { &["ja"] } else { &["zh"] });
    }
    (script, SCRIPTS[script].1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tokens::pieces;

    #[test]
    fn codes_and_names_mean_languages() {
        for (value, code) in [
            ("ger", "de"),
            ("de-AT", "de"),
            ("Deutsch", "de"),
            ("iw", "he"),
            ("und", ""),
            ("ssa", "ssa"),
            (" EN ", "en"),
        ] {
            assert_eq!(language_code(value), code, "{value}");
        }
        assert_eq!(analysis_language("nob"), "no");
        assert_eq!(analysis_language("ssa"), "");
    }

    #[test]
    fn scripts_and_function_words_tell() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect();
        let stops = vec![("en".into(), words("the of and in with")), ("de".into(), words("der die das und mit"))];
        let evidence = Evidence::new(stops);
        let clues = |text| pieces(text).map(|(_, piece)| evidence.clue(&piece.to_ascii_lowercase()));
        let detect = |text| evidence.detect(text, clues(text), "", &|| None);
        assert_eq!(detect("The theory of the heat and of the air in a room with walls"), "en");
        assert_eq!(detect("Der Hund und die Katze mit der Maus das Haus"), "de");
        assert_eq!(detect("情報検索システムの評価"), "ja");
        assert_eq!(detect("信息检索系统的评价"), "zh");
        assert_eq!(detect("Это был большой дом"), "ru");
        assert_eq!(detect("12 34"), "");
    }
}
