//! Views, for threads.

use lockkeeper::blocking::{CannotBlock, ChildrenView, ConnectionManager, NodeView, TreeView};
use lockkeeper::{ANY_VERSION, CreateMode, Error, ViewBounds, ViewChange, ViewState};
use lockkeeper_tests::Timing;

use crate::support::{aside, connect, server};

fn create(manager: &ConnectionManager, path: &str, data: &str) {
    manager
        .block_on(manager.as_async().znodes().create(path, data, CreateMode::Persistent))
        .unwrap()
        .unwrap();
}

#[test]
fn a_thread_waits_for_a_view_and_for_its_changes() {
    let server = server();
    let manager = connect(&server);
    create(&manager, "/tree/a", "1");
    let tree = TreeView::new(&manager, "/tree").unwrap();
    let children = ChildrenView::with_bounds(&manager, "/tree", ViewBounds::default()).unwrap();
    let number = |data: &[u8]| std::str::from_utf8(data).unwrap().parse::<u32>();
    let node = NodeView::with_decoder(&manager, "/tree/a", number).unwrap();
    assert_eq!((tree.ready().unwrap().len(), children.ready().unwrap().len()), (2, 2));
    assert_eq!(node.ready().unwrap().root().unwrap().value().unwrap(), &1);

    let mut changes = tree.changes();
    let stat =
        manager.block_on(manager.as_async().znodes().write("/tree/a", "2", ANY_VERSION)).unwrap().unwrap();
    let difference = changes.next_timeout(Timing::event()).unwrap().unwrap();
    assert!(matches!(difference.changes(), [ViewChange::Updated { .. }]), "{difference:?}");
    assert_eq!(tree.sync().unwrap().get("a").unwrap().data(), b"2");
    assert_eq!(node.await_until(stat.mzxid).unwrap().root().unwrap().value().unwrap(), &2);
    let none = changes.next_timeout(std::time::Duration::from_millis(1)).unwrap_err();
    assert!(matches!(&none, Error::Timeout { path, .. } if path.as_str() == "/tree"), "{none}");

    manager.shutdown().unwrap();
    while changes.next().unwrap().is_some() {}
    assert_eq!((tree.state(), node.state()), (ViewState::Closed, ViewState::Closed));
    assert!(node.ready().unwrap_err().is_closed());
}

#[test]
fn a_wait_for_a_view_within_a_task_is_refused() {
    let server = server();
    let manager = connect(&server);
    let view = NodeView::new(&manager, "/node").unwrap();
    aside(async {
        for refused in [view.ready().err(), view.sync().err(), NodeView::new(&manager, "/node").err()] {
            assert!(
                refused.as_ref().is_some_and(|error| error.recipe::<CannotBlock>().is_some()),
                "{refused:?}"
            );
        }
        // What does not wait works.
        assert!(view.node().is_none());
    });
}
