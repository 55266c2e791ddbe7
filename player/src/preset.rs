//! Presets: everything that is heard, under a name.
//!
//! In reading order: [`file`](mod@file) reads and writes preset files, [`factory`] holds the
//! factory presets, [`store`] is the user's preset folders, and [`list`] lists both.

pub mod factory;
pub mod file;
pub mod list;
pub mod location;
pub mod store;

use crate::product::Product;
use crate::state::SoundState;

/// A preset.
#[derive(Clone, Debug, PartialEq)]
pub struct Preset {
    /// Name.
    pub name: String,
    /// Product that it was made with.
    pub product: Product,
    /// Author.
    pub author: String,
    /// Description.
    pub comment: String,
    /// Tags to search for.
    pub tags: Vec<String>,
    /// Everything that is heard.
    pub sound: SoundState,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_written_by_their_ids() {
        for product in [Product::Instrument, Product::Effect] {
            assert_eq!(serde_json::to_value(product).unwrap(), product.id());
        }
    }
}
