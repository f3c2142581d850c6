//! What a record is about: its resource, and its properties as they are stored.

use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;

use super::values::{FORMAT, IDENTIFIER, Values, is_media_type, write_string};
use crate::keys::identifiers::doi;

/// What a record says, as it is stored.
#[derive(Debug, Default)]
pub struct Content<'a> {
    /// Separated by spaces.
    pub sets: &'a str,
    pub language: &'a str,
    pub length: u64,
    pub resource: i64,
    pub metadata: &'a [u8],
    pub properties: &'a [u8],
    pub raw: &'a [u8],
    pub vector: Option<&'a [u8]>,
    pub positions: Option<&'a [u8]>,
}

impl Content<'_> {
    /// What tells whether a record is the one that is stored already.
    pub fn digest(&self) -> [u8; 12] {
        let vector = self.vector.unwrap_or(b"-");
        let sizes = [self.metadata, self.properties, self.raw, vector].map(<[u8]>::len).map(|size| format!(" {size}"));
        let head = format!("{}|{}|{} {}{}|", self.sets, self.language, self.length, self.resource, sizes.concat());
        let mut digest = Sha256::new_with_prefix(head);
        for part in [self.metadata, self.properties, self.raw, vector, self.positions.unwrap_or(b"-")] {
            digest.update(part);
        }
        std::array::from_fn({
            let digest = digest.finalize();
            move |at| digest[at]
        })
    }
}

/// The properties of a record: when its source changed it, its address, its media type.
pub fn properties(datestamp: &str, values: &Values) -> Vec<u8> {
    let mut out = b"{\"source_datestamp\":".to_vec();
    write_string(&mut out, datestamp);
    if let Some(url) = first_url(values.get(IDENTIFIER)) {
        out.extend_from_slice(b",\"url\":");
        write_string(&mut out, url);
    }
    if let Some(form) = values.get(FORMAT).iter().find(|form| is_media_type(form)) {
        out.extend_from_slice(b",\"media_type\":");
        write_string(&mut out, form);
    }
    out.push(b'}');
    out
}

pub fn first_url(identifiers: &[String]) -> Option<&str> {
    let is_url = |value: &&String| value.starts_with("http://") || value.starts_with("https://");
    identifiers.iter().find(is_url).map(|url| &url[..])
}

/// What tells that two records are about one resource: its DOI, else its URL, else the OAI identifier.
///
/// The address of a whole site is that of no resource.
pub fn resource_key(identifier: &str, identifiers: &[String]) -> String {
    let named = identifiers.iter().map(|value| doi(value)).find(|doi| !doi.is_empty());
    if let Some(named) = named {
        return format!("doi:{}", named.to_lowercase());
    }
    let Some(url) = first_url(identifiers) else { return identifier.to_owned() };
    let key = canonical_url(url).unwrap_or_else(|| url.to_owned());
    let site = key.strip_prefix("http://").and_then(|rest| rest.strip_suffix('/'));
    if site.is_some_and(|host| !host.contains(['/', '?', '#'])) { identifier.to_owned() } else { key }
}

/// A resource's key as a signed number, never 0; 0 for no key.
pub fn resource_hash(key: &str) -> i64 {
    if key.is_empty() {
        return 0;
    }
    let digest = blake2b_simd::Params::new().hash_length(8).hash(key.as_bytes());
    let number = digest.as_bytes().iter().fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
    if number == 0 { 1 } else { number as i64 }
}

/// An address without its differences in scheme, `www.`, case of the host, usual port and final slashes; none if it
/// is no address.
fn canonical_url(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    if authority.contains(['[', ']']) || hides_separator(authority) {
        return None;
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let host = authority.rsplit('@').next().unwrap_or_default();
    let (host, port) = host.split_once(':').unwrap_or((host, ""));
    if !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u32 = if port.is_empty() { 80 } else { port.parse().ok().filter(|&number| number < 65_536)? };
    let (name, zone) = host.split_at(host.find('%').unwrap_or(host.len()));
    let host = format!("{}{zone}", name.to_lowercase());
    let is_plain = query.is_empty() && fragment.is_empty() && !path.is_empty() && authority == "www.";
    let host = if is_plain { &host } else { host.strip_prefix("www.").unwrap_or(&host) };
    let path = path.trim_end_matches('/');
    let mut out = format!("http://{host}");
    if number != 80 && number != 443 {
        out.push_str(&format!(":{number}"));
    }
    out.push_str(if path.is_empty() { "/" } else { path });
    for (sign, part) in [('?', query), ('#', fragment)].into_iter().filter(|(_, part)| !part.is_empty()) {
        out.push(sign);
        out.push_str(part);
    }
    Some(out)
}

/// Whether a character of an authority stands for one that would end or part it (Unicode TR 46).
fn hides_separator(authority: &str) -> bool {
    let plain: String = authority.chars().filter(|c| !matches!(c, '@' | ':' | '#' | '?')).collect();
    !plain.is_ascii() && {
        let normal: String = plain.nfkc().collect();
        normal != plain && normal.contains(['/', '?', '#', '@', ':'])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_has_one_key() {
        for (values, expected) in [
            (&["x", "https://www.x.org/a/", "doi:10.1234/AbC."][..], "doi:10.1234/abc"),
            (&["https://www.x.org/a/"], "http://x.org/a"),
            (&["http://X.org:8080/b/?c#d"], "http://x.org:8080/b?c#d"),
            (&["http://u@x.org:443/b"], "http://x.org/b"),
            (&["http://www./b"], "http://www./b"),
            (&["http://x.org/"], "oai:1"),
            (&["http://x.org"], "oai:1"),
            (&["http://x.org:port/a"], "http://x.org:port/a"),
            (&["ISBN 3"], "oai:1"),
        ] {
            let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
            assert_eq!(resource_key("oai:1", &values), expected, "{values:?}");
        }
        assert_eq!((resource_hash(""), resource_hash("doi:10.1/x")), (0, resource_hash("doi:10.1/x")));
    }
}
