//! Text becomes terms, by a policy.
//!
//! Each distinct piece of text is numbered once. For each language, a lexicon says what terms a piece becomes; it is
//! filled when the piece is first met in that language. So a text is numbers, and nearly all work is looking them up.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use ahash::RandomState;

use super::langid::LanguageModel;
use super::language::{Clue, Evidence, analysis_language, sample};
use super::terms::{TermId, TermTable};
use super::tokens::{for_each_word, join_lines, pieces};
use crate::Result;

/// How a text becomes terms: `indlet.text.policy.Policy`.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    pub language: String,
    pub default_language: String,
    pub stop: bool,
    pub stem: bool,
    pub positions: bool,
    pub prune: Option<f64>,
    pub lead: Option<f64>,
    pub min_length: usize,
    pub max_length: usize,
}

/// What the analyser asks of others: stems, and a model of languages, which are loaded when they are first needed.
pub trait Resources {
    /// The stems of words in a language that has a stemmer.
    fn stem(&self, language: &str, words: Vec<String>) -> Result<Vec<String>>;
    fn language_model(&self) -> Option<Arc<LanguageModel>>;
}

/// A document's terms: the canonical packed form, the tokens that became terms, positions, and the language.
#[derive(Debug, Default, PartialEq)]
pub struct Vector {
    pub packed: Vec<u8>,
    pub length: u32,
    pub positions: Option<Vec<u8>>,
    pub language: String,
}

type PieceId = u32;

/// A text in pieces.
pub type Cut = Vec<PieceId>;

/// A lexicon's entry: a term, no term, several tokens (a place in `runs`), or not looked up yet.
const UNKNOWN: u32 = u32::MAX;
const LOST: u32 = u32::MAX - 1;
const RUN: u32 = 1 << 31;
/// Pieces after which everything is forgotten: at some 100 bytes each, in few languages, that is below 100 MB.
const MOST_PIECES: usize = 500_000;

pub struct Analyzer {
    pub policy: Policy,
    evidence: Arc<Evidence>,
    pieces: TermTable,
    /// What each piece tells of the language of a text.
    clues: Vec<Clue>,
    pub terms: TermTable,
    lexicons: HashMap<String, Vec<u32>, RandomState>,
    /// Terms of pieces with several tokens: their number, then these (or `LOST`).
    runs: Vec<u32>,
    /// Changes when numbers of terms lose their meaning.
    pub generation: u64,
    /// How often each term was met in the current text.
    counts: Vec<u32>,
    /// A piece in small letters.
    lower: String,
}

impl Analyzer {
    pub fn new(policy: Policy, evidence: Arc<Evidence>) -> Analyzer {
        Analyzer {
            policy,
            evidence,
            pieces: TermTable::default(),
            clues: Vec::new(),
            terms: TermTable::default(),
            lexicons: HashMap::default(),
            runs: Vec::new(),
            generation: 0,
            counts: Vec::new(),
            lower: String::new(),
        }
    }

    /// Forget what was learned if that has become too much; numbers of terms then have no meaning any more.
    pub fn bound_memory(&mut self) {
        if self.pieces.len() > MOST_PIECES || self.pieces.memory() + self.terms.memory() > 200 * MOST_PIECES {
            self.pieces.clear();
            self.clues.clear();
            self.terms.clear();
            self.lexicons.clear();
            self.runs.clear();
            self.counts.clear();
            self.generation += 1;
        }
    }

    /// Cut a text into pieces.
    pub fn cut(&mut self, text: &str) -> Cut {
        let mut out = Cut::new();
        self.cut_into(text, &mut out);
        out
    }

    /// Append the pieces of a text to those of others.
    pub fn cut_into(&mut self, text: &str, out: &mut Cut) {
        let mut lower = std::mem::take(&mut self.lower);
        out.reserve(text.len() / 6);
        for (_, piece) in pieces(&join_lines(text)) {
            lower.clear();
            lower.push_str(piece);
            lower.make_ascii_lowercase();
            let id = self.pieces.intern(lower.as_bytes());
            if id as usize == self.clues.len() {
                self.clues.push(self.evidence.clue(&lower));
            }
            out.push(id);
        }
        self.lower = lower;
    }

