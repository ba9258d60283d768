/// What became of a request, for the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOutcome {
    /// It reached the inner service.
    Passed,
    /// The layer refused it: over the limit.
    Refused,
    /// Nothing was decided, and the layer fails closed.
    UndecidedRefused,
    /// Nothing was decided, and the layer fails open.
    UndecidedPassed,
    /// Its key can be no key.
    BadKey,
}

impl RequestOutcome {
    /// All of them.
    #[cfg(feature = "metrics")]
    const ALL: [Self; 5] =
        [Self::Passed, Self::Refused, Self::UndecidedRefused, Self::UndecidedPassed, Self::BadKey];

    /// The label.
    #[cfg(feature = "metrics")]
    fn label(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Refused => "refused",
            Self::UndecidedRefused => "undecided_refused",
            Self::UndecidedPassed => "undecided_passed",
            Self::BadKey => "bad_key",
        }
    }

    /// Counts a request. Without the feature `metrics` it does nothing.
    pub(crate) fn count(self, layer: &'static str) {
        #[cfg(feature = "metrics")]
        crate::metrics::requests(layer, self.label(), 1);
        let _ = layer;
    }

    /// Shows the counters of a layer, at zero: before its first request.
    pub(crate) fn show_all(layer: &'static str) {
        #[cfg(feature = "metrics")]
        for outcome in Self::ALL {
            crate::metrics::requests(layer, outcome.label(), 0);
        }
        let _ = layer;
    }
}
