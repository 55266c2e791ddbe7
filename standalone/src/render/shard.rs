//! Parts of a batch, for several machines.

use std::str::FromStr;

/// Part `index` of `count`, counted from 1: every `count`-th entry of a list. The parts are
/// disjoint and cover the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    count: usize,
}

impl Shard {
    /// Iterates over this part of a list.
    pub fn select<T>(self, list: &[T]) -> impl Iterator<Item = &T> {
        list.iter().skip(self.index - 1).step_by(self.count)
    }
}

impl Default for Shard {
    /// Returns the whole list as one part.
    fn default() -> Self {
        Self { index: 1, count: 1 }
    }
}

impl FromStr for Shard {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers = text
            .split_once('/')
            .and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        match numbers {
            Some((index, count)) if (1..=count).contains(&index) => Ok(Self { index, count }),
            _ => Err("expected I/N with I from 1 to N, such as 3/8"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Shard;

    #[test]
    fn shards_cover_the_list() {
        let list: Vec<usize> = (0..10).collect();
        for count in 1..=12 {
            let parts = (1..=count)
                .map(|index| format!("{index}/{count}").parse::<Shard>().expect("a part"));
            let mut all: Vec<usize> = parts
                .flat_map(|part| part.select(&list).copied().collect::<Vec<_>>())
                .collect();
            all.sort_unstable();
            assert_eq!(all, list, "{count} parts");
        }
    }

    #[test]
    fn invalid_shards_are_rejected() {
        for text in ["", "1", "0/2", "3/2", "1/0", "-1/2", "1/2/3", "a/b"] {
            assert!(text.parse::<Shard>().is_err(), "{text:?}");
        }
    }
}
