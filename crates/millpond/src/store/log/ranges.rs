//! A set of ids, kept as ranges.

use std::collections::BTreeMap;

/// Inclusive ranges that neither overlap nor touch.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    map: BTreeMap<u64, u64>,
}

impl Ranges {
    /// Adds `first..=last`.
    pub(super) fn insert(&mut self, mut first: u64, mut last: u64) {
        if first > last {
            return;
        }
        let before = self.map.range(..=first).next_back().map(|(from, to)| (*from, *to));
        if let Some((from, to)) = before.filter(|(_, to)| to.saturating_add(1) >= first) {
            if to >= last {
                return;
            }
            first = from;
        }
        while let Some((from, to)) =
            self.map.range(first..=last.saturating_add(1)).next().map(|(f, t)| (*f, *t))
        {
            self.map.remove(&from);
            last = last.max(to);
        }
        self.map.insert(first, last);
    }

    /// Number of ranges.
    pub(super) fn len(&self) -> usize {
        self.map.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.map.iter().map(|(first, last)| (*first, *last))
    }
}

#[cfg(test)]
mod tests {
    use super::Ranges;

    #[test]
    fn ranges_grow_together() {
        let mut set = Ranges::default();
        for id in [5, 3, 4, 9, 1, 8, 5, u64::MAX, u64::MAX - 1] {
            set.insert(id, id);
        }
        set.insert(2, 2);
        assert_eq!(set.iter().collect::<Vec<_>>(), [(1, 5), (8, 9), (u64::MAX - 1, u64::MAX)]);
        set.insert(0, 100);
        assert_eq!(set.len(), 2);
    }
}
