use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Something that is passed later: at an instant, or when a fault is released.
#[derive(Debug, Clone)]
pub(crate) enum Gate {
    /// Opens by itself.
    At(Instant),
    /// Opens when the value becomes true, or its sender is dropped.
    Released(watch::Receiver<bool>),
}

impl Gate {
    pub(crate) async fn pass(self) {
        match self {
            Self::At(instant) => sleep_until(instant).await,
            Self::Released(mut released) => {
                // An error means that the fault was dropped: no caller can release it any more.
                let _ = released.wait_for(|released| *released).await;
            }
        }
    }
}
