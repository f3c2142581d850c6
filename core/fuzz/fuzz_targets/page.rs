//! A page is read or refused, within its budget.
#![no_main]

use indlet_core::page::read_page;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    let budget = 20 * body.len() + (1 << 16);
    if let Ok(page) = read_page(body, budget) {
        assert!(page.derived.len() <= page.spent && page.spent <= budget);
        for item in &page.items {
            assert!(!item.identifier.is_empty() && item.source.end <= body.len());
        }
    }
});
