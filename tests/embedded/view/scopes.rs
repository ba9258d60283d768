//! Trees of which a view follows a part.

use lockkeeper::TreeView;
use lockkeeper::view::{Follow, TreeScope};
use lockkeeper_testserver::machine::Machine;
use lockkeeper_testserver::{Fault, Op, When};

use super::{ROOT, client, newest_session, put, soon};
use crate::server_fixture::ServerFixture;

const READS: [Op; 6] = [Op::Exists, Op::GetData, Op::GetChildren, Op::GetChildren2, Op::MultiRead, Op::Multi];

async fn server_with_logs() -> ServerFixture {
    let server_fixture = ServerFixture::start().await.unwrap();
    for path in ["", "/kept", "/kept/below", "/logs"] {
        put(&server_fixture.rival, &format!("{ROOT}{path}"), "").await;
    }
    for number in 0..100 {
        put(&server_fixture.rival, &format!("{ROOT}/logs/{number}"), "").await;
    }
    server_fixture
}

fn paths(view: &TreeView) -> Vec<String> {
    view.snapshot().iter().map(|(path, _)| path.to_owned()).collect()
}

#[tokio::test]
async fn a_subtree_of_a_hundred_nodes_that_is_left_out_costs_no_read() {
    let server_fixture = server_with_logs().await;
    let manager = client(&server_fixture).await;
    let read_below = When::ops(READS).path(&format!("{ROOT}/logs/**")).always();
    let below = server_fixture.server.fault(read_below, Fault::DelayReply(Default::default()));
    let of_logs = When::ops(READS).path(&format!("{ROOT}/logs")).always();
    let of_logs = server_fixture.server.fault(of_logs, Fault::DelayReply(Default::default()));
    let scope = TreeScope::default().with_filter(|path| path != "logs");
    let view = TreeView::new_bounded(&manager, ROOT, scope).unwrap();
    soon("the first load", view.ready()).await;
    assert_eq!(paths(&view), ["", "kept", "kept/below"]);
    assert_eq!((below.hits(), of_logs.hits()), (0, 0));

    // The same nodes with their data, and without what is below.
    let scope = TreeScope::default().with_filter(|path| match path {
        "logs" => Follow::Node,
        _ => Follow::Tree,
    });
    let with_logs = TreeView::new_bounded(&manager, ROOT, scope).unwrap();
    soon("the first load", with_logs.ready()).await;
    assert_eq!(paths(&with_logs), ["", "kept", "kept/below", "logs"]);
    assert_eq!((below.hits(), of_logs.hits()), (0, 1), "its data, and no list");
}

#[tokio::test]
async fn events_of_what_is_left_out_cause_no_read() {
    let server_fixture = server_with_logs().await;
    let manager = client(&server_fixture).await;
    let scope = TreeScope::default().with_max_depth(1).with_filter(|path| path != "logs");
    let view = TreeView::new_bounded(&manager, ROOT, scope).unwrap();
    soon("the first load", view.ready()).await;
    let views = newest_session(&server_fixture);
    let events = When::event().session(views).always();
    let events = server_fixture.server.fault(events, Fault::DelayReply(Default::default()));
    let reads = When::ops(READS).session(views).always();
    let reads = server_fixture.server.fault(reads, Fault::DelayReply(Default::default()));
    for path in ["logs/7", "logs/new", "kept/below", "kept/below/deep"] {
        put(&server_fixture.rival, &format!("{ROOT}/{path}"), "changed").await;
    }
    soon("a sync", view.sync()).await;
    assert!(events.hits() >= 4);
    assert_eq!(reads.hits(), 2, "those of the sync");
    assert_eq!(paths(&view), ["", "kept"]);
    put(&server_fixture.rival, &format!("{ROOT}/kept"), "changed").await;
    soon("a sync", view.sync()).await;
    assert_eq!(view.snapshot().get("kept").unwrap().data(), b"changed");
}

#[tokio::test]
async fn a_depth_of_zero_is_the_root_with_a_watch_on_it_alone() {
    let server_fixture = server_with_logs().await;
    let manager = client(&server_fixture).await;
    let view = TreeView::new_bounded(&manager, ROOT, TreeScope::default().with_max_depth(0)).unwrap();
    soon("the first load", view.ready()).await;
    let views = newest_session(&server_fixture);
    let events = server_fixture.server.fault(When::event().session(views).always(), Fault::DropReply);
    put(&server_fixture.rival, &format!("{ROOT}/kept"), "changed").await;
    soon("a sync", view.sync()).await;
    assert_eq!((events.hits(), paths(&view)), (0, vec![String::new()]));
}

#[tokio::test]
async fn a_view_that_polls_reads_only_what_it_follows() {
    let server_fixture = server_with_logs().await;
    let manager = client(&server_fixture).await;
    let unknown = When::op(Op::AddWatch).times(3);
    let unknown = server_fixture.server.fault(unknown, Fault::DropConnectionBefore);
    let read_below = When::ops(READS).path(&format!("{ROOT}/logs/**")).always();
    let below = server_fixture.server.fault(read_below, Fault::DelayReply(Default::default()));
    let scope = TreeScope::default().with_filter(|path| path != "logs");
    let view = TreeView::new_bounded(&manager, ROOT, scope).unwrap();
    soon("the first load", view.ready()).await;
    assert_eq!(unknown.hits(), 3);
    put(&server_fixture.rival, &format!("{ROOT}/kept/new"), "").await;
    soon("a sync", view.sync()).await;
    assert_eq!(paths(&view), ["", "kept", "kept/below", "kept/new"]);
    assert_eq!(below.hits(), 0);
    let exists = |machine: &Machine| machine.tree().node(&format!("{ROOT}/logs/99")).is_some();
    assert!(server_fixture.server.inspect(exists));
}
