//! Registrations and members on a real server: a process that is cut off until its session expires, and a
//! server that is killed.

use std::time::Duration;

use lockkeeper::presence::PresenceState;
use lockkeeper::znodes::Zxid;
use lockkeeper::{ConnectionManager, Group, Registration};
use lockkeeper_tests::{Timing, eventually, left_out};

use crate::support::{behind_proxy, briefly_behind_proxy, builder, connect};

const NODE: &str = "/workers/7";
const GROUP: &str = "/groups/workers";

/// The owner, the creation and the data of the node, as another client sees them.
async fn node_of(other: &ConnectionManager) -> Option<(i64, Zxid, Vec<u8>)> {
    let (data, stat) = other.znodes().read(NODE).await.ok()??;
    Some((stat.ephemeral_owner, stat.czxid, data))
}

async fn members_become(other: &ConnectionManager, expected: &[&str]) {
    let members = Group::new(other, GROUP).unwrap().members().unwrap();
    let seen = async || {
        members.sync().await.ok()?;
        (members.ids() == expected).then_some(())
    };
    eventually(format!("the members {expected:?}"), Timing::settle(), seen).await.unwrap();
}

#[tokio::test]
async fn a_process_that_is_cut_off_is_back_with_its_last_data_in_the_next_session() {
    if left_out() {
        return;
    }
    let (ensemble, proxies, cut) = briefly_behind_proxy().await;
    let other = connect(&ensemble.connect_string()).await;
    let registration = Registration::register(&cut, NODE, "one").unwrap();
    let member = Group::new(&cut, GROUP).unwrap().join("cut", "").unwrap();
    let first = registration.registered_timeout(Timing::settle()).await.unwrap();
    member.registered_timeout(Timing::settle()).await.unwrap();
    registration.set_data("two").await.unwrap();
    let (session, czxid, data) = node_of(&other).await.unwrap();
    assert_eq!((czxid, &data[..]), (first, &b"two"[..]));
    members_become(&other, &["cut"]).await;

    proxies.refuse().await.unwrap();
    // An error of this read would not show that the node is gone.
    let gone = async || other.znodes().read(NODE).await.ok()?.is_none().then_some(());
    eventually("the end of the node", Timing::settle(), gone).await.unwrap();
    members_become(&other, &[]).await;
    proxies.accept().await.unwrap();

    let back = async || {
        let (owner, czxid, data) = node_of(&other).await?;
        assert_eq!(data, b"two", "no reader sees older data");
        assert!(owner != session && czxid > first);
        (registration.state() == PresenceState::Registered { czxid }).then_some(())
    };
    eventually("the node of the next session", Timing::settle(), back).await.unwrap();
    members_become(&other, &["cut"]).await;
    registration.release().await.unwrap();
    member.leave().await.unwrap();
    assert!(other.znodes().read(NODE).await.unwrap().is_none());
    members_become(&other, &[]).await;
}

#[tokio::test]
async fn a_registration_survives_a_killed_server_with_the_same_node() {
    if left_out() {
        return;
    }
    let (ensemble, _proxies, other) = behind_proxy().await;
    let long = builder(&ensemble.connect_string()).session_timeout(Duration::from_secs(60));
    let manager = long.connect().await.unwrap();
    let registration = Registration::register(&manager, NODE, "one").unwrap();
    let czxid = registration.registered_timeout(Timing::settle()).await.unwrap();
    ensemble.server(0).kill().await.unwrap();
    // The data is written as soon as a server is there, also if the call ends before.
    let writing = registration.set_data("two");
    let restart = async { ensemble.server(0).restart().await.unwrap() };
    let (written, ()) = tokio::join!(writing, restart);
    assert!(written.is_ok() || written.unwrap_err().outcome_unknown());
    let is_written = async || {
        let (_, found, data) = node_of(&other).await?;
        (data == b"two").then_some(found)
    };
    let found = eventually("the data", Timing::settle(), is_written).await.unwrap();
    assert_eq!((found, registration.state()), (czxid, PresenceState::Registered { czxid }));
    registration.release().await.unwrap();
}
