//! Nodes beside the recipes: read, listed, written, deleted, waited for, and their access lists.

mod access;
mod delete_all;
mod handle;
mod list;
mod read_first;
mod write;

pub use self::delete_all::DeletedNodes;
pub use self::handle::Znodes;
pub use self::write::CreatedNode;
