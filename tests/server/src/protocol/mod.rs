//! Requests, replies and error codes, independent of any wire format.

mod connect;
mod create;
mod error_code;
mod multi;
mod op;
mod reply;
mod request;

pub use connect::{ConnectRequest, ConnectResponse};
pub use create::{Create, CreateMode, CreateOp};
pub use error_code::ErrorCode;
pub use multi::{ReadOp, ReadResult, WriteOp, WriteResult};
pub use op::Op;
pub use reply::Reply;
pub use request::Request;
