//! What the servers refuse, and nodes that other clients write.

use std::time::Duration;

use lockkeeper::Error;
use lockkeeper::error::{ErrorKind, Refusal};
use lockkeeper::znodes::{CreateMode, Version};
use lockkeeper_testserver::{ErrorCode, Fault, Op, When};

use super::{COUNTER, change, client, counter, number_on, writers};
use crate::limit::within;
use crate::server_fixture::{ServerFixture, children};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_of_the_writer_node_is_reported() {
    for (is_first, writer_nodes) in
        [(true, "/counters/visits-creation-*"), (false, "/counters/visits/writer-*")]
    {
        let server_fixture = ServerFixture::start().await.unwrap();
        let counter = counter(&client(&server_fixture).await);
        if !is_first {
            counter.set(10).await.unwrap();
        }
        let create = When::op(Op::Create2).path(writer_nodes).always();
        let refused = server_fixture.server.fault(create, Fault::Refuse(ErrorCode::NoAuth));
        let error = within("the addition", counter.increment()).await.unwrap().unwrap_err();
        assert!(matches!(error, Error::Refused { refusal: Refusal::NoAuth, .. }), "{error}");
        assert_eq!((refused.hits(), number_on(&server_fixture)), (1, (!is_first).then_some(10)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_writer_node_of_a_creation_is_deleted_with_it_and_that_of_a_refused_addition_stays() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let counter = counter(&client(&server_fixture).await);
    let needless = When::op(Op::Delete).path("/counters/visits/writer-*").always();
    let needless = server_fixture.server.fault(needless, Fault::DelayReply(Duration::ZERO));
    counter.increment().await.unwrap();
    let alone = server_fixture.server.wait_until(|machine| children(machine, "/counters") == ["visits"]);
    within("the counter alone", alone).await.unwrap();
    assert_eq!(needless.hits(), 0, "without the counter there is no writer node below it");
    counter.increment().await.unwrap();
    let writer = server_fixture.server.inspect(writers);
    assert_eq!(writer.len(), 1);
    let _refused = server_fixture.server.fault(change(), Fault::Refuse(ErrorCode::NoAuth));
    within("the addition", counter.increment()).await.unwrap().unwrap_err();
    assert_eq!(within("the next one", counter.increment()).await.unwrap().unwrap(), 3);
    assert_eq!(server_fixture.server.inspect(writers), writer);
}

/// The attempt may have been applied before that: its writer node does not say so any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_addition_whose_writer_node_another_client_wrote_is_of_unknown_outcome() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let znodes = server_fixture.rival.znodes();
    znodes.create("/counters", "", CreateMode::Persistent).await.unwrap();
    let (counter, session) = (counter(&manager), server_fixture.sessions_of_actor()[0]);
    let lost = server_fixture.server.fault(change().session(session), Fault::DropConnectionBefore);
    let back = server_fixture.server.fault(When::connect().session(session), Fault::HoldRequest);
    let adding = tokio::spawn(async move { counter.add(7).await });
    within("the fault", lost.hit()).await.unwrap();
    within("the reconnect", back.hit()).await.unwrap();
    let writer = server_fixture.server.inspect(|machine| children(machine, "/counters").remove(0));
    znodes.write(format!("/counters/{writer}"), "foreign", Version::Any).await.unwrap();
    back.release();
    let unknown = within("the addition", adding).await.unwrap().unwrap().unwrap_err();
    assert_eq!((unknown.kind(), number_on(&server_fixture)), (ErrorKind::Unknown, None), "{unknown}");
    assert_eq!(unknown.to_string().matches(COUNTER).count(), 1, "the cause is named once: {unknown}");
}