    /// The language by whose rules a text is treated: the policy's, or the one that it is in; `stated` in any usual form.
    ///
    /// Under "auto" the text itself says what language it is in; where it does not, what is stated about it counts, and
    /// then the policy's default. Statements come second because they mislead: of 103 harvested records that stated
    /// Turkish, the text of 68 read as English. Only a language of which we know no function words can be taken for a
    /// neighbour, and has to be believed.
    pub fn language(&mut self, text: &str, cut: &Cut, stated: &str, resources: &dyn Resources) -> String {
        if self.policy.language != "auto" {
            return self.policy.language.clone();
        }
        let stated = if stated.is_empty() { String::new() } else { analysis_language(stated) };
        if !stated.is_empty() && self.evidence.stops(&stated).is_none() {
            return stated;
        }
        let found = self.detect(text, cut, &stated, resources);
        if !found.is_empty() {
            found
        } else if !stated.is_empty() {
            stated
        } else {
            self.policy.default_language.clone()
        }
    }

    /// The language that a text itself tells; empty where it does not, or tells nothing against the one stated.
    pub fn detect(&mut self, text: &str, cut: &Cut, stated: &str, resources: &dyn Resources) -> String {
        let taken = sample(text);
        let of_sample = if let Cow::Owned(part) = &taken { Some(self.cut(part)) } else { None };
        let clues = of_sample.as_ref().unwrap_or(cut).iter().map(|&piece| self.clues[piece as usize]);
        self.evidence.detect(&taken, clues, stated, &|| resources.language_model())
    }

    /// The language of a text that is said to be in one: the policy's, if it names one for all.
    pub fn policy_language(&self, language: &str) -> String {
        if self.policy.language == "auto" { language.to_owned() } else { self.policy.language.clone() }
    }

    /// The language by whose rules a text is treated that is in the given language.
    pub fn rules_for(&self, language: &str) -> String {
        match &self.policy.language[..] {
            "auto" if language.is_empty() => self.policy.default_language.clone(),
            "auto" => language.to_owned(),
            fixed => fixed.to_owned(),
        }
    }

