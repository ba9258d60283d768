//! The requests of a view that are in flight over one connection.

use futures::future::BoxFuture;
use futures::stream::FuturesOrdered;
use futures::{FutureExt, StreamExt};
use tokio::sync::oneshot;

use super::decide::{Answer, Mirror, ReadRequest};
use crate::error::Refusal;
use crate::session::{ReadRoom, ReadWindow, Session};
use crate::time::deadline::Deadline;
use crate::wire::{Data, Reply, Stat, Wire, WireError};
use crate::znode::path::ZnodePath;

/// Is notified when everything that was committed before its request is published. Dropped if it will not be.
pub(super) type Sync = oneshot::Sender<()>;

/// The requests in flight at once.
const REQUESTS_MAX: usize = 8;
/// The nodes that one request reads.
const BATCH_MAX: usize = 64;

/// What the answer to a request says.
pub(super) enum ReadReply {
    Answers(Vec<(ReadRequest, Answer)>),
    /// The server has caught up with everything that was committed before the sync was requested. This is the
    /// root since.
    Synced(Vec<Sync>, Option<Stat>),
    /// The root may not be read.
    RootRefused(Refusal),
    Failed(WireError),
}

/// The requests in flight, and their answers in the order of the requests.
pub(super) struct ReadsInFlight<'a> {
    session: &'a Session,
    root: &'a ZnodePath,
    replies: FuturesOrdered<BoxFuture<'static, ReadReply>>,
    window: ReadWindow,
    /// Room that was waited for.
    room: Option<ReadRoom>,
    /// A read of data waits for room.
    waits_for_room: bool,
}

impl<'a> ReadsInFlight<'a> {
    pub(super) fn new(session: &'a Session, root: &'a ZnodePath) -> Self {
        let window = session.read_window().for_other_nodes();
        Self { session, root, replies: FuturesOrdered::new(), window, room: None, waits_for_room: false }
    }

    /// Whether no request is in flight, and none waits for room.
    pub(super) fn is_empty(&self) -> bool {
        self.replies.is_empty() && !self.waits_for_room
    }

    /// The next answer. `None` if no request is in flight.
    pub(super) async fn next(&mut self) -> Option<ReadReply> {
        self.replies.next().await
    }

    /// Sends what the mirror needs, as far as there is room.
    pub(super) fn send<T>(&mut self, mirror: &mut Mirror<T>) {
        self.waits_for_room = false;
        while self.replies.len() < REQUESTS_MAX {
            let room = self.room.take().or_else(|| self.window.try_reserve(BATCH_MAX));
            let is_data = |next: &ReadRequest| matches!(next, ReadRequest::Data(_));
            let first = mirror.next_request(|next| {
                self.waits_for_room = room.is_none() && is_data(next);
                !self.waits_for_room
            });
            let Some(first) = first else { return };
            match first {
                ReadRequest::Data(path) => {
                    let reads = room.as_ref().map_or(1, ReadRoom::reads);
                    let mut requests = vec![ReadRequest::Data(path)];
                    while requests.len() < reads {
                        let Some(next) = mirror.next_request(is_data) else { break };
                        requests.push(next);
                    }
                    let room = room.map(|mut room| {
                        room.shrink_to(requests.len());
                        room
                    });
                    self.read_data(requests, room);
                }
                ReadRequest::Stat(ref path) => {
                    let whole = self.whole(path);
                    self.push(first, |wire| wire.exists(&whole), stat_answer);
                }
                ReadRequest::Names(ref path) => {
                    let whole = self.whole(path);
                    let answer = |(names, stat)| Answer::Names(names, stat);
                    self.push(first, |wire| wire.children_stat(&whole), answer);
                }
            }
        }
    }

    /// Resolves when there is room for a read that waits for it.
    pub(super) fn room(&self) -> impl Future<Output = ReadRoom> + use<> {
        let window = self.waits_for_room.then(|| self.window.clone());
        async move {
            match window {
                Some(window) => window.reserve(BATCH_MAX).await,
                None => std::future::pending().await,
            }
        }
    }

    /// The room that was waited for.
    pub(super) fn set_room(&mut self, room: ReadRoom) {
        self.room = Some(room);
    }

    /// Requests that the server catches up with the quorum, and reads the root behind that: the answer comes
    /// after the events of everything that the server caught up with.
    pub(super) fn sync(&mut self, syncs: Vec<Sync>) {
        let session = self.session.clone();
        let mut sync = session.quorum_sync();
        let mut read = session.read(|wire| wire.exists(self.root.as_str()));
        let reply = async move {
            let synced = async {
                session.await_reply(&mut sync, Deadline::never()).await?;
                session.await_reply(&mut read, Deadline::never()).await
            };
            match synced.await {
                Ok(stat) => ReadReply::Synced(syncs, stat),
                Err(WireError::Refused(refusal @ Refusal::NoAuth)) => ReadReply::RootRefused(refusal),
                Err(error) => ReadReply::Failed(error),
            }
        };
        self.replies.push_back(reply.boxed());
    }

