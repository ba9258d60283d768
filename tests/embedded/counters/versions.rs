//! Versions that overflow.

use lockkeeper::error::Refusal;
use lockkeeper::value::CompareAndSet;
use lockkeeper::znodes::Version;
use lockkeeper::{Error, SharedCount};
use lockkeeper_testserver::Fault;

use super::{COUNTER, change, client, counter, number_on};
use crate::limit::within;
use crate::server_fixture::ServerFixture;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_counter_continues_when_the_version_of_its_node_overflows_and_when_it_is_any_version() {
    for version in [i32::MAX - 1, -4] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let (here, there) = (counter(&client(&server_fixture).await), counter(&server_fixture.rival));
        here.add(10).await.unwrap();
        assert!(server_fixture.server.set_version(COUNTER, version));
        for sum in [11, 14, 17, 20] {
            assert_eq!(within("an addition", here.add(1)).await.unwrap().unwrap(), sum, "{version}");
            assert_eq!(within("an addition", there.add(2)).await.unwrap().unwrap(), sum + 2, "{version}");
        }
        assert_eq!(number_on(&server_fixture), Some(22));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_version_that_means_any_a_stale_addition_overwrites_nothing() {
    for fault in [None, Some(Fault::DropConnectionAfter), Some(Fault::DropConnectionBefore)] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let (here, there) = (counter(&client(&server_fixture).await), counter(&server_fixture.rival));
        assert_eq!(here.add(10).await.unwrap(), 10);
        assert_eq!(there.get().await.unwrap(), 10);
        assert!(server_fixture.server.set_version(COUNTER, -2));
        // Learns the version −1, which the other one then takes to 0.
        assert_eq!(within("an addition", here.add(1)).await.unwrap().unwrap(), 11);
        let session = server_fixture.sessions_of_actor()[0];
        let stale = server_fixture.server.fault(change().session(session), Fault::HoldRequest);
        let adding = tokio::spawn({
            let here = here.clone();
            async move { here.add(1).await }
        });
        within("the addition", stale.hit()).await.unwrap();
        let lost = fault.map(|fault| server_fixture.server.fault(change().nth(1), fault));
        assert_eq!(within("an addition", there.add(100)).await.unwrap().unwrap(), 111, "{fault:?}");
        assert!(lost.is_none_or(|lost| lost.hits() == 1));
        stale.release();
        assert_eq!(within("the addition", adding).await.unwrap().unwrap().unwrap(), 112, "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shared_value_is_compared_by_its_write_and_not_by_a_version_that_comes_again() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let count = SharedCount::new(&client(&server_fixture).await, COUNTER, 0).unwrap();
    let first = count.set(1).await.unwrap();
    let second = count.set(2).await.unwrap();
    // As after 2³² writes.
    let version =
        server_fixture.server.inspect(|machine| machine.tree().node(COUNTER).unwrap().stat().version);
    assert!(server_fixture.server.set_version(COUNTER, version.wrapping_sub(1)));
    assert!(!count.compare_and_set(first, 5).await.unwrap().is_set());
    assert!(matches!(count.compare_and_set(second, 6).await.unwrap(), CompareAndSet::Set(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_has_overflowed_is_a_condition_as_any_other() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let znodes = client(&server_fixture).await.znodes();
    znodes.create("/node", "a", lockkeeper::znodes::CreateMode::Persistent).await.unwrap();
    assert!(server_fixture.server.set_version("/node", -7));
    let refused = znodes.write("/node", "b", -8).await.unwrap_err();
    assert!(matches!(refused, Error::Refused { refusal: Refusal::BadVersion, .. }), "{refused}");
    assert_eq!(znodes.write("/node", "b", -7).await.unwrap().version, -6);
    assert_eq!(znodes.write("/node", "c", Version::Any).await.unwrap().version, -5);
}
