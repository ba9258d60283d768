//! How the servers are reached: by flags, by the environment, or by a file.

mod granted;
mod options;
mod tls;

pub(crate) use self::options::{ConnectionOptions, Opened, within};
