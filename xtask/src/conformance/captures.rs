//! Captures: the crate nam-rs, a part of the example `conformance`, plays `.nam` files. What NAM's
//! own trainer makes of them is noted in the answers, since it takes gigabytes to install.

use super::Kind;

/// Captures.
pub const KIND: Kind = Kind {
    name: "captures",
    tools: &[],
    run_others: |_, _| Ok(()),
    readers: &["Ondes", "NAM's trainer", "nam-rs"],
};
