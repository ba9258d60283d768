//! Figures of several rounds as one.

/// The middle of some figures, and how far they lie apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) greatest: f64,
}

impl Spread {
    /// Of no figures there is none.
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = figures.into_iter().filter(|figure| figure.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (least, greatest) = (*sorted.first()?, *sorted.last()?);
        let upper = *sorted.get(sorted.len() / 2)?;
        let lower = *sorted.get((sorted.len() - 1) / 2)?;
        Some(Self { least, median: f64::midpoint(lower, upper), greatest })
    }
}

/// The ratios of figures that were measured beside each other: those of one round, which a busy hour hits
/// alike.
pub(crate) fn ratios(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<Spread> {
    Spread::of(pairs.into_iter().map(|(ours, theirs)| ours / theirs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_and_of_two_middles_their_mean() {
        let odd = Spread::of([9.0, 1.0, 5.0]).unwrap();
        assert_eq!(odd, Spread { least: 1.0, median: 5.0, greatest: 9.0 });
        assert_eq!(Spread::of([1.0, 2.0, 4.0, 100.0]).unwrap().median, 3.0);
        assert_eq!(Spread::of([7.0]).unwrap(), Spread { least: 7.0, median: 7.0, greatest: 7.0 });
    }

    #[test]
    fn what_cannot_be_divided_is_left_out() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(ratios([(1.0, 0.0)]), None);
        assert_eq!(ratios([(4.0, 2.0), (9.0, 3.0), (1.0, 0.0)]).unwrap().median, 2.5);
    }
}
