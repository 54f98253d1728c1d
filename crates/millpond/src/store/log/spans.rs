//! Which segments may hold an id: their ranges of ids, which mostly follow each other and may overlap.

/// The range of one segment.
#[derive(Clone, Copy, Debug)]
struct Span {
    low: u64,
    high: u64,
    /// The highest id of this one and all before it.
    top: u64,
    segment: u64,
}

/// The ranges of all segments that are not written to, by their lowest id.
#[derive(Debug, Default)]
pub(super) struct Spans(Vec<Span>);

impl Spans {
    /// Adds a segment that is not there yet. Costs little when its ids begin behind those of all others.
    pub(super) fn add(&mut self, low: u64, high: u64, segment: u64) {
        let at = self.0.partition_point(|span| span.low <= low);
        self.0.insert(at, Span { low, high, top: high, segment });
        let mut top = at.checked_sub(1).map_or(0, |before| self.0[before].top);
        for span in &mut self.0[at..] {
            top = top.max(span.high);
            span.top = top;
        }
    }

    /// Takes a segment out.
    pub(super) fn remove(&mut self, segment: u64) {
        self.0.retain(|span| span.segment != segment);
        let mut top = 0;
        for span in &mut self.0 {
            top = top.max(span.high);
            span.top = top;
        }
    }

    /// Segments that may hold `id`.
    pub(super) fn around(&self, id: u64) -> impl Iterator<Item = u64> + '_ {
        self.upto(id).take_while(move |(_, top)| *top >= id).map(|(segment, _)| segment)
    }

    /// Segments that may hold ids from `id` on, by their lowest id, which comes along.
    pub(super) fn from(&self, id: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let start = self.0.partition_point(|span| span.top < id);
        self.0[start..].iter().filter(move |span| span.high >= id).map(|span| (span.segment, span.low))
    }

    /// Segments that may hold ids up to `id`, from the one that begins last; the highest id of each and of all that
    /// follow here comes along.
    pub(super) fn upto(&self, id: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let end = self.0.partition_point(|span| span.low <= id);
        self.0[..end].iter().rev().map(|span| (span.segment, span.top))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_ranges_are_all_found() {
        let mut spans = Spans::default();
        for (low, high, segment) in [(50, 60, 3), (1, 10, 1), (5, 100, 2), (0, 200, 9), (61, 70, 4)] {
            spans.add(low, high, segment);
        }
        spans.remove(9);
        let spans = spans;
        let around = |id| spans.around(id).collect::<Vec<_>>();
        assert_eq!(around(0), [0; 0]);
        assert_eq!(around(7), [2, 1]);
        assert_eq!(around(55), [3, 2]);
        assert_eq!(around(65), [4, 3, 2], "what ends before may come along");
        assert_eq!(around(101), [0; 0]);
        assert_eq!(spans.from(56).collect::<Vec<_>>(), [(2, 5), (3, 50), (4, 61)]);
        assert_eq!(spans.upto(20).collect::<Vec<_>>(), [(2, 100), (1, 10)]);
    }
}
