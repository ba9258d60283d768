//! Settings: of a manager's connection, of access, and of sharing a lock within a process.

#[doc(inline)]
pub use crate::sharing::HandOffPolicy;
#[cfg(feature = "tls")]
#[doc(inline)]
pub use lockkeeper_core::Tls;
#[doc(inline)]
pub use lockkeeper_core::{
    Acl, ConnectString, ConnectionManagerBuilder, LeaseRenewal, NODE_BYTES_MAX, Permissions, RetryPolicy,
};
