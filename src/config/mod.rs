//! What is set once: where the servers are, who may, how long, how often.

pub(crate) mod acl;
pub(crate) mod connect_string;
pub(crate) mod error;
pub(crate) mod lease_renewal;
pub(crate) mod limits;
pub(crate) mod retry;
pub(crate) mod tls;
