//! The values of Dublin Core elements, each in one form.

use std::borrow::Cow;
use std::collections::HashSet;

use ahash::RandomState;
use memchr::{memchr2, memmem};
use regex::Captures;
use unicode_general_category::{GeneralCategory, get_general_category};

use crate::text::cut;
use crate::text::language::language_code;
use crate::text::tokens::is_space;

/// The elements, in the order in which `oai_dc` lists them (`indlet.model.DUBLIN_CORE`).
pub const ELEMENTS: [&str; 15] = [
    "title",
    "creator",
    "subject",
    "description",
    "publisher",
    "contributor",
    "date",
    "type",
    "format",
    "identifier",
    "source",
    "language",
    "relation",
    "coverage",
    "rights",
];
pub const FORMAT: usize = 8;
pub const IDENTIFIER: usize = 9;

/// DCMI's refinements with the element that each refines (DCMI Metadata Terms, 2020): the one table, for harvested
/// metadata, for extractors and for the crosswalk of `dcterms`.
pub const REFINEMENTS: [(&str, &str); 32] = [
    ("alternative", "title"),
    ("abstract", "description"),
    ("tableOfContents", "description"),
    ("created", "date"),
    ("valid", "date"),
    ("available", "date"),
    ("issued", "date"),
    ("modified", "date"),
    ("dateAccepted", "date"),
    ("dateCopyrighted", "date"),
    ("dateSubmitted", "date"),
    ("extent", "format"),
    ("medium", "format"),
    ("isVersionOf", "relation"),
    ("hasVersion", "relation"),
    ("isReplacedBy", "relation"),
    ("replaces", "relation"),
    ("isRequiredBy", "relation"),
    ("requires", "relation"),
    ("isPartOf", "relation"),
    ("hasPart", "relation"),
    ("isReferencedBy", "relation"),
    ("references", "relation"),
    ("isFormatOf", "relation"),
    ("hasFormat", "relation"),
    ("conformsTo", "relation"),
    ("spatial", "coverage"),
    ("temporal", "coverage"),
    ("accessRights", "rights"),
    ("license", "rights"),
    ("rightsHolder", "rights"),
    ("bibliographicCitation", "identifier"),
];

/// The number of the element that a local name stands for, in any namespace and case: Dublin Core, or a refinement of it.
pub fn element_of(name: &str) -> Option<usize> {
    let number = |name: &str| ELEMENTS.iter().position(|element| element.eq_ignore_ascii_case(name));
    number(name).or_else(|| {
        let (_, element) = REFINEMENTS.iter().find(|(refinement, _)| refinement.eq_ignore_ascii_case(name))?;
        number(element)
    })
}

/// Metadata as they are stored: values by element, folded, in one form, each once.
#[derive(Debug, Default, PartialEq)]
pub struct Values {
    elements: [Vec<String>; ELEMENTS.len()],
}

impl Values {
    /// Add a value of an element as it came.
    pub fn add(&mut self, element: usize, value: &str) {
        let value = normalise(element, fold(value));
        if !value.is_empty() {
            self.elements[element].push(value.into_owned());
        }
    }

    pub fn get(&self, element: usize) -> &[String] {
        &self.elements[element]
    }

    pub fn is_empty(&self) -> bool {
        self.elements.iter().all(Vec::is_empty)
    }

    /// Drop values that are there before; call it when all are added.
    pub fn deduplicate(&mut self) {
        for values in self.elements.iter_mut().filter(|values| values.len() > 1) {
            if values.len() <= 8 {
                for number in (1..values.len()).rev() {
                    if values[..number].contains(&values[number]) {
                        values.remove(number);
                    }
                }
                continue;
            }
            let mut seen: HashSet<&str, RandomState> =
                HashSet::with_capacity_and_hasher(values.len(), RandomState::new());
            let first: Vec<bool> = values.iter().map(|value| seen.insert(value)).collect();
            let mut first = first.into_iter();
            values.retain(|_| first.next().unwrap_or(true));
        }
    }

    /// As `orjson` writes them: `{"title":["…"],"creator":["…","…"]}`.
    pub fn to_json(&self) -> Vec<u8> {
        let size: usize = self.elements.iter().flatten().map(|value| value.len() + 4).sum();
        let mut out = Vec::with_capacity(size + 64);
        out.push(b'{');
        for (name, values) in ELEMENTS.iter().zip(&self.elements).filter(|(_, values)| !values.is_empty()) {
            if out.len() > 1 {
                out.push(b',');
            }
            write_string(&mut out, name);
            out.extend_from_slice(b":[");
            for (number, value) in values.iter().enumerate() {
                if number > 0 {
                    out.push(b',');
                }
                write_string(&mut out, value);
            }
            out.push(b']');
        }
        out.push(b'}');
        out
    }
}

