use thiserror::Error;

use super::connect_string::ConnectStringError;
use crate::znode::name::LabelError;
use crate::znode::path::PathError;

/// An argument that cannot be right, found before anything was sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A bad path.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A bad connect string.
    #[error(transparent)]
    ConnectString(#[from] ConnectStringError),
    /// A bad label.
    #[error(transparent)]
    Label(#[from] LabelError),
    /// A setting outside its range.
    #[error("{name} is {value}; {advice}")]
    Setting {
        /// Which setting.
        name: &'static str,
        /// What it was set to.
        value: String,
        /// What to set instead.
        advice: &'static str,
    },
    /// Node data the server would not take.
    #[error("node data of {bytes} bytes; the server takes at most {max}")]
    DataTooLarge {
        /// How large it is.
        bytes: usize,
        /// How large it may be.
        max: usize,
    },
    /// A reentrant lock was asked for without saying for whom.
    #[error("no owner is in scope here; run this within Owner::scope(), or name an owner")]
    NoOwner,
    /// No tokio runtime with timers is running here.
    #[error("no tokio runtime with time enabled; call from within one built with enable_all()")]
    NoRuntime,
    /// A blocking call where waiting would hold up others, perhaps for ever.
    #[error(
        "cannot block here, in an async task or a thread that ends; call it from a thread, spawn_blocking or \
         block_in_place, or use the async face"
    )]
    CannotBlock,
}