    fn read_data(&mut self, mut requests: Vec<ReadRequest>, room: Option<ReadRoom>) {
        let learn = |sizes: &[usize]| room.into_iter().for_each(|room| room.answered(sizes.iter().copied()));
        if let [ReadRequest::Data(path)] = requests.as_slice() {
            let (whole, request) = (self.whole(path), requests.remove(0));
            let answer = |(data, stat): Data| {
                learn(&[data.len()]);
                data_answer((data, stat))
            };
            return self.push(request, |wire| wire.data(&whole), answer);
        }
        let paths: Vec<String> = requests.iter().map(|request| self.whole(request.path())).collect();
        let mut reply = self.session.read(|wire| wire.data_of_all(&paths));
        let session = self.session.clone();
        let reply = async move {
            let results = match session.await_reply(&mut reply, Deadline::never()).await {
                Ok(results) if results.len() == requests.len() => results,
                Ok(_) => {
                    return ReadReply::Failed(WireError::Broken("not as many answers as reads".to_owned()));
                }
                Err(error) => return ReadReply::Failed(error),
            };
            let sizes: Vec<usize> = results.iter().flatten().map(|(data, _)| data.len()).collect();
            learn(&sizes);
            let mut answers = Vec::with_capacity(requests.len());
            for (request, result) in requests.into_iter().zip(results) {
                match answer(&request, result.map_err(WireError::Refused), data_answer) {
                    Ok(answer) => answers.push((request, answer)),
                    Err(stop) => return stop,
                }
            }
            ReadReply::Answers(answers)
        };
        self.replies.push_back(reply.boxed());
    }

    fn push<A: Send + 'static>(
        &mut self,
        request: ReadRequest,
        send: impl FnOnce(&dyn Wire) -> Reply<A>,
        convert: impl FnOnce(A) -> Answer + Send + 'static,
    ) {
        let mut reply = self.session.read(send);
        let session = self.session.clone();
        let reply = async move {
            let result = session.await_reply(&mut reply, Deadline::never()).await;
            match answer(&request, result, convert) {
                Ok(answer) => ReadReply::Answers(vec![(request, answer)]),
                Err(stop) => stop,
            }
        };
        self.replies.push_back(reply.boxed());
    }

    /// The path on the server.
    fn whole(&self, path: &str) -> String {
        if path.is_empty() { self.root.to_string() } else { self.root.listed_child(path) }
    }
}

/// The answer to a read; `Err` if the connection cannot be followed any more.
fn answer<A>(
    request: &ReadRequest,
    result: Result<A, WireError>,
    convert: impl FnOnce(A) -> Answer,
) -> Result<Answer, ReadReply> {
    match result {
        Ok(found) => Ok(convert(found)),
        Err(WireError::Refused(Refusal::NoNode)) => Ok(Answer::Missing),
        Err(WireError::Refused(Refusal::NoAuth)) if request.path().is_empty() => {
            Err(ReadReply::RootRefused(Refusal::NoAuth))
        }
        Err(WireError::Refused(Refusal::NoAuth)) => Ok(Answer::Missing),
        Err(error) => Err(ReadReply::Failed(error)),
    }
}

fn data_answer((data, stat): Data) -> Answer {
    Answer::Data(data, stat)
}

fn stat_answer(stat: Option<Stat>) -> Answer {
    stat.map_or(Answer::Missing, Answer::Stat)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use lockkeeper_testserver::TestServer;

    use super::*;
    use crate::manager::ConnectionManager;
    use crate::view::bounds::ViewBounds;

    /// The other reads of the session have the whole window.
    #[tokio::test]
    async fn reads_of_data_without_room_wait_and_are_one_request_then() {
        let server = TestServer::start().await.unwrap();
        let builder = ConnectionManager::builder(&server.connect_string());
        let manager = builder.session_timeout(Duration::from_secs(30)).connect().await.unwrap();
        let session = manager.present_session().unwrap();
        let mut others: Vec<ReadRoom> = Vec::new();
        others.extend(std::iter::from_fn(|| session.read_window().try_reserve(usize::MAX)));
        let decode = Arc::new(|_: &str, data: &[u8], _: &Stat| Ok(data.to_vec()));
        let mut mirror: Mirror<Vec<u8>> = Mirror::new(None, ViewBounds::default(), decode);
        // As many as one request reads before the sizes of some are known.
        for node in ["one", "other"] {
            mirror.hint(node);
        }
        let root = "/view".parse().unwrap();
        let mut reads = ReadsInFlight::new(&session, &root);
        reads.send(&mut mirror);
        assert_eq!(
            (reads.replies.len(), reads.is_empty(), reads.room().now_or_never().is_some()),
            (0, false, false)
        );
        drop(others);
        let room = reads.room().await;
        reads.set_room(room);
        reads.send(&mut mirror);
        assert!(!reads.is_empty(), "a request is in flight");
        let answers = match reads.next().await {
            Some(ReadReply::Answers(answers)) => answers.len(),
            _ => 0,
        };
        assert_eq!((answers, reads.is_empty()), (2, true));
    }

    #[tokio::test]
    async fn a_list_waits_for_no_room() {
        let server = TestServer::start().await.unwrap();
        let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
        let session = manager.present_session().unwrap();
        let mut others: Vec<ReadRoom> = Vec::new();
        others.extend(std::iter::from_fn(|| session.read_window().try_reserve(usize::MAX)));
        let decode = Arc::new(|_: &str, data: &[u8], _: &Stat| Ok(data.to_vec()));
        let mut mirror: Mirror<Vec<u8>> = Mirror::new(None, ViewBounds::default(), decode);
        mirror.hint("");
        let root = "/".parse().unwrap();
        let (data, stat) = session.read(|wire| wire.data("/")).await.unwrap();
        let request = mirror.next_request(|_| true).unwrap();
        mirror.answer(request, Answer::Data(data, stat));
        let mut reads = ReadsInFlight::new(&session, &root);
        reads.send(&mut mirror);
        assert_eq!((reads.replies.len(), reads.waits_for_room), (1, false));
        assert!(matches!(reads.next().await, Some(ReadReply::Answers(answers)) if answers.len() == 1));
    }
}