/// Write a string of JSON as `orjson` does.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    let has_controls = rest.iter().fold(false, |found, &byte| found | (byte < 32));
    let find = |rest: &[u8]| match has_controls {
        true => rest.iter().position(|&byte| byte < 32 || byte == b'"' || byte == b'\\'),
        false => memchr2(b'"', b'\\', rest),
    };
    while let Some(at) = find(rest) {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            other => out.extend_from_slice(format!("\\u{other:04x}").as_bytes()),
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// A value without characters that XML forbids or nobody sees, and with white space folded.
pub fn fold(value: &str) -> Cow<'_, str> {
    let bytes = value.as_bytes();
    let is_printable = bytes.iter().fold(true, |good, &byte| good & matches!(byte, 0x20..=0x7e));
    if is_printable && !value.starts_with(' ') && !value.ends_with(' ') && memmem::find(bytes, b"  ").is_none() {
        return Cow::Borrowed(value);
    }
    // Bytes of characters that are kept: only those that begin with other bytes need a look.
    let is_plain = |byte: u8| matches!(byte, 0x21..=0x7e | 0x80..=0xc1 | 0xc3..=0xe0 | 0xe4..=0xee | 0xf0..);
    let (mut out, mut pending, mut rest) = (String::with_capacity(value.len()), false, value);
    while let Some(c) = rest.chars().next() {
        let bytes = rest.as_bytes();
        let mut size = 0;
        while size < bytes.len()
            && (is_plain(bytes[size])
                || (bytes[size] == b' ' && size > 0 && bytes.get(size + 1).is_some_and(|&byte| is_plain(byte))))
        {
            size += 1;
        }
        if size == 0 {
            size = c.len_utf8();
            let is_invisible = matches!(c, '\u{ad}' | '\u{200b}' | '\u{2060}' | '\u{feff}');
            let is_unfit =
                matches!(c, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fdd0}'..='\u{fdef}' | '\u{fffe}' | '\u{ffff}');
            if is_invisible || is_unfit || is_space(c) {
                pending |= !is_invisible;
                rest = &rest[size..];
                continue;
            }
        }
        if std::mem::take(&mut pending) && !out.is_empty() {
            out.push(' ');
        }
        out.push_str(&rest[..size]);
        rest = &rest[size..];
    }
    Cow::Owned(out)
}

/// The one form of a folded value of an element.
fn normalise(element: usize, value: Cow<'_, str>) -> Cow<'_, str> {
    let formed = match ELEMENTS[element] {
        "date" => iso_date(&value),
        "language" => Some(language_code(&value)).filter(|code| !code.is_empty()),
        "type" => dcmi_type(&value).map(str::to_owned),
        "format" => media_type(&value),
        "title" => pdf_text(&value).map(|text| fold(&text).into_owned()),
        _ => None,
    };
    formed.map_or(value, Cow::Owned)
}

fn dcmi_type(value: &str) -> Option<&'static str> {
    const TYPES: &str = "Collection Dataset Event Image InteractiveResource MovingImage PhysicalObject Service Software \
                         Sound StillImage Text";
    let name = if value.contains("purl.org/dc/dcmitype/") { value.rsplit('/').next()? } else { value };
    let name = name.to_lowercase().replace(' ', "");
    TYPES.split(' ').find(|known| known.eq_ignore_ascii_case(&name))
}

fn media_type(value: &str) -> Option<String> {
    let lower = value.to_lowercase();
    let lower = lower.split(';').next().unwrap_or_default().trim_matches(is_space);
    let alias = match lower {
        "pdf" | "text/pdf" | "application/x-pdf" | "adobe pdf" => "application/pdf",
        "html" => "text/html",
        "txt" => "text/plain",
        "xml" => "application/xml",
        "doc" => "application/msword",
        "ps" => "application/postscript",
        "jpg" | "jpeg" | "image/jpg" => "image/jpeg",
        "mp3" => "audio/mpeg",
        "epub" => "application/epub+zip",
        "docx" => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        _ if is_media_type(lower) => lower,
        _ => return None,
    };
    Some(alias.to_owned())
}

pub fn is_media_type(value: &str) -> bool {
    let Some((kind, name)) = value.split_once('/') else { return false };
    let known = ["application", "audio", "font", "image", "message", "model", "multipart", "text", "video"];
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"_.+-".contains(&byte);
    known.contains(&kind) && !name.is_empty() && name.bytes().all(inside)
}

/// Characters of a PDF's string that are looked at.
const LONGEST_PDF: usize = 80_000;

