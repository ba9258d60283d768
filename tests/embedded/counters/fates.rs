//! Each call has its own fate, also if several are applied together.

use lockkeeper::error::{Refusal, SharedValueError};
use lockkeeper::value::{CompareAndSet, SharedData};
use lockkeeper::{Error, SharedValue};
use lockkeeper_testserver::{ErrorCode, Fault};

use super::{change, client, counter};
use crate::limit::within;
use crate::server_fixture::ServerFixture;

#[tokio::test]
async fn a_read_beside_an_addition_that_is_refused_is_answered() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let counter = counter(&client(&server_fixture).await);
    counter.add(10).await.unwrap();
    let _refused = server_fixture.server.fault(change().always(), Fault::Refuse(ErrorCode::NoAuth));
    // Nothing else runs in this thread: the four are in one batch.
    let all = async { tokio::join!(counter.get(), counter.add(1), counter.get(), counter.set(3)) };
    let (first, added, second, set) = within("the calls", all).await.unwrap();
    assert_eq!((first.unwrap(), second.unwrap()), (10, 10));
    for refused in [added.unwrap_err(), set.unwrap_err()] {
        assert!(matches!(refused, Error::Refused { refusal: Refusal::NoAuth, .. }), "{refused}");
    }
}

/// Its decoder panics at the text "panic".
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fragile(String);

impl SharedData for Fragile {
    fn encode(&self) -> Vec<u8> {
        self.0.clone().into_bytes()
    }

    fn decode(data: &[u8]) -> Result<Option<Self>, Box<dyn std::error::Error + Send + Sync>> {
        assert_ne!(data, b"panic", "a decoder that panics");
        Ok(Some(Self(String::from_utf8(data.to_vec())?)))
    }
}

#[tokio::test]
async fn a_decoder_that_panics_fails_its_own_call_and_no_other() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let value = SharedValue::new(&manager, "/values/fragile", Fragile("seed".to_owned())).unwrap();
    let panicking = value.set(Fragile("panic".to_owned())).await.unwrap();
    // The reads are in one batch, and the write waits for its turn behind them.
    let all = async { tokio::join!(value.get(), value.get(), value.set(Fragile("sound".to_owned()))) };
    let (first, second, set) = within("the calls", all).await.unwrap();
    for failed in [first.unwrap_err(), second.unwrap_err()] {
        let Some(SharedValueError::Undecodable { cause, .. }) = failed.recipe() else { panic!("{failed}") };
        assert_eq!(cause, "the decoder panicked");
    }
    let set = set.unwrap();
    assert!(set > panicking);
    assert_eq!(within("a read", value.get()).await.unwrap().unwrap().value.0, "sound");
    let panicking = value.set(Fragile("panic".to_owned())).await.unwrap();
    let differs = within("a condition", value.compare_and_set(set, Fragile("x".to_owned()))).await.unwrap();
    assert!(matches!(differs.unwrap_err().recipe(), Some(SharedValueError::Undecodable { .. })));
    let changed =
        within("a change", value.compare_and_set(panicking, Fragile("y".to_owned()))).await.unwrap();
    assert!(matches!(changed.unwrap(), CompareAndSet::Set(_)));
}
