//! A number that many processes count.
//!
//! # Protocol
//!
//! The node has the number and nothing else: 8 bytes big-endian as Curator's `DistributedAtomicLong`, or 4 as
//! its `DistributedAtomicInteger` and kazoo's `Counter(support_curator=True)`. A missing node and one without
//! data are zero.
//!
//! A change is a transaction: it writes the number on condition of the node's version, and the writer node of
//! this process, an ephemeral child of the counter. So a change is applied once, however often it is sent:
//! see [`Register`](lockkeeper_core::Register).
//!
//! Sources: Apache Curator's `DistributedAtomicValue`, CURATOR-584 (a repeated write after a lost answer),
//! kazoo's `recipe/counter.py`.

mod error;
#[cfg(any(test, lockkeeper_fuzzing))]
pub(crate) mod fuzzing;
mod number;

use std::fmt::{self, Debug, Formatter};
use std::marker::PhantomData;

use lockkeeper_core::{Change, ConnectionManager, Error, IntoPath, Register, RegisterInfo, ZnodePath};

pub use self::error::CounterError;
pub use self::number::CounterNumber;
use self::number::number_in;
use crate::compare_and_set::CompareAndSet;

/// A number that many processes count, and each addition counts exactly once.
///
/// The number is an `i64` ([`new`](Self::new)) or an `i32` ([`new_i32`](Counter::new_i32)), in the bytes of
/// Curator's `DistributedAtomicLong` and `DistributedAtomicInteger`. Clients of those may use the same node.
///
/// A clone is the same counter. The additions of its clones that wait at the same time are one transaction,
/// so give every task of a process a clone. Two counters that were made apart on one path are correct, and
/// slower: they compete for the node.
///
/// # Ordering
///
/// Linearizable: every call takes effect at one instant between its beginning and its end.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use lockkeeper::Counter;
/// use lockkeeper::value::CompareAndSet;
///
/// let visits = Counter::new(&manager, "/counters/visits")?;
/// assert_eq!(visits.increment().await?, 1);
/// assert_eq!(visits.add(41).await?, 42);
/// assert_eq!(visits.compare_and_set(7, 0).await?, CompareAndSet::Differs(42));
/// assert_eq!(visits.get().await?, 42);
/// # Ok(())
/// # }
/// ```
pub struct Counter<N = i64> {
    register: Register,
    number: PhantomData<fn() -> N>,
}

impl Counter {
    /// Makes the counter of an `i64` at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed or the root.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        Self::on(manager, path)
    }
}

impl Counter<i32> {
    /// Makes the counter of an `i32` at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// As [`Counter::new`].
    pub fn new_i32(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        Self::on(manager, path)
    }
}

impl<N: CounterNumber> Counter<N> {
    fn on(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        let register = Register::new(manager, path)?.combining().with_metric_name("counter");
        Ok(Self { register, number: PhantomData })
    }

