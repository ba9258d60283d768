//! The limit of a wait, which all engines share.

pub(crate) use lockkeeper_lock::Deadline;
