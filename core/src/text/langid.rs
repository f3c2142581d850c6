//! The statistical model of py3langid (Lui & Baldwin 2012, "langid.py: an off-the-shelf language identification tool"):
//! naive Bayes over byte sequences, which an automaton finds.

use std::path::Path;

use unicode_normalization::UnicodeNormalization;

use crate::map::MappedFile;
use crate::{Error, Result};

/// Where an array is in the file, in bytes: begin and end.
pub type Span = (usize, usize);

/// The model in a file, which is mapped: only what a text touches is read.
pub struct LanguageModel {
    file: MappedFile,
    /// float16: for each feature the weights of all classes.
    weights: Span,
    /// float32, one for each class.
    priors: Span,
    /// uint32: rows of 256 states, by the byte that comes.
    moves: Span,
    /// uint16: the row of each state.
    rows: Span,
    /// int32: the feature that a state stands for, or -1.
    features: Span,
    classes: Vec<String>,
    /// The first class with the label of each: classes of one label are a language in two scripts.
    labels: Vec<usize>,
}

impl LanguageModel {
    pub fn open(path: &Path, spans: [Span; 5], classes: Vec<String>) -> Result<LanguageModel> {
        let file = MappedFile::open_unverified(path)?;
        let size = file.bytes().len();
        if spans.iter().any(|&(begin, end)| begin > end || end > size) || classes.is_empty() {
            return Err(Error::Damaged(format!("{} is no language model", path.display())));
        }
        let [weights, priors, moves, rows, features] = spans;
        let first = |label| classes.iter().position(|other| other == label).unwrap_or_default();
        let labels = classes.iter().map(first).collect();
        Ok(LanguageModel { file, weights, priors, moves, rows, features, classes, labels })
    }

    /// The bytes of the item with that number in an array of items of N bytes; zeros beyond its end.
    fn item<const N: usize>(&self, (begin, end): Span, number: usize) -> [u8; N] {
        let array = &self.file.bytes()[begin..end];
        let at = number.saturating_mul(N);
        array.get(at..at.saturating_add(N)).and_then(|item| item.try_into().ok()).unwrap_or([0; N])
    }

    /// The language that a text most probably is in, and how probable that is.
    pub fn classify(&self, text: &str) -> (&str, f32) {
        let bytes = prepare(text);
        let (mut state, mut features) = (0usize, Vec::with_capacity(bytes.len()));
        for &byte in bytes.as_bytes() {
            let row = usize::from(u16::from_le_bytes(self.item(self.rows, state)));
            state = u32::from_le_bytes(self.item(self.moves, row * 256 + usize::from(byte))) as usize;
            let feature = i32::from_le_bytes(self.item(self.features, state));
            if feature >= 0 {
                features.push(feature as usize);
            }
        }
        let mut scores = vec![0f32; self.classes.len()];
        let weights = &self.file.bytes()[self.weights.0..self.weights.1];
        features.sort_unstable();
        for alike in features.chunk_by(|a, b| a == b) {
            let times = (alike.len() as f32).ln_1p();
            let row = weights.chunks_exact(2 * scores.len()).nth(alike[0]).unwrap_or_default();
            for (score, weight) in scores.iter_mut().zip(row.chunks_exact(2)) {
                *score += times * half(u16::from_le_bytes([weight[0], weight[1]]));
            }
        }
        if !features.is_empty() {
            for (class, score) in scores.iter_mut().enumerate() {
                *score += f32::from_le_bytes(self.item(self.priors, class));
            }
        }
        // The softmax is calibrated across lengths by the root of the length.
        let scale = (1.0 / (bytes.len().max(1) as f64).sqrt()) as f32;
        let highest = scores.iter().fold(f32::NEG_INFINITY, |most, score| most.max(score * scale));
        scores.iter_mut().for_each(|score| *score = (*score * scale - highest).exp());
        let sum: f32 = scores.iter().sum();
        let mut shares = vec![0f32; scores.len()];
        self.labels.iter().zip(&scores).for_each(|(&label, score)| shares[label] += score / sum);
        let mut best = (0, 0f32);
        for (class, &share) in shares.iter().enumerate() {
            if share > best.1 {
                best = (class, share);
            }
        }
        (&self.classes[best.0], best.1)
    }
}

fn prepare(text: &str) -> String {
    let is_upper = text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase);
    let lower = if is_upper { text.to_lowercase() } else { text.to_owned() };
    lower.nfc().collect()
}

/// A number of IEEE 754 half precision; of infinities and what is no number, some number.
fn half(bits: u16) -> f32 {
    // The exponent's bias is 15 there and 127 here.
    let magnitude = f32::from_bits(u32::from(bits & 0x7fff) << 13) * f32::from_bits((127 + 112) << 23);
    if bits >> 15 == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    use super::half;

    #[test]
    fn halves_are_read() {
        for (bits, value) in [(0x3C00, 1.0), (0xC000, -2.0), (0x3555, 0.333_251_95), (0x0001, 5.960_464_5e-8), (0, 0.0)]
        {
            assert_eq!(half(bits), value);
        }
    }
}
