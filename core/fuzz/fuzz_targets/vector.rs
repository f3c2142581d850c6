//! An index part of a page becomes a canonical vector or none, and any bytes in its place are indexed as far as they go.
#![no_main]

mod shared;

use indlet_core::index::builder::intern_packed;
use indlet_core::page::read_page;
use indlet_core::text::terms::TermTable;
use libfuzzer_sys::fuzz_target;

const BEFORE: &[u8] = b"<OAI-PMH xmlns=\"urn:indlet:ft-oai:1.0\"><responseDate>2026-01-01T00:00:00Z</responseDate>\
<request>x</request><ListRecords><record><header><identifier>a</identifier><datestamp>2026-01-01</datestamp></header>\
<metadata><x/></metadata><index><terms xmlns=\"urn:indlet:tf:1.0\" ";
const AFTER: &[u8] = b"</terms></index></record></ListRecords></OAI-PMH>";

fuzz_target!(|inside: &[u8]| {
    let body = [BEFORE, inside, AFTER].concat();
    let budget = 20 * body.len() + (1 << 16);
    if let Ok(page) = read_page(&body, budget) {
        assert!(page.spent <= budget);
    }
    let (mut terms, mut found) = (TermTable::default(), Vec::new());
    intern_packed(&mut terms, inside, &mut found);
    assert!(found.iter().all(|&(term, tf)| (term as usize) < terms.len() && tf > 0));
    assert!(found.len() <= inside.len());
});
