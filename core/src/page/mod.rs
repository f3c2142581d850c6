//! From the bytes of an OAI-PMH response to records as they are stored.
//!
//! | module | question |
//! | --- | --- |
//! | `xml` | Is it well-formed, and what are its elements, texts and namespaces? |
//! | `canonical` | What are an element's bytes, apart from the document around it? |
//! | `reader` | Which records, errors and token does the response have? |
//! | `values` | What do the metadata say, each value in one form? |
//! | `record` | Which resource is a record about, and what are its properties? |
//! | `vector` | Which terms does an index part list? |

mod canonical;
pub mod reader;
pub mod record;
pub mod values;
pub mod vector;
mod xml;

pub use reader::{Item, Page, Part, Problem, element_values, read_page};
