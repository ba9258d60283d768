use futures::future::BoxFuture;
use futures::stream::BoxStream;

/// Fires once, when the watched node changes or the session ends.
pub type Watch = BoxFuture<'static, WatchEvent>;

/// The paths of the nodes that changed, in the order of the events. It ends when the connection breaks: what
/// happens after that is not in it.
pub type ChangedPaths = BoxStream<'static, String>;

/// The event of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEvent {
    /// The node was deleted.
    Deleted,
    /// The node's data or its list of children changed.
    Changed,
    /// The session is over; no more events follow.
    SessionEnded,
}

/// How far below its node a watch reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchDepth {
    /// The node alone.
    Node,
    /// The node and everything below.
    Tree,
}
