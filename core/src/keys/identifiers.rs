//! What names a work: DOI, handle, ISBN, ISSN, arXiv, OAI identifiers and addresses, each in one form.
//!
//! A *key* is a scheme and a value, `doi:10.1000/182`. Whatever way an identifier is written in a record or pasted into a
//! search box, its key is the same. Keys hold no white space and no capital letters.
//!
//! | scheme | what becomes it |
//! | --- | --- |
//! | doi | `10.1000/182`, `doi:…`, `https://doi.org/…`, `info:doi/…`; case does not matter (ISO 26324) |
//! | hdl | `hdl:…`, `info:hdl/…`, `https://hdl.handle.net/…`, `https://repository/handle/…` |
//! | isbn | ten or thirteen digits with a right check digit; ten become thirteen |
//! | issn | eight digits with a right check digit |
//! | arxiv | `2101.00001v2`, `hep-th/9901001`, `arXiv:…`, an address or DOI at arXiv; without its version |
//! | oai | an OAI identifier |
//! | url | a web address without scheme, `www.`, fragment and final slash |
//! | id | anything else that a record gives as its identifier, such as the number of a report |

use regex::Regex;

use super::values::is_printable;
use crate::text::tokens::is_space;
use crate::text::{cut, fold_case, fold_spaces};

/// Characters of a value that is looked at, and of a key; longer ones go on as a digest.
const LONGEST: usize = 2000;
const LONGEST_KEY: usize = 120;

