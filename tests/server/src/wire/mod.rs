//! ZooKeeper's wire format: frames, and the records inside them.
//!
//! Reading trusts nothing. A length is never used to set memory aside; it is only compared with what is
//! there.

mod four_letter;
mod frame;
mod opcode;
mod reader;
mod reply;
mod request;
mod writer;

pub(crate) use four_letter::{FourLetter, Report};
pub(crate) use frame::{Frame, MAX_FRAME, read_frame};
pub(crate) use reply::encode;
pub(crate) use request::{decode_connect, decode_request};

#[cfg(test)]
mod fuzz_test;
