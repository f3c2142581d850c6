//! Records become documents: their metadata is analysed, and their keys are made.

use std::collections::BTreeMap;

use super::builder::{Document, SegmentBuilder, intern_packed};
use crate::Result;
use crate::dates::date_number;
use crate::keys::RecordKeys;
use crate::metadata::Metadata;
use crate::text::analyzer::{Analyzer, Cut, Resources, Vector};
use crate::text::language::analysis_language;
use crate::text::terms::TermId;

/// Elements whose words can be asked for by field, with the marks that begin their terms (`indlet.model.FIELD_MARKS`).
pub const FIELDS: [(&str, &str); 6] = [
    ("title", "\x1ft"),
    ("creator", "\x1fc"),
    ("contributor", "\x1fb"),
    ("subject", "\x1fs"),
    ("description", "\x1fd"),
    ("publisher", "\x1fp"),
];
/// The fields that are searched of a record that came without a vector, in the order in which they are read.
const SEARCHED: [usize; 4] = [0, 4, 3, 1];

/// A record as the store has it.
#[derive(Default)]
pub struct Record<'a> {
    pub id: i64,
    pub origin: i64,
    pub identifier: &'a str,
    pub sets: &'a str,
    pub resource: u64,
    /// Terms of fields, packed, beyond those that its metadata give.
    pub further: &'a [u8],
    pub length: u32,
    pub language: &'a str,
    pub metadata: &'a [u8],
    /// The packed vector; `None` if that of the metadata stands for it.
    pub vector: Option<&'a [u8]>,
    pub positions: Option<&'a [u8]>,
}

/// A record's metadata, cut into pieces.
struct Analysed<'a> {
    metadata: Metadata<'a>,
    fields: [Cut; FIELDS.len()],
    /// There is no vector: fields that are searched stand for it.
    is_searched: bool,
    language: String,
}

impl Analysed<'_> {
    /// The pieces of the fields that are searched.
    fn text(&self) -> Cut {
        SEARCHED.iter().flat_map(|&number| &self.fields[number]).copied().collect()
    }
}

/// Read, cut and judge a record. What follows needs every piece to be learned.
fn analyse<'a>(record: &Record<'a>, analyzer: &mut Analyzer, resources: &dyn Resources) -> Result<Analysed<'a>> {
    let metadata = Metadata::parse(record.metadata)?;
    let fields = FIELDS.map(|(name, _)| {
        let mut cut = Cut::new();
        metadata.get(name).iter().for_each(|value| analyzer.cut_into(value, &mut cut));
        cut
    });
    let (is_searched, language) = (record.vector.is_none(), analyzer.policy_language(record.language));
    let mut own = Analysed { metadata, fields, is_searched, language };
    let stated = own.metadata.first("language");
    if is_searched {
        let text = own.metadata.text(&SEARCHED.map(|number| FIELDS[number].0));
        own.language = analyzer.language(&text, &own.text(), stated, resources);
    }
    if own.language.is_empty() {
        let text = own.metadata.text(&FIELDS.map(|(name, _)| name));
        let stated = own.metadata.get("language").iter().map(|value| analysis_language(value));
        let stated = stated.into_iter().find(|code| !code.is_empty()).unwrap_or_default();
        own.language = analyzer.language(&text, &own.fields.concat(), &stated, resources);
    }
    Ok(own)
}

/// Analyse records; pieces that are new are stemmed together, language by language.
fn analyse_all<'a>(
    records: &[Record<'a>],
    analyzer: &mut Analyzer,
    resources: &dyn Resources,
) -> Result<Vec<Analysed<'a>>> {
    analyzer.bound_memory();
    let analysed = records.iter().map(|record| analyse(record, analyzer, resources)).collect::<Result<Vec<_>>>()?;
    let mut by_language: BTreeMap<String, Vec<&Cut>> = BTreeMap::new();
    for one in &analysed {
        let cuts = by_language.entry(analyzer.rules_for(&one.language)).or_default();
        cuts.extend(&one.fields);
    }
    for (language, cuts) in by_language {
        analyzer.learn(&language, cuts.into_iter(), resources)?;
    }
    Ok(analysed)
}

/// Add records to a segment. Without an analyser, their terms are those of their vectors and `further` alone.
pub fn add_records(
    builder: &mut SegmentBuilder,
    records: &[Record],
    analyzer: Option<(&mut Analyzer, &dyn Resources)>,
) -> Result<()> {
    let Some((analyzer, resources)) = analyzer else {
        for record in records {
            let mut terms = Terms { length: record.length, ..Terms::default() };
            intern_packed(&mut builder.terms, record.vector.unwrap_or_default(), &mut terms.text);
            terms.positions = record.positions.map(<[u8]>::to_vec);
            add_record(builder, record, &Metadata::parse(record.metadata)?, record.language, &mut terms)?;
        }
        return Ok(());
    };
    let policy = &analyzer.policy;
    let plain = !policy.positions && policy.prune.is_none() && policy.lead.is_none();
    let (mut keys, mut terms, mut counts) = (RecordKeys::default(), Terms::default(), Vec::new());
    for (record, own) in records.iter().zip(analyse_all(records, analyzer, resources)?) {
        let rules = analyzer.rules_for(&own.language);
        terms.clear();
        terms.length = if own.is_searched { 0 } else { record.length };
        if !own.is_searched {
            intern_packed(&mut builder.terms, record.vector.unwrap_or_default(), &mut terms.text);
            terms.positions = record.positions.map(<[u8]>::to_vec);
        } else if !plain {
            let vector = analyzer.vector_of(&own.text(), rules.clone());
            intern_packed(&mut builder.terms, &vector.packed, &mut terms.text);
            (terms.length, terms.positions) = (vector.length, vector.positions);
        }
        for (number, cut) in own.fields.iter().enumerate().filter(|(_, cut)| !cut.is_empty()) {
            let length = analyzer.count(&rules, cut, &mut counts);
            if own.is_searched && plain && SEARCHED.contains(&number) {
                terms.length += length;
                terms.text.extend(counts.iter().map(|&(term, tf)| (builder.import(analyzer, None, term), tf)));
            }
            terms.fields.extend(counts.iter().map(|&(t, tf)| (builder.import(analyzer, Some(number), t), tf)));
        }
        keys.describe(record.identifier, &own.metadata);
        terms.fields.extend(keys.iter().map(|key| (builder.terms.intern(key), 1)));
        let language = if own.is_searched { &own.language } else { record.language };
        add_record(builder, record, &own.metadata, language, &mut terms)?;
    }
    Ok(())
}

