//! Views: copies of nodes that follow the server, and say when they are complete.
//!
//! Protocol and sources: `docs/protocol.md`, "Views". The core has the engine; this module has one type
//! for each scope.

mod children_view;
mod node_view;
mod scoped_view;
mod tree_view;

pub use self::children_view::{ChildrenView, OneLevel};
pub use self::node_view::{NodeView, OneNode};
pub use self::scoped_view::View;
pub use self::tree_view::{EveryLevel, TreeView};
#[doc(inline)]
pub use lockkeeper_core::{
    Difference, Follow, Snapshot, TreeScope, ViewBounds, ViewChange, ViewChanges, ViewNode, ViewPoint,
    ViewState,
};