pattern!(DOI, r"(?i)(?:^|doi\.org/|doi:\s*)(10\.[0-9]{4,9}/\S+)");
pattern!(STATED_DOI, r"(?i)^\W*(?:doi\s|info:doi/|urn:doi:)\s*");
pattern!(HANDLE, r#"(?i)(?:^(?:hdl|handle)[:\s]\s*|^info:hdl/|hdl\.handle\.net/|/handle/)([0-9][0-9.]*/[^\s"<>?#]+)"#);
pattern!(
    ARXIV,
    r"(?i)(?:^|\barxiv[:.\s/]\s*|arxiv\.org/(?:abs|pdf)/|^oai:arxiv\.org:)([0-9]{4}\.[0-9]{4,5}|[a-z][a-z-]+(?:\.[a-z]{2})?/[0-9]{7})(?:v[0-9]+)?(?:\.pdf)?$"
);
pattern!(ARXIV_FORM, r"^(?:[0-9]{4}\.[0-9]{4,5}(?:v[0-9]+)?$|[a-z][a-z-]+(?:\.[a-z]{2})?/[0-9]{7})");
pattern!(ISBN, r"(?i)\bisbn(?:-1[03])?[:\s]*");
pattern!(ISBN_DIGITS, r"(?i)^(?:97[89][- ]?)?(?:[0-9][- ]?){9}[0-9X]");
pattern!(ISBN_TEN, r"(?i)^(?:[0-9][- ]?){9}[0-9X]");
pattern!(ISSN, r"(?i)\bissn[:\s]*");
pattern!(ISSN_DIGITS, r"(?i)^[0-9]{4}-?[0-9]{3}[0-9X]");

/// The keys of one value that a record gives as its identifier, the most telling first.
pub fn keys_of(value: &str) -> Vec<String> {
    let value = fold_spaces(cut(value, LONGEST));
    let mut found = known(&value);
    if found.is_empty() && !value.is_empty() {
        found.push(format!("id:{}", fold_case(&value)));
    }
    found.into_iter().map(bound_key).collect()
}

/// The DOI that an identifier is, without what stands around it; empty if it is none.
pub fn doi(value: &str) -> &str {
    if !value.contains("10.") {
        return "";
    }
    let found = DOI.captures(cut(value, LONGEST)).and_then(|found| found.get(1));
    found.map_or("", |found| found.as_str().trim_end_matches(['.', ',', ';', '"', '\'']))
}

/// The keys that a value states, each once.
pub fn known(value: &str) -> Vec<String> {
    let lower = value.to_lowercase();
    let mut keys = Vec::new();
    let mut add = |key: String| {
        if !keys.contains(&key) {
            keys.push(key);
        }
    };
    let arxiv = || {
        let found = if lower.contains("arxiv") || ARXIV_FORM.is_match(&lower) { ARXIV.captures(value) } else { None };
        found.map(|found| format!("arxiv:{}", found[1].to_lowercase()))
    };
    if lower.starts_with("oai:") && !value.contains(' ') {
        if lower.contains("arxiv") {
            arxiv().into_iter().for_each(&mut add);
        }
        add(lower);
        return keys;
    }
    if value.contains("10.") {
        let stated = STATED_DOI.replace(value, "");
        let named = doi(&stated);
        if !named.is_empty() {
            let named = if value.contains("://") { unquote(named) } else { named.to_owned() };
            let named = trim(&named).to_lowercase();
            add(format!("doi:{named}"));
            if let Some(number) = named.strip_prefix("10.48550/arxiv.") {
                add(format!("arxiv:{number}"));
            }
        }
    }
    let handle = || HANDLE.captures(value).map(|found| format!("hdl:{}", trim(&found[1]).to_lowercase()));
    if value.contains("://") {
        if lower.contains("handle.net/") || lower.contains("/handle/") {
            handle().into_iter().for_each(&mut add);
        }
        if lower.contains("arxiv") {
            arxiv().into_iter().for_each(&mut add);
        }
        let url = url(value);
        if !url.is_empty() {
            add(format!("url:{url}"));
        }
        if !value.contains(' ') {
            return keys;
        }
    }
    if ["hdl", "handle", "info:hdl"].iter().any(|start| lower.starts_with(start)) {
        handle().into_iter().for_each(&mut add);
    }
    arxiv().into_iter().for_each(&mut add);
    let bare = lower.strip_prefix("urn:").unwrap_or(&lower);
    let begins_with_digit = bare.starts_with(|c: char| c.is_ascii_digit());
    if bare.contains("isbn") || begins_with_digit {
        numbered(bare, &ISBN, &[&ISBN_DIGITS, &ISBN_TEN])
            .and_then(isbn)
            .into_iter()
            .for_each(|isbn| add(format!("isbn:{isbn}")));
    }
    if bare.contains("issn") || begins_with_digit {
        numbered(bare, &ISSN, &[&ISSN_DIGITS]).and_then(issn).into_iter().for_each(|issn| add(format!("issn:{issn}")));
    }
    keys
}

/// The first number of one of these forms, at the beginning or after a label, if neither digit nor hyphen follows it.
fn numbered<'a>(text: &'a str, label: &Regex, forms: &[&Regex]) -> Option<&'a str> {
    for start in std::iter::once(0).chain(label.find_iter(text).map(|found| found.end())) {
        let rest = &text[start..];
        for form in forms {
            if let Some(found) = form.find(rest)
                && !rest[found.end()..].starts_with(|c: char| c.is_ascii_digit() || c == '-')
            {
                return Some(found.as_str());
            }
        }
    }
    None
}

fn digits(written: &str) -> Vec<u32> {
    written.chars().filter_map(|c| if matches!(c, 'x' | 'X') { Some(10) } else { c.to_digit(10) }).collect()
}

fn isbn(written: &str) -> Option<String> {
    let mut digits = digits(written);
    let checked = |digits: &[u32]| digits.iter().enumerate().map(|(i, digit)| [1, 3][i % 2] * digit).sum::<u32>();
    if digits.len() == 10 {
        if digits.iter().enumerate().map(|(i, digit)| (10 - i as u32) * digit).sum::<u32>() % 11 != 0 {
            return None;
        }
        digits.truncate(9);
        digits.splice(0..0, [9, 7, 8]);
        digits.push((10 - checked(&digits) % 10) % 10);
    } else if digits.contains(&10) || checked(&digits) % 10 != 0 {
        return None;
    }
    Some(digits.iter().map(u32::to_string).collect())
}

