//! Short names of file formats: what people call a media type.

const NAMES: [(&str, &str); 33] = [
    ("application/pdf", "PDF"),
    ("application/x-pdf", "PDF"),
    ("text/html", "HTML"),
    ("application/xhtml+xml", "HTML"),
    ("text/plain", "Text"),
    ("text/markdown", "Markdown"),
    ("text/csv", "CSV"),
    ("text/x-tex", "TeX"),
    ("application/x-tex", "TeX"),
    ("application/x-latex", "TeX"),
    ("application/postscript", "PostScript"),
    ("application/epub+zip", "EPUB"),
    ("application/rtf", "RTF"),
    ("text/rtf", "RTF"),
    ("application/xml", "XML"),
    ("text/xml", "XML"),
    ("application/json", "JSON"),
    ("application/zip", "ZIP"),
    ("application/msword", "DOC"),
    ("application/vnd.ms-excel", "XLS"),
    ("application/vnd.ms-powerpoint", "PPT"),
    ("application/vnd.oasis.opendocument.text", "ODT"),
    ("application/vnd.oasis.opendocument.spreadsheet", "ODS"),
    ("application/vnd.oasis.opendocument.presentation", "ODP"),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "DOCX"),
    ("application/vnd.openxmlformats-officedocument.presentationml.presentation", "PPTX"),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "XLSX"),
    ("application/marc", "MARC"),
    ("message/rfc822", "Mail"),
    ("image/jpeg", "JPEG"),
    ("image/svg+xml", "SVG"),
    ("audio/mpeg", "MP3"),
    ("video/mp4", "MP4"),
];

pattern!(
    MEDIA_TYPE,
    r"^(?:application|audio|font|image|message|model|multipart|text|video)/([a-z0-9][a-z0-9.+_-]{0,80})$"
);

/// The name of the format that a value of dc:format states; empty if it states none ("12 pages").
pub fn file_format(value: &str) -> String {
    let value = crate::text::cut(value, 200);
    let kind = value.split(';').next().unwrap_or_default().trim_matches(crate::text::tokens::is_space);
    let kind = crate::text::fold_case(kind);
    let known = NAMES.iter().find(|(media, name)| *media == kind || name.eq_ignore_ascii_case(&kind));
    if let Some((_, name)) = known {
        return (*name).to_owned();
    }
    let Some(found) = MEDIA_TYPE.captures(&kind) else { return String::new() };
    let subtype = found[1].rsplit('.').next().unwrap_or_default();
    let mut name = subtype.strip_prefix("x-").unwrap_or(subtype).to_uppercase();
    name.truncate(24);
    name
}
