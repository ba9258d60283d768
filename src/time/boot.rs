//! The clock of leases, which all engines share.

pub(crate) use lockkeeper_lock::BootInstant;