/// The text of a PDF's string that was copied as it stands in the file: `\376\377\000M` is UTF-16 for "M"; none for others.
pub fn pdf_text(value: &str) -> Option<String> {
    if let Some(rest) = value.strip_prefix("\u{fe}\u{ff}") {
        return Some(rest.replace('\0', "")); // whoever read it took each byte for a letter
    }
    if !value.starts_with("\\376\\377") {
        return None;
    }
    let (mut data, mut rest) = (Vec::new(), cut(value, LONGEST_PDF));
    while let Some(first) = rest.chars().next() {
        let octal =
            rest.get(1..4).filter(|digits| first == '\\' && digits.bytes().all(|byte| matches!(byte, b'0'..=b'7')));
        if let Some(digits) = octal {
            data.push((u32::from_str_radix(digits, 8).unwrap_or_default() & 0xff) as u8);
            rest = &rest[4..];
            continue;
        }
        let mut chars = rest.chars();
        let escaped = if first == '\\' { rest.chars().nth(1) } else { None };
        let c = chars.next().and(escaped).unwrap_or(first);
        data.push((u32::from(c) & 0xff) as u8);
        rest = &rest[first.len_utf8() + escaped.map_or(0, char::len_utf8)..];
    }
    let units =
        data[2..].chunks(2).map(|pair| if let [high, low] = pair { u16::from_be_bytes([*high, *low]) } else { 0xfffd });
    let text: String = char::decode_utf16(units).map(|c| c.unwrap_or('\u{fffd}')).collect();
    Some(text.trim_matches('\0').to_owned())
}

pattern!(ISO, r"^(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2}))?)?(?:[T ].*)?$");
pattern!(COMPACT, r"^(?:D:)?(\d{4})(\d{2})?(\d{2})?(?:\d{2,6})?(?:Z.*|[+-].*)?$");
pattern!(DAY_MONTH, r"^(?:\w+,? )?(\d{1,2})(?:st|nd|rd|th|\.)?[- ](\w{3,9})\.?,?[- ](\d{4})\b");
pattern!(MONTH_DAY, r"^(?:\w+,? )?(\w{3,9})\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})\b");
pattern!(MONTH_YEAR, r"^(\w{3,9})\.?,? (\d{4})$");
pattern!(ASCTIME, r"^[A-Z][a-z]{2} ([A-Z][a-z]{2}) {1,2}(\d{1,2}) [\d:]{5,8} (?:[\w:+-]{1,9} )?(\d{4})$");
pattern!(
    MAIL,
    r"^(?:[A-Z][a-z]{2}, )?([0-9]{1,2}) ([A-Z][a-z]{2}) ([0-9]{2,3}) ([0-9]{1,2}):([0-9]{1,2})(?::[0-9]{1,2})?(?: .*)?$"
);

/// The date as YYYY, YYYY-MM or YYYY-MM-DD where its form is known and it is another one.
pub fn iso_date(value: &str) -> Option<String> {
    let value = cut(value.trim_matches(is_space), 200);
    match usual_date(value) {
        Some([1..=9999, 1..=12, 1..=31]) => return Some(value[..10].to_owned()),
        Some([year, month, day]) => return join(year, month, day),
        None => {}
    }
    let part = |found: &Captures, number: usize| found.get(number).map_or("", |part| part.as_str()).to_owned();
    if let Some(found) = ISO.captures(value).or_else(|| COMPACT.captures(value)) {
        return join(number(&part(&found, 1)), number(&part(&found, 2)), number(&part(&found, 3)));
    }
    if let Some(found) = DAY_MONTH.captures(value) {
        return join(number(&part(&found, 3)), month(&part(&found, 2)), number(&part(&found, 1)));
    }
    if let Some(found) = ASCTIME.captures(value).or_else(|| MONTH_DAY.captures(value)) {
        return join(number(&part(&found, 3)), month(&part(&found, 1)), number(&part(&found, 2)));
    }
    if let Some(found) = MONTH_YEAR.captures(value).filter(|found| month(&found[1]) > 0) {
        return join(number(&found[2]), month(&found[1]), 0);
    }
    // A date of RFC 822, whose years have two digits.
    let found = MAIL.captures(value)?;
    let (day, month, mut year) = (number(&found[1]), month(&found[2]), number(&found[3]));
    let time = number(&found[4]) < 24 && number(&found[5]) < 60;
    if year < 100 {
        year += if year > 68 { 1900 } else { 2000 };
    }
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let good = time && day > 0 && month > 0 && day <= days[month as usize - 1];
    if good { join(year, month, day) } else { None }
}

