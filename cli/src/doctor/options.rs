use clap::Args;

use crate::partial::NODES;

#[derive(Debug, Args)]
pub(crate) struct DoctorOptions {
    /// The directories of locks below this path are examined
    #[arg(long, value_name = "PATH", default_value = "/")]
    pub(super) root: String,

    /// The greatest number of nodes to read besides those of the contenders and empty directories
    #[arg(long, value_name = "N", default_value_t = NODES)]
    pub(super) nodes: usize,
}