    /// Languages without rules share a lexicon.
    fn lexicon_of<'l>(&self, language: &'l str) -> &'l str {
        if self.evidence.languages.iter().any(|own| own == language) { language } else { "" }
    }

    /// Learn what pieces become in a language: those that are new to it are stemmed together.
    pub fn learn<'c>(
        &mut self,
        language: &str,
        cuts: impl Iterator<Item = &'c Cut>,
        resources: &dyn Resources,
    ) -> Result<()> {
        let language = self.lexicon_of(language).to_owned();
        let mut lexicon = self.lexicons.remove(&language).unwrap_or_default();
        lexicon.resize(self.pieces.len(), UNKNOWN);
        let mut fresh: Vec<PieceId> = Vec::new();
        for &piece in cuts.flatten() {
            if lexicon[piece as usize] == UNKNOWN {
                lexicon[piece as usize] = LOST;
                fresh.push(piece);
            }
        }
        let outcome = self.look_up(&language, &fresh, resources);
        match &outcome {
            Ok(terms) => {
                let mut terms = terms.iter();
                for &piece in &fresh {
                    lexicon[piece as usize] = terms.next().copied().unwrap_or(LOST);
                }
            }
            Err(_) => fresh.iter().for_each(|&piece| lexicon[piece as usize] = UNKNOWN),
        }
        self.lexicons.insert(language, lexicon);
        outcome.map(drop)
    }

    /// The lexicon's entries of some pieces.
    fn look_up(&mut self, language: &str, fresh: &[PieceId], resources: &dyn Resources) -> Result<Vec<u32>> {
        // A stop word is never stemmed, and a word whose stem would be a stop word ("cans", "wills") stays as it is: so
        // the two can be applied together or one after the other with the same outcome.
        let evidence = self.evidence.clone();
        let stops = evidence.stops(language);
        let is_stop = |word: &str| stops.is_some_and(|stops| stops.contains(word));
        let stems = self.policy.stem && !language.is_empty();
        let lengths = self.policy.min_length..=self.policy.max_length;
        let (mut sizes, mut words, mut stemmed) = (Vec::with_capacity(fresh.len()), Vec::new(), Vec::new());
        for &piece in fresh {
            let before = words.len();
            let text = String::from_utf8_lossy(self.pieces.get(piece)).into_owned();
            for_each_word(&text, |word| {
                let dropped = (self.policy.stop && is_stop(word)) || !lengths.contains(&word.chars().count());
                if !dropped && stems && !is_stop(word) {
                    stemmed.push((words.len(), word.to_owned()));
                }
                words.push((!dropped).then(|| word.to_owned()));
            });
            sizes.push(words.len() - before);
        }
        if !stemmed.is_empty() {
            let asked = stemmed.iter().map(|(_, word)| word.clone()).collect();
            for ((place, _), stem) in stemmed.iter().zip(resources.stem(language, asked)?) {
                if !stem.is_empty() && !is_stop(&stem) {
                    words[*place] = Some(stem);
                }
            }
        }
        let mut ids = words.into_iter().map(|word| word.map_or(LOST, |word| self.terms.intern(word.as_bytes())));
        let mut out = Vec::with_capacity(fresh.len());
        for size in sizes {
            if size == 1 {
                out.push(ids.next().unwrap_or(LOST));
            } else {
                out.push(RUN | self.runs.len() as u32);
                self.runs.push(size as u32);
                self.runs.extend(ids.by_ref().take(size));
            }
        }
        Ok(out)
    }

    /// Call `f` with each term of a text in its order, `None` for a token that was dropped. The pieces must have been
    /// learned.
    pub fn for_each_term(&self, language: &str, cut: &Cut, mut f: impl FnMut(Option<TermId>)) {
        let Some(lexicon) = self.lexicons.get(self.lexicon_of(language)) else { return };
        let term = |code: u32| (code != LOST).then_some(code);
        for &piece in cut {
            match lexicon.get(piece as usize).copied().unwrap_or(LOST) {
                code if code == LOST || code == UNKNOWN => f(None),
                code if code & RUN == 0 => f(term(code)),
                code => {
                    let at = (code & !RUN) as usize;
                    let size = self.runs[at] as usize;
                    self.runs[at + 1..at + 1 + size].iter().for_each(|&code| f(term(code)));
                }
            }
        }
    }

    /// Count the terms of a text: `out` gets each with its tf, in the order in which they were first met. Gives their sum.
    pub fn count(&mut self, language: &str, cut: &Cut, out: &mut Vec<(TermId, u32)>) -> u32 {
        let mut counts = std::mem::take(&mut self.counts);
        counts.resize(self.terms.len(), 0);
        out.clear();
        let mut length = 0;
        self.for_each_term(language, cut, |term| {
            if let Some(term) = term {
                length += 1;
                let count = &mut counts[term as usize];
                if *count == 0 {
                    out.push((term, 0));
                }
                *count += 1;
            }
        });
        out.iter_mut().for_each(|(term, tf)| *tf = std::mem::take(&mut counts[*term as usize]));
        self.counts = counts;
        length
    }

    /// A text's terms with their frequencies; its length counts the tokens that became terms.
    pub fn vector(&mut self, text: &str, stated: &str, resources: &dyn Resources) -> Result<Vector> {
        self.bound_memory();
        let cut = self.cut(text);
        let language = self.language(text, &cut, stated, resources);
        self.learn(&language, std::iter::once(&cut), resources)?;
        Ok(self.vector_of(&cut, language))
    }

    /// The vector of a text that was cut and learned.
    pub fn vector_of(&mut self, cut: &Cut, language: String) -> Vector {
        let mut counts = Vec::new();
        let length = self.count(&language, cut, &mut counts);
        if self.policy.prune.is_some() || self.policy.lead.is_some() {
            counts = self.summarise(counts, cut, &language);
        }
        counts.sort_unstable_by(|a, b| a.1.cmp(&b.1).then_with(|| self.terms.get(a.0).cmp(self.terms.get(b.0))));
        let mut packed = Vec::with_capacity(8 * counts.len());
        for alike in counts.chunk_by(|a, b| a.1 == b.1) {
            if !packed.is_empty() {
                packed.push(b'\n');
            }
            packed.extend_from_slice(alike[0].1.to_string().as_bytes());
            for &(term, _) in alike {
                packed.push(b' ');
                packed.extend_from_slice(self.terms.get(term));
            }
        }
        let positions = self.policy.positions.then(|| self.positions(&counts, cut, &language));
        Vector { packed, length, positions, language }
    }

    /// The positions of terms in their order: of each as differences, LEB128. All tokens are counted, also those that
    /// were dropped, so that a phrase is a phrase.
    fn positions(&self, counts: &[(TermId, u32)], cut: &Cut, language: &str) -> Vec<u8> {
        let mut places: HashMap<TermId, Vec<u64>, RandomState> =
            counts.iter().map(|&(term, tf)| (term, Vec::with_capacity(tf as usize))).collect();
        let mut place = 0;
        self.for_each_term(language, cut, |term| {
            if let Some(own) = term.and_then(|term| places.get_mut(&term)) {
                own.push(place);
            }
            place += 1;
        });
        let mut out = Vec::new();
        for (term, _) in counts {
            let mut last = 0;
            for &place in places.get(term).into_iter().flatten() {
                crate::index::bytes::write_varint(&mut out, place - last);
                last = place;
            }
        }
        out
    }

    /// The terms that a policy keeps: those of a text's beginning (`lead`), and the share that matters most (`prune`).
    ///
    /// News and abstracts say at the beginning what they are about (Edmundson 1969; Lu & Callan 2002 compare such summaries
    /// for distributed retrieval).
    fn summarise(&self, counts: Vec<(TermId, u32)>, cut: &Cut, language: &str) -> Vec<(TermId, u32)> {
        let mut kept: Vec<TermId> = Vec::new();
        if let Some(share) = self.policy.prune {
            let named: Vec<(String, u32)> = counts.iter().map(|&(term, tf)| (self.term_name(term), tf)).collect();
            kept.extend(most_telling(&named, share).into_iter().map(|place| counts[place].0));
        }
        if let Some(share) = self.policy.lead {
            let mut all = Vec::new();
            self.for_each_term(language, cut, |term| all.push(term));
            kept.extend(all[..share_of(share, all.len())].iter().flatten());
        }
        kept.sort_unstable();
        counts.into_iter().filter(|(term, _)| kept.binary_search(term).is_ok()).collect()
    }

    /// A text's terms in their order, for a query; a language that is given is taken at its word.
    pub fn query_terms(&mut self, text: &str, language: &str, resources: &dyn Resources) -> Result<Vec<String>> {
        self.bound_memory();
        let cut = self.cut(text);
        let rules = if language.is_empty() {
            self.language(text, &cut, "", resources)
        } else {
            self.rules_for(&analysis_language(language))
        };
        self.terms_by(&rules, &cut, resources)
    }

    /// What one word becomes: no term if it is dropped, several if we split what others join.
    pub fn word_terms(&mut self, word: &str, language: &str, resources: &dyn Resources) -> Result<Vec<String>> {
        self.bound_memory();
        let cut = self.cut(word);
        let rules = self.rules_for(language);
        self.terms_by(&rules, &cut, resources)
    }

    /// A text's terms in their order, under the rules of a language; `None` for a token that was dropped.
    pub fn sequence(&mut self, text: &str, rules: &str, resources: &dyn Resources) -> Result<Vec<Option<String>>> {
        self.bound_memory();
        let cut = self.cut(text);
        self.learn(rules, std::iter::once(&cut), resources)?;
        let mut out = Vec::with_capacity(cut.len());
        self.for_each_term(rules, &cut, |term| out.push(term.map(|term| self.term_name(term))));
        Ok(out)
    }

    /// What each of some words becomes under the rules of a language.
    pub fn map_words(&mut self, words: &[String], rules: &str, resources: &dyn Resources) -> Result<Vec<Vec<String>>> {
        self.bound_memory();
        let cuts: Vec<Cut> = words.iter().map(|word| self.cut(word)).collect();
        self.learn(rules, cuts.iter(), resources)?;
        let of = |cut| {
            let mut out = Vec::new();
            self.for_each_term(rules, cut, |term| out.extend(term.map(|term| self.term_name(term))));
            out
        };
        Ok(cuts.iter().map(of).collect())
    }

    fn term_name(&self, term: TermId) -> String {
        String::from_utf8_lossy(self.terms.get(term)).into_owned()
    }

    fn terms_by(&mut self, language: &str, cut: &Cut, resources: &dyn Resources) -> Result<Vec<String>> {
        self.learn(language, std::iter::once(cut), resources)?;
        let mut out = Vec::new();
        self.for_each_term(language, cut, |term| {
            out.extend(term.map(|term| self.term_name(term)));
        });
        Ok(out)
    }
}