/// Year, month and day of YYYY, YYYY-MM, YYYY-MM-DD and YYYY-MM-DDT…: of nearly all dates, without a regular expression.
fn usual_date(value: &str) -> Option<[u32; 3]> {
    let bytes = value.as_bytes();
    let size = if bytes.get(10) == Some(&b'T') { 10 } else { bytes.len() };
    if !matches!(size, 4 | 7 | 10) {
        return None;
    }
    let mut numbers = [0; 3];
    for (at, byte) in bytes[..size].iter().enumerate() {
        match (at, byte) {
            (4 | 7, b'-') => {}
            (0..=3 | 5 | 6 | 8 | 9, b'0'..=b'9') => {
                let number = &mut numbers[at.saturating_sub(2) / 3];
                *number = 10 * *number + u32::from(byte - b'0');
            }
            _ => return None,
        }
    }
    Some(numbers)
}

fn join(year: u32, month: u32, day: u32) -> Option<String> {
    match (year, month, day) {
        (0 | 10_000.., _, _) | (_, 13.., _) | (_, _, 32..) => None,
        (_, 0, 0) => Some(format!("{year:04}")),
        (_, 0, _) => None,
        (_, _, 0) => Some(format!("{year:04}-{month:02}")),
        _ => Some(format!("{year:04}-{month:02}-{day:02}")),
    }
}

/// The number that some decimal digits of any script write; 0 if there are none.
fn number(digits: &str) -> u32 {
    digits.chars().fold(0, |sum, digit| 10 * sum + decimal(digit))
}

/// Digits of a script are in their order, and runs of digits begin with a zero.
fn decimal(digit: char) -> u32 {
    if let Some(digit) = digit.to_digit(10) {
        return digit;
    }
    let is_decimal = |c: char| get_general_category(c) == GeneralCategory::DecimalNumber;
    let before = (1..100).take_while(|back| char::from_u32(digit as u32 - back).is_some_and(is_decimal)).count();
    before as u32 % 10
}

fn month(name: &str) -> u32 {
    match &name.to_lowercase()[..] {
        "jan" | "januar" | "january" => 1,
        "feb" | "februar" | "february" => 2,
        "mar" | "march" | "märz" | "mär" => 3,
        "apr" | "april" => 4,
        "may" | "mai" => 5,
        "jun" | "june" | "juni" => 6,
        "jul" | "july" | "juli" => 7,
        "aug" | "august" => 8,
        "sep" | "sept" | "september" => 9,
        "oct" | "october" | "okt" | "oktober" => 10,
        "nov" | "november" => 11,
        "dec" | "december" | "dez" | "dezember" => 12,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_one_form() {
        for (value, expected) in [
            ("1999", Some("1999")),
            ("1999/5/3", Some("1999-05-03")),
            ("2014-03-05T10:00:00Z", Some("2014-03-05")),
            ("D:20140305101112+01'00'", Some("2014-03-05")),
            ("31 May 1999", Some("1999-05-31")),
            ("Mon, 3rd Okt. 2005", Some("2005-10-03")),
            ("March 4, 2001", Some("2001-03-04")),
            ("Dezember 1980", Some("1980-12")),
            ("Tue Jun  3 10:11:12 CEST 2003", Some("2003-06-03")),
            ("2 Jan 06 10:11:12 GMT", Some("2006-01-02")),
            ("30 Feb 06 10:11:12 GMT", None),
            ("١٩٩٩", Some("1999")),
            ("1999-13", None),
            ("0000", None),
            ("c. 1890", None),
        ] {
            assert_eq!(iso_date(value).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn every_refinement_has_its_element() {
        assert_eq!(element_of("REFERENCES"), element_of("relation"));
        assert_eq!(element_of("ispartof"), element_of("Relation"));
        assert_eq!(element_of("audience"), None);
        for (refinement, element) in REFINEMENTS {
            assert!(ELEMENTS.contains(&element));
            assert_eq!(element_of(refinement).map(|number| ELEMENTS[number]), Some(element));
        }
    }

    #[test]
    fn values_are_folded_formed_and_once() {
        let mut values = Values::default();
        let pairs = [
            ("Language", " Deutsch "),
            ("title", "\\376\\377\\000M\\000a"),
            ("title", "a\u{ad}b \n c"),
            ("title", "ab c"),
            ("format", "PDF; x"),
            ("type", "http://purl.org/dc/dcmitype/StillImage"),
            ("extent", "3 \"p\""),
            ("nothing", "x"),
        ];
        for (name, value) in pairs {
            if let Some(element) = element_of(name) {
                values.add(element, value);
            }
        }
        values.deduplicate();
        let json =
            r#"{"title":["Ma","ab c"],"type":["StillImage"],"format":["application/pdf","3 \"p\""],"language":["de"]}"#;
        assert_eq!(String::from_utf8(values.to_json()).unwrap(), json);
    }
}
