//! Which instance a client gets.

use std::collections::BTreeSet;
use std::time::Duration;

use lockkeeper::discovery::{Balancer, FailurePolicy, InstanceState, Strategy};

use super::{client, discovery, instance, register, synced};
use crate::limit::within;
use crate::server_fixture::ServerFixture;

fn chosen(balancer: &Balancer, count: usize) -> Vec<String> {
    (0..count).filter_map(|_| balancer.choose()).map(|instance| instance.id().to_owned()).collect()
}

fn each_of(balancer: &Balancer) -> BTreeSet<String> {
    chosen(balancer, 300).into_iter().collect()
}

fn set<const N: usize>(ids: [&str; N]) -> BTreeSet<String> {
    ids.map(str::to_owned).into()
}

#[tokio::test]
async fn every_enabled_instance_is_chosen_and_no_other() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let discovery = discovery(&client(&server_fixture).await);
    let round_robin = discovery.balancer("web", Strategy::RoundRobin).unwrap();
    let random = discovery.balancer("web", Strategy::Random).unwrap();
    assert!(round_robin.choose().is_none());
    let mut registrations = Vec::new();
    for id in ["a", "b", "c"] {
        registrations.push(register(&discovery, id).await);
    }
    synced(round_robin.view()).await;
    synced(random.view()).await;
    let three = chosen(&round_robin, 3).into_iter().collect::<BTreeSet<_>>();
    assert_eq!(three, set(["a", "b", "c"]));
    assert_eq!(each_of(&random), set(["a", "b", "c"]));

    registrations[0].set_state(InstanceState::Draining).await.unwrap();
    registrations.pop().unwrap().release().await.unwrap();
    for balancer in [&round_robin, &random] {
        synced(balancer.view()).await;
        assert_eq!(each_of(balancer), set(["b"]));
    }
    registrations[0].set_state(InstanceState::Enabled).await.unwrap();
    synced(random.view()).await;
    assert_eq!(each_of(&random), set(["a", "b"]));
}

#[tokio::test]
async fn a_sticky_client_keeps_its_instance_until_it_drains_or_is_removed() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let discovery = discovery(&client(&server_fixture).await);
    let (one, other) = (register(&discovery, "a").await, register(&discovery, "b").await);
    let balancer = discovery.balancer("web", Strategy::Sticky).unwrap();
    synced(balancer.view()).await;
    let first = each_of(&balancer);
    assert_eq!(first.len(), 1);
    let (mine, free) = if first == set(["a"]) { (one, other) } else { (other, one) };
    mine.set_state(InstanceState::Draining).await.unwrap();
    synced(balancer.view()).await;
    assert_eq!(each_of(&balancer), set([free.id()]));
    mine.set_state(InstanceState::Enabled).await.unwrap();
    synced(balancer.view()).await;
    assert_eq!(each_of(&balancer), set([free.id()]));
    free.release().await.unwrap();
    synced(balancer.view()).await;
    assert_eq!(each_of(&balancer), set([mine.id()]));
}

#[tokio::test]
async fn an_instance_that_fails_is_not_chosen_for_a_while_unless_all_fail() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let discovery = discovery(&client(&server_fixture).await);
    let (one, _other) = (register(&discovery, "a").await, register(&discovery, "b").await);
    let hour = FailurePolicy::new(2, Duration::from_secs(3_600));
    let balancer = discovery.balancer_with("web", Strategy::RoundRobin, hour).unwrap();
    synced(balancer.view()).await;
    let report = |id: &str| balancer.report_failure(&instance(id));
    report("a");
    report("nobody");
    assert_eq!(each_of(&balancer), set(["a", "b"]));
    report("a");
    assert_eq!(each_of(&balancer), set(["b"]));
    report("b");
    report("b");
    assert_eq!(each_of(&balancer), set(["a", "b"]));

    // One that registers anew has not failed.
    one.release().await.unwrap();
    let _again = register(&discovery, "a").await;
    synced(balancer.view()).await;
    assert_eq!(each_of(&balancer), set(["a"]));

    let at_once = FailurePolicy::new(1, Duration::ZERO);
    let forgetful = discovery.balancer_with("web", Strategy::Random, at_once).unwrap();
    synced(forgetful.view()).await;
    forgetful.report_failure(&instance("a"));
    assert_eq!(each_of(&forgetful), set(["a", "b"]));
}

#[tokio::test]
async fn a_client_waits_for_an_instance_and_says_what_is_missing() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let discovery = discovery(&manager);
    let balancer = discovery.balancer("web", Strategy::Random).unwrap();
    within("the view", balancer.view().ready()).await.unwrap().unwrap();
    let error = balancer.choose_timeout(Duration::ZERO).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert!(error.to_string().contains("waiting for an enabled instance, in a view that is live"), "{error}");
    assert!(error.to_string().contains("/services/web"), "{error}");
    let drained = discovery.register(instance("a").with_state(InstanceState::Draining)).unwrap();
    let waiting = balancer.choose_timeout(Duration::from_secs(60));
    let enabling = async {
        drained.registered().await.unwrap();
        synced(balancer.view()).await;
        drained.set_state(InstanceState::Enabled).await.unwrap();
    };
    let (instance, ()) = within("the choice", async { tokio::join!(waiting, enabling) }).await.unwrap();
    assert_eq!(instance.unwrap().id(), "a");
    drained.set_state(InstanceState::Draining).await.unwrap();
    synced(balancer.view()).await;
    manager.shutdown().await.unwrap();
    let closed = within("the end", balancer.choose_timeout(Duration::from_secs(60))).await.unwrap();
    assert!(closed.unwrap_err().is_closed());
}

#[tokio::test]
async fn a_client_without_a_connection_chooses_from_what_it_knows() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let discovery = discovery(&client(&server_fixture).await);
    let _one = register(&discovery, "a").await;
    let balancer = discovery.balancer("web", Strategy::RoundRobin).unwrap();
    synced(balancer.view()).await;
    let mut changes = balancer.view().changes();
    server_fixture.server.stop().await;
    let stale = async {
        while balancer.view().state() != lockkeeper::view::ViewState::Stale {
            changes.next().await.unwrap();
        }
    };
    within("the loss of the connection", stale).await.unwrap();
    assert_eq!(each_of(&balancer), set(["a"]));
    server_fixture.server.restart().await.unwrap();
    within("the view", balancer.view().ready()).await.unwrap().unwrap();
    assert_eq!(each_of(&balancer), set(["a"]));
}