/// The places of the share of terms that tell most about a document, told from the document alone.
///
/// Büttcher & Clarke (CIKM 2006, "A document-centric approach to static index pruning") keep of each document the share of
/// terms that contribute most to its divergence from its collection. A provider does not know the collections that will be
/// made of its documents: all terms are taken to be equally likely there, and the contribution then grows with tf alone, as
/// in Luhn (1958, "The automatic creation of literature abstracts"). Among equally frequent terms the longer goes first, for
/// rare words are longer (Zipf 1935), then the one with the lower code points: the same document always keeps the same terms.
pub fn most_telling(terms: &[(String, u32)], share: f64) -> Vec<usize> {
    let mut ranked: Vec<(usize, usize)> = terms.iter().map(|(term, _)| term.chars().count()).enumerate().collect();
    ranked.sort_unstable_by(|a, b| {
        let (one, other) = (&terms[a.0], &terms[b.0]);
        other.1.cmp(&one.1).then(b.1.cmp(&a.1)).then_with(|| one.0.cmp(&other.0))
    });
    ranked.truncate(share_of(share, terms.len()));
    ranked.into_iter().map(|(place, _)| place).collect()
}

/// A share of some things, rounded up.
fn share_of(share: f64, size: usize) -> usize {
    ((share * size as f64).ceil() as usize).min(size)
}