/// The terms of a record, and what goes with them.
#[derive(Default)]
struct Terms {
    text: Vec<(TermId, u32)>,
    fields: Vec<(TermId, u32)>,
    length: u32,
    positions: Option<Vec<u8>>,
}

impl Terms {
    fn clear(&mut self) {
        self.text.clear();
        self.fields.clear();
        self.positions = None;
    }
}

fn add_record(
    builder: &mut SegmentBuilder,
    record: &Record,
    metadata: &Metadata,
    language: &str,
    terms: &mut Terms,
) -> Result<()> {
    intern_packed(&mut builder.terms, record.further, &mut terms.fields);
    let stated = metadata.get("language").join("\0");
    let document = Document {
        id: record.id,
        origin: record.origin,
        identifier: record.identifier.as_bytes(),
        sets: record.sets,
        types: &metadata.get("type").join("\0"),
        languages: if stated.is_empty() { language } else { &stated },
        resource: record.resource,
        date: date_number(metadata.get("date").iter().map(|value| &value[..])),
        length: terms.length,
        positions: terms.positions.as_deref(),
    };
    builder.add(&document, terms.text.iter().copied(), terms.fields.iter().copied())
}

/// The vector of the metadata of a record that came without one.
pub fn metadata_vector(metadata: &[u8], analyzer: &mut Analyzer, resources: &dyn Resources) -> Result<Vector> {
    let record = Record { metadata, ..Record::default() };
    let own = analyse_all(&[record], analyzer, resources)?.remove(0);
    Ok(analyzer.vector_of(&own.text(), analyzer.rules_for(&own.language)))
}

/// A record with all its terms, for an index that is kept elsewhere: its vector, and the packed vector of the terms of its
/// fields and of its keys.
pub struct Described {
    pub vector: Vec<u8>,
    pub length: u32,
    pub positions: Option<Vec<u8>>,
    pub language: String,
    pub fields: Vec<u8>,
}

pub fn describe_records(
    records: &[Record],
    analyzer: &mut Analyzer,
    resources: &dyn Resources,
) -> Result<Vec<Described>> {
    let (mut out, mut keys) = (Vec::with_capacity(records.len()), RecordKeys::default());
    for (record, own) in records.iter().zip(analyse_all(records, analyzer, resources)?) {
        let rules = analyzer.rules_for(&own.language);
        let mut described = Described {
            vector: record.vector.unwrap_or_default().to_vec(),
            length: record.length,
            positions: record.positions.map(<[u8]>::to_vec),
            language: record.language.to_owned(),
            fields: Vec::new(),
        };
        if own.is_searched {
            let made = analyzer.vector_of(&own.text(), rules.clone());
            (described.vector, described.length) = (made.packed, made.length);
            (described.positions, described.language) = (made.positions, own.language.clone());
        }
        keys.describe(record.identifier, &own.metadata);
        described.fields = pack_fields(analyzer, &rules, &own.fields, &keys);
        out.push(described);
    }
    Ok(out)
}

/// The packed vector of field terms: lines by tf; on the first, keys, then terms by field and name.
fn pack_fields(analyzer: &mut Analyzer, rules: &str, fields: &[Cut], keys: &RecordKeys) -> Vec<u8> {
    let mut lines: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for key in keys.iter() {
        lines.entry(1).or_default().push(String::from_utf8_lossy(key).into_owned());
    }
    let mut counts = Vec::new();
    let mut order: Vec<usize> = (0..FIELDS.len()).collect();
    order.sort_by_key(|&number| FIELDS[number].0);
    for number in order {
        analyzer.count(rules, &fields[number], &mut counts);
        let name = |term: TermId| format!("{}{}", FIELDS[number].1, String::from_utf8_lossy(analyzer.terms.get(term)));
        let mut named: Vec<(String, u32)> = counts.iter().map(|&(term, tf)| (name(term), tf)).collect();
        named.sort_unstable();
        named.into_iter().for_each(|(term, tf)| lines.entry(tf).or_default().push(term));
    }
    let line = |(tf, terms): (u32, Vec<String>)| format!("{tf} {}", terms.join(" "));
    lines.into_iter().map(line).collect::<Vec<_>>().join("\n").into_bytes()
}