    /// The path of the counter, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.register.path()
    }

    /// The manager of the counter.
    #[must_use]
    pub fn manager(&self) -> &ConnectionManager {
        self.register.manager()
    }

    /// The number. It has every addition that ended before the call.
    ///
    /// # Errors
    ///
    /// [`CounterError::NotANumber`], [`Error::Timeout`] after the manager's operation timeout,
    /// [`Error::Refused`] (no right to read), [`Error::Closed`] after a shutdown.
    ///
    /// # Session loss
    ///
    /// Goes on in the next session.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn get(&self) -> Result<N, Error> {
        let (number, _) = self.register.read(|current| number_in::<N>(current.data())).await?;
        number.map_err(|bytes| self.not_a_number(bytes))
    }

    /// Adds one. Returns the number after it.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    ///
    /// # Session loss
    ///
    /// As [`add`](Self::add).
    ///
    /// # Cancel safety
    ///
    /// As [`add`](Self::add).
    pub async fn increment(&self) -> Result<N, Error> {
        self.add(N::ONE).await
    }

    /// Adds a number, which may be negative. Returns the number after it: no other addition returns the same
    /// one, if all are positive.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`]: the number may have been added, once. [`CounterError::Overflow`],
    /// [`CounterError::NotANumber`], [`Error::Timeout`] after the manager's operation timeout,
    /// [`Error::Refused`] (no right to read or write the node, or to create its child, or one beside it if
    /// the node does not exist) and [`Error::ServersReset`] (the servers have lost data): it was not added.
    /// [`Error::Closed`] after a shutdown.
    ///
    /// # Session loss
    ///
    /// Goes on in the next session. The outcome is unknown only if the operation timeout passed while a
    /// request had no answer, or if the session ended before the answer, its nodes have been deleted, and the
    /// counter was changed since or did not exist before.
    ///
    /// # Cancel safety
    ///
    /// The number may be added, once.
    pub async fn add(&self, number: N) -> Result<N, Error> {
        let added = self.register.update(move |current| match number_in::<N>(current.data()) {
            Err(bytes) => (Change::Keep, Added::NotANumber(bytes)),
            Ok(value) => match value.checked_add(number) {
                Some(sum) => (Change::Write(sum.encode()), Added::Sum(sum)),
                None => (Change::Keep, Added::Overflow(value)),
            },
        });
        match added.await?.0 {
            Added::Sum(sum) => Ok(sum),
            Added::NotANumber(bytes) => Err(self.not_a_number(bytes)),
            Added::Overflow(value) => Err(self.overflow(value, number)),
        }
    }

    /// Sets the number to `new` if it is `expected`.
    ///
    /// The condition is the number alone: it is true if the number was changed and changed back.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add). After [`Error::Unknown`] the number may have been set.
    ///
    /// # Session loss
    ///
    /// As [`add`](Self::add).
    ///
    /// # Cancel safety
    ///
    /// The number may be set, once.
    pub async fn compare_and_set(&self, expected: N, new: N) -> Result<CompareAndSet<N>, Error> {
        let set = self.register.update(move |current| match number_in::<N>(current.data()) {
            Err(bytes) => (Change::Keep, Err(bytes)),
            Ok(value) if value == expected => (Change::Write(new.encode()), Ok(CompareAndSet::Set(new))),
            Ok(value) => (Change::Keep, Ok(CompareAndSet::Differs(value))),
        });
        set.await?.0.map_err(|bytes| self.not_a_number(bytes))
    }

    /// Sets the number, whatever the node has before.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`]: the number may have been set. Otherwise as [`add`](Self::add).
    ///
    /// # Session loss
    ///
    /// As [`add`](Self::add).
    ///
    /// # Cancel safety
    ///
    /// The number may be set, once.
    pub async fn set(&self, number: N) -> Result<(), Error> {
        let set = self.register.update(move |_| (Change::Write(number.encode()), ()));
        set.await.map(|_| ())
    }

    /// Reads the node and the sessions that add to it: a snapshot, no older than the call. It adds nothing,
    /// and needs only the right to read. Clients of Curator and kazoo are not shown.
    ///
    /// # Errors
    ///
    /// As [`Register::inspect`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn inspect(&self) -> Result<RegisterInfo, Error> {
        self.register.inspect().await
    }

    fn not_a_number(&self, bytes: usize) -> Error {
        let path = self.manager().whole_path(self.path());
        CounterError::NotANumber { path, bytes, expected: N::COUNT }.into()
    }

    fn overflow(&self, value: N, added: N) -> Error {
        let path = self.manager().whole_path(self.path());
        CounterError::Overflow { path, value: value.into(), added: added.into(), bits: N::COUNT * 8 }.into()
    }
}

/// What became of an addition.
enum Added<N> {
    Sum(N),
    Overflow(N),
    NotANumber(usize),
}

impl<N> Clone for Counter<N> {
    fn clone(&self) -> Self {
        Self { register: self.register.clone(), number: PhantomData }
    }
}

impl<N> Debug for Counter<N> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Counter").field("path", self.register.path()).finish_non_exhaustive()
    }
}
