//! Nodes: their paths, names, tokens and data.

pub(crate) mod fencing_token;
pub(crate) mod name;
pub(crate) mod node_data;
pub(crate) mod path;
pub(crate) mod version;
pub(crate) mod whole_path;
pub(crate) mod zxid;
