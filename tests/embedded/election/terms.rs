//! Terms of leadership, one after the other.

use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use tokio::sync::Notify;

use super::{candidate, client, election, leading};
use crate::limit::within;
use crate::server_fixture::ServerFixture;

/// Notifies when it is dropped.
struct OnDrop(Arc<Notify>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// Work that says when it begins and when it is dropped, and does not end by itself.
fn endless(begun: &Notify, dropped: &Arc<Notify>) -> impl Future<Output = ControlFlow<()>> + use<> {
    let on_drop = OnDrop(Arc::clone(dropped));
    begun.notify_one();
    async move {
        std::future::pending::<()>().await;
        drop(on_drop);
        ControlFlow::Continue(())
    }
}

#[tokio::test]
async fn a_term_ends_with_its_session_and_another_term_follows() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = client(&server_fixture).await;
    let session = server_fixture.sessions_of_actor()[0];
    let (begun, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let leading = tokio::spawn({
        let (election, begun, dropped) =
            (election(&actor, "actor"), Arc::clone(&begun), Arc::clone(&dropped));
        async move {
            let mut tokens = Vec::new();
            let led = election.lead(|leadership| {
                tokens.push(leadership.fencing_token());
                let (is_second, begun, on_drop) =
                    (tokens.len() == 2, Arc::clone(&begun), OnDrop(Arc::clone(&dropped)));
                async move {
                    if is_second {
                        return ControlFlow::Break("done");
                    }
                    begun.notify_one();
                    std::future::pending::<()>().await;
                    drop(on_drop);
                    ControlFlow::Continue(())
                }
            });
            let led = led.await;
            (led, tokens)
        }
    });
    within("the first term", begun.notified()).await.unwrap();
    assert!(server_fixture.server.expire(session));
    within("the end of the work", dropped.notified()).await.unwrap();
    let (led, tokens) = within("the second term", leading).await.unwrap().unwrap();
    assert_eq!(led.unwrap(), "done");
    assert!(tokens.len() == 2 && tokens[0] < tokens[1], "{tokens:?}");
    server_fixture.queue_length_becomes(0).await.unwrap();
}

#[tokio::test]
async fn a_participant_whose_work_continues_queues_behind_the_others() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let there = election(&client(&server_fixture).await, "there");
    let here = election(&server_fixture.rival, "here");
    let mut terms = 0;
    let led = here.lead(|leadership| {
        terms += 1;
        let (term, there, server_fixture) = (terms, &there, &server_fixture);
        async move {
            assert!(leadership.is_valid());
            if term == 2 {
                return ControlFlow::Break(term);
            }
            let campaign = candidate(server_fixture, there, 2).await;
            // Leads as soon as this term ends, and resigns.
            tokio::spawn(async move { leading(campaign).await.resign().await.unwrap() });
            ControlFlow::Continue(())
        }
    });
    assert_eq!(within("both terms", led).await.unwrap().unwrap(), 2);
    server_fixture.queue_length_becomes(0).await.unwrap();
}

#[tokio::test]
async fn a_panic_of_the_work_is_passed_on_and_resigns() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let here = election(&server_fixture.rival, "here");
    let led = here.lead(async |_| -> ControlFlow<()> { panic!("a fault of the work") });
    let panic = AssertUnwindSafe(led).catch_unwind().await.unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"a fault of the work"));
    server_fixture.queue_length_becomes(0).await.unwrap();
    here.campaign().await.unwrap().resign().await.unwrap();
}

#[tokio::test]
async fn a_shutdown_ends_the_work_and_the_campaigns() {
    for is_leading in [true, false] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let ahead = match is_leading {
            true => None,
            false => Some(election(&client(&server_fixture).await, "ahead").campaign().await.unwrap()),
        };
        let actor = client(&server_fixture).await;
        let (begun, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let led = tokio::spawn({
            let (election, begun, dropped) =
                (election(&actor, "actor"), Arc::clone(&begun), Arc::clone(&dropped));
            async move { election.lead(|_| endless(&begun, &dropped)).await }
        });
        server_fixture.queue_length_becomes(if is_leading { 1 } else { 2 }).await.unwrap();
        if is_leading {
            within("the work", begun.notified()).await.unwrap();
        }
        actor.shutdown().await.unwrap();
        let led = within("the end", led).await.unwrap().unwrap();
        assert!(led.unwrap_err().is_closed());
        if is_leading {
            within("the end of the work", dropped.notified()).await.unwrap();
        }
        drop(ahead);
    }
}

#[tokio::test]
async fn dropping_the_terms_drops_the_work_and_resigns() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let here = election(&server_fixture.rival, "here");
    let (begun, dropped) = (Notify::new(), Arc::new(Notify::new()));
    tokio::select! {
        biased;
        _ = here.lead(|_| endless(&begun, &dropped)) => panic!("the work does not end"),
        () = begun.notified() => {}
    }
    within("the end of the work", dropped.notified()).await.unwrap();
    server_fixture.queue_length_becomes(0).await.unwrap();
}

#[tokio::test]
async fn a_clone_of_the_leadership_that_outlives_its_term_delays_the_next_term() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let here = election(&server_fixture.rival, "here");
    let kept = Arc::new(parking_lot::Mutex::new(None));
    let led = tokio::spawn({
        let (here, kept) = (here.clone(), Arc::clone(&kept));
        async move {
            let mut terms = 0;
            here.lead(|leadership| {
                terms += 1;
                let flow = if terms == 1 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
                if terms == 1 {
                    *kept.lock() = Some(leadership);
                }
                std::future::ready(flow)
            })
            .await
        }
    });
    server_fixture.queue_length_becomes(2).await.unwrap();
    assert!(kept.lock().take().unwrap().is_valid() && !led.is_finished());
    within("the second term", led).await.unwrap().unwrap().unwrap();
    server_fixture.queue_length_becomes(0).await.unwrap();
}