fn issn(written: &str) -> Option<String> {
    let digits = digits(written);
    if digits.iter().enumerate().map(|(i, digit)| (8 - i as u32) * digit).sum::<u32>() % 11 != 0 {
        return None;
    }
    let written: String = written.chars().filter(|&c| c != '-').collect::<String>().to_lowercase();
    Some(format!("{}-{}", &written[..4], &written[4..]))
}

/// Without the punctuation of the sentence around it, and without a bracket that it does not open.
pub fn trim(value: &str) -> &str {
    let mut value = value;
    while let Some(last) = value.chars().next_back() {
        let open = match last {
            ')' => '(',
            ']' => '[',
            '}' => '{',
            _ => last,
        };
        let lonely = open != last && value.matches(last).count() > value.matches(open).count();
        if !matches!(last, '.' | ',' | ';' | ':') && !lonely {
            break;
        }
        value = &value[..value.len() - last.len_utf8()];
    }
    value
}

/// Percent-encoded bytes decoded; what is not UTF-8 then is replaced.
fn unquote(value: &str) -> String {
    let (mut out, mut bytes) = (Vec::with_capacity(value.len()), value.as_bytes());
    while let Some((&byte, rest)) = bytes.split_first() {
        let hex = rest.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let decoded = hex
            .filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match decoded.filter(|_| byte == b'%') {
            Some(decoded) => {
                out.push(decoded);
                bytes = &rest[2..];
            }
            None => {
                out.push(byte);
                bytes = rest;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A web address without scheme, `www.`, fragment and final slash; empty if it is none.
fn url(value: &str) -> String {
    let Some((scheme, rest)) = value.split_once("://") else { return String::new() };
    if !["http", "https", "ftp"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return String::new();
    }
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let rest = rest.split('#').next().unwrap_or_default();
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = authority.rsplit('@').next().unwrap_or_default().to_lowercase();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (&authority[..], ""),
    };
    let host = host.trim_matches(['[', ']']);
    if host.is_empty() || (!port.is_empty() && port.parse::<u16>().is_err()) {
        return String::new();
    }
    let port = if matches!(port, "" | "80" | "443" | "21") { String::new() } else { format!(":{port}") };
    let mark = if query.is_empty() { "" } else { "?" };
    let path = path.trim_end_matches('/').to_lowercase();
    format!("{}{port}{path}{mark}{}", host.strip_prefix("www.").unwrap_or(host), query.to_lowercase())
}

/// A key as a name in an index: without white space and controls, and not too long.
pub fn bound_key(key: String) -> String {
    let size = key.chars().count();
    if size <= LONGEST_KEY && key.chars().all(|c| is_printable(c) && c != ' ') {
        return key;
    }
    let key: String = key.chars().map(|c| if is_space(c) || c < ' ' { '_' } else { c }).collect();
    if size <= LONGEST_KEY {
        return key;
    }
    let digest = blake2b_simd::Params::new().hash_length(8).hash(key.as_bytes());
    format!("{}{}", cut(&key, LONGEST_KEY - 16), digest.to_hex())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_have_one_form() {
        let cases: [(&str, &[&str]); 10] = [
            ("https://doi.org/10.1000/ABC.", &["doi:10.1000/abc", "url:doi.org/10.1000/abc."]),
            ("doi:10.48550/arXiv.2101.00001", &["doi:10.48550/arxiv.2101.00001", "arxiv:2101.00001"]),
            ("http://repo.org/handle/1721.1/7", &["hdl:1721.1/7", "url:repo.org/handle/1721.1/7"]),
            ("oai:arXiv.org:hep-th/9901001", &["arxiv:hep-th/9901001", "oai:arxiv.org:hep-th/9901001"]),
            ("ISBN 0-306-40615-2", &["isbn:9780306406157"]),
            ("urn:ISSN:0378-5955", &["issn:0378-5955"]),
            ("2101.00001v2", &["arxiv:2101.00001"]),
            ("http://www.X.org/A/?b=C#d", &["url:x.org/a?b=c"]),
            ("Report 7", &["id:report_7"]),
            ("", &[]),
        ];
        for (value, expected) in cases {
            assert_eq!(keys_of(value), expected, "{value}");
        }
    }
}
