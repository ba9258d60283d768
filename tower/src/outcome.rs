/// What became of a request, for the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// It reached the inner service.
    Passed,
    /// The layer refused it: over the limit, no permit or no lock in time, not the leader.
    Refused,
    /// Nothing was decided, and the layer fails closed.
    UndecidedRefused,
    /// Nothing was decided, and the layer fails open.
    UndecidedPassed,
    /// Its key can be no key.
    BadKey,
    /// It was sent to the leader.
    Redirected,
    /// It had passed, and its hold was lost before there was a response.
    Lost,
}

impl RequestOutcome {
    /// All of them.
    #[cfg(feature = "metrics")]
    const ALL: [Self; 7] = [
        Self::Passed,
        Self::Refused,
        Self::UndecidedRefused,
        Self::UndecidedPassed,
        Self::BadKey,
        Self::Redirected,
        Self::Lost,
    ];

    /// The label.
    #[cfg(feature = "metrics")]
    fn label(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Refused => "refused",
            Self::UndecidedRefused => "undecided_refused",
            Self::UndecidedPassed => "undecided_passed",
            Self::BadKey => "bad_key",
            Self::Redirected => "redirected",
            Self::Lost => "lost",
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
