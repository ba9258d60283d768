//! Guards and tickets have names that a program can write: in its structs, and in its functions.

use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::locks::{
    HoldSet, MutexTicket, QueueTicket, Queued, ReadTicket, ReentrantTicket, SemaphoreTicket, SingleHold,
    WriteTicket,
};
use lockkeeper::partition::AssignedItem;
use lockkeeper::schedule::Slot;
use lockkeeper::{
    Admission, Election, Error, FencingToken, Guard, Inside, Leadership, Lease, MultiLockGuard, Mutex,
    MutexGuard, ReadGuard, ReentrantMutexGuard, RwLock, Semaphore, WriteGuard, blocking,
};

use crate::limit::within;
use crate::server_fixture::ServerFixture;

/// A guard of each recipe.
#[derive(Debug, Default)]
struct Guards {
    mutex: Option<MutexGuard>,
    reentrant: Option<ReentrantMutexGuard>,
    read: Option<ReadGuard>,
    write: Option<WriteGuard>,
    permits: Option<Lease>,
    leadership: Option<Leadership>,
    slot: Option<Slot>,
    item: Option<AssignedItem>,
    inside: Option<Inside>,
    admission: Option<Admission>,
    any: Option<MultiLockGuard>,
    threads: Option<OfThreads>,
}

/// The guards of the blocking face.
#[derive(Debug)]
struct OfThreads {
    mutex: blocking::MutexGuard,
    reentrant: blocking::ReentrantMutexGuard,
    read: blocking::ReadGuard,
    write: blocking::WriteGuard,
    permits: blocking::Lease,
    leadership: blocking::Leadership,
    any: blocking::MultiLockGuard,
}

/// A ticket of each lock.
#[derive(Debug, Default)]
struct Waiting {
    mutex: Option<MutexTicket>,
    reentrant: Option<ReentrantTicket>,
    read: Option<ReadTicket>,
    write: Option<WriteTicket>,
    permits: Option<SemaphoreTicket>,
}

impl Guards {
    /// How many guards there are. All of them are valid.
    fn count_valid(&self) -> usize {
        let Self { mutex, reentrant, read, write, permits, leadership, slot, item, inside, .. } = self;
        let one = [valid(mutex), valid(reentrant), valid(read), valid(write), valid(permits)];
        let other = [valid(leadership), valid(slot), valid(item), valid(inside), valid(&self.any)];
        let admitted = usize::from(self.admission.is_some());
        let of_threads = self.threads.as_ref().map_or(0, OfThreads::count_valid);
        one.iter().chain(&other).sum::<usize>() + admitted + of_threads
    }
}

impl OfThreads {
    fn count_valid(&self) -> usize {
        let Self { mutex, reentrant, read, write, permits, leadership, any } = self;
        let all = [is_valid(mutex), is_valid(reentrant), is_valid(read), is_valid(write)];
        all.into_iter().chain([is_valid(permits), is_valid(leadership), is_valid(any)]).map(usize::from).sum()
    }
}

impl Waiting {
    fn count(&self) -> usize {
        let Self { mutex, reentrant, read, write, permits } = self;
        let all = [is_there(mutex), is_there(reentrant), is_there(read), is_there(write), is_there(permits)];
        all.into_iter().filter(|is_there| *is_there).count()
    }
}

fn valid<H: HoldSet>(guard: &Option<Guard<H>>) -> usize {
    guard.as_ref().map_or(0, |guard| check(guard).map(|()| 1).unwrap())
}

fn is_valid<H: HoldSet, B>(guard: &blocking::Guard<H, B>) -> bool {
    guard.is_valid()
}

fn is_there<Q: Queued>(ticket: &Option<QueueTicket<Q>>) -> bool {
    ticket.is_some()
}

fn check<H: HoldSet>(guard: &Guard<H>) -> Result<(), Error> {
    Ok(guard.check()?)
}

fn token<H: SingleHold>(guard: &Guard<H>) -> FencingToken {
    guard.fencing_token()
}

async fn granted<Q: Queued>(ticket: &mut QueueTicket<Q>) -> Q::Guard {
    within("a grant", ticket.wait()).await.unwrap().unwrap()
}

async fn released<H: SingleHold>(guard: Guard<H>) {
    guard.release().await.unwrap();
}

#[tokio::test]
async fn one_function_takes_the_guards_and_the_tickets_of_all_recipes() {
    let fixture = ServerFixture::start().await.unwrap();
    let actor = fixture.actor().await.unwrap();
    let mutex = Mutex::new(&actor, "/named/mutex").unwrap();
    let lock = RwLock::new(&actor, "/named/rw").unwrap();
    let semaphore = Semaphore::new(&actor, "/named/semaphore", 2).unwrap();
    let election = Election::new(&actor, "/named/election", "one").unwrap();

    let mut waiting = Waiting { mutex: Some(mutex.enqueue().await.unwrap()), ..Waiting::default() };
    waiting.permits = Some(semaphore.enqueue().await.unwrap());
    let mut held = Guards { read: Some(lock.read().await.unwrap()), ..Guards::default() };
    held.mutex = Some(granted(waiting.mutex.as_mut().unwrap()).await);
    held.permits = Some(granted(waiting.permits.as_mut().unwrap()).await);
    held.leadership = Some(election.campaign().await.unwrap());
    let any: &dyn ZooKeeperLock = &Mutex::new(&actor, "/named/any").unwrap();
    held.any = Some(any.acquire().await.unwrap());
    assert_eq!((held.count_valid(), waiting.count()), (5, 2));

    let (mutex, leadership) = (held.mutex.unwrap(), held.leadership.unwrap());
    assert!(token(&mutex) < token(&leadership));
    released(mutex).await;
    released(leadership).await;
    released(held.read.unwrap()).await;
    released(held.permits.unwrap()).await;
}
