//! The settings of a manager: servers, access, security, retries, limits.

pub(crate) mod acl;
pub(crate) mod connect_string;
pub(crate) mod error;
pub(crate) mod lease_renewal;
pub(crate) mod limits;
pub(crate) mod retry;
pub(crate) mod tls;
