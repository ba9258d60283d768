use thiserror::Error;

use super::connect_string::ConnectStringError;
use crate::znode::name::LabelError;
use crate::znode::path::PathError;

/// An invalid argument, found before anything was sent.
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
    /// A setting is outside of its range.
    #[error("{name} is {value}; {advice}")]
    Setting {
        /// The name of the setting.
        name: &'static str,
        /// The value of the setting.
        value: String,
        /// A value to set instead.
        advice: &'static str,
    },
    /// The data of a node is too large for the server.
    #[error("node data of {bytes} bytes; the server takes at most {max}")]
    DataTooLarge {
        /// The size of the data.
        bytes: usize,
        /// The largest accepted size.
        max: usize,
    },
    /// There is no tokio runtime with timers.
    #[error("no tokio runtime with time enabled; call from within one built with enable_all()")]
    NoRuntime,
}
