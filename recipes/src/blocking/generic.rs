use std::future::Future;
use std::panic::Location;
use std::time::Duration;

use lockkeeper_core::Error;

use super::guard::Guard;
use super::runtime_thread::RuntimeThread;

/// Anything of the async API, for threads: a recipe, or what a call of a recipe returns, such as a view, a
/// watch, a guard or a member.
///
/// [`ConnectionManager::wrap`] and [`wrap`](Self::wrap) make it. [`Mutex`](super::Mutex),
/// [`RwLock`](super::RwLock), [`Semaphore`](super::Semaphore), [`Election`](super::Election) and the other
/// locks are this type as well, with methods of their own.
///
/// # Calls
///
/// [`call`](Self::call) runs an async closure on the calling thread, with timers and tasks on the manager's
/// thread, and waits for its result. The closure may have several steps. The error is always an [`Error`], so
/// a step of the closure and the call itself need one `?` each, and no type has to be named. A step that
/// returns no result, or an error of another type, is put into `Ok(…)`.
///
/// Like the traits of closures, [`call`](Self::call) takes the value by a shared reference,
/// [`call_mut`](Self::call_mut) by an exclusive one, and [`call_once`](Self::call_once) takes the value
/// itself. What never waits needs no call: [`as_async`](Self::as_async) has it.
///
/// Every call is refused within an async task, before the closure is called: see [`CannotBlock`]. What the
/// closure owns is dropped then.
///
/// A clone is cheap, as one of the value is. A drop of the value works as in a task: a guard releases, and a
/// member leaves, in the background.
///
/// # Examples
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
/// # let manager = lockkeeper::blocking::ConnectionManager::connect(&server.connect_string())?;
/// use std::time::Duration;
/// use lockkeeper::{Partition, SharedCount};
///
/// // A recipe, and a view that it opens.
/// let workers = manager.wrap(async |manager| SharedCount::new(manager, "/workers", 4))?;
/// let view = workers.wrap(async |workers| workers.view())?;
/// workers.call(async |workers| workers.set(16).await)?;
/// view.call(async |view| view.sync().await)?;
/// let value = view.as_async().node().and_then(|node| node.value().ok().copied());
/// assert_eq!(value, Some(16));
///
/// // A member, which is called by `&mut`, and an item that it receives.
/// let partition = manager.wrap(async |manager| Partition::new(manager, "/shards"))?;
/// partition.call(async |partition| partition.add(["0"]).await)?;
/// let mut member = partition.wrap(async |partition| partition.join("worker-3"))?;
/// let item = member.call_mut_timeout(Duration::from_secs(10), async |member| Ok(member.next().await))?;
/// let item = item.expect("no shutdown has begun");
/// item.check()?; // between the steps of the work
/// partition.call(async |_| Ok(item.release().await?))?;
/// member.call_once(async |member| member.leave().await)?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
///
/// [`CannotBlock`]: super::CannotBlock
/// [`ConnectionManager::wrap`]: super::ConnectionManager::wrap
#[derive(Clone, Debug)]
pub struct Blocking<T> {
    // Dropped in this order.
    pub(super) inner: T,
    pub(super) thread: RuntimeThread,
}

impl<T> Blocking<T> {
    /// The async value, for what never waits, and for an async part of the program.
    #[must_use]
    pub fn as_async(&self) -> &T {
        &self.inner
    }

    /// Calls an async closure with the value, and waits for it, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise the error of the closure.
    ///
    /// # Examples
    ///
    /// ```
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
    /// # let manager = lockkeeper::blocking::ConnectionManager::connect(&server.connect_string())?;
    /// use lockkeeper::blocking::Mutex;
    ///
    /// // A call for which a blocking lock has no method: a place in the queue.
    /// let mutex = Mutex::new(&manager, "/locks/train-7")?;
    /// let held = mutex.acquire()?;
    /// let waiting = mutex.call(async |mutex| mutex.enqueue().await)?;
    /// assert_eq!(waiting.position(), Some(1));
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn call<R>(&self, work: impl AsyncFnOnce(&T) -> Result<R, Error>) -> Result<R, Error> {
        self.block(async { work(&self.inner).await })
    }

    /// As [`call`](Self::call), for at most `timeout`. Then the future of the closure is dropped: the async
    /// method says what that does, under *Cancel safety*.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names the line of this call. Otherwise as [`call`](Self::call).
    #[track_caller]
    pub fn call_timeout<R>(
        &self,
        timeout: Duration,
        work: impl AsyncFnOnce(&T) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.thread.call_within(timeout, async { work(&self.inner).await }, Location::caller())
    }

    /// As [`call`](Self::call), for methods with `&mut self`, such as the next state of a watch.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub fn call_mut<R>(&mut self, work: impl AsyncFnOnce(&mut T) -> Result<R, Error>) -> Result<R, Error> {
        self.thread.block_checked(async { work(&mut self.inner).await })?
    }

    /// As [`call_mut`](Self::call_mut), for at most `timeout`. An element or a state that was not returned is
    /// returned by the next call.
    ///
    /// # Errors
    ///
    /// As [`call_timeout`](Self::call_timeout).
    #[track_caller]
    pub fn call_mut_timeout<R>(
        &mut self,
        timeout: Duration,
        work: impl AsyncFnOnce(&mut T) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.thread.call_within(timeout, async { work(&mut self.inner).await }, Location::caller())
    }

    /// As [`call`](Self::call), for methods that take the value itself, such as a release.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call). Within an async task the value is dropped.
    pub fn call_once<R>(self, work: impl AsyncFnOnce(T) -> Result<R, Error>) -> Result<R, Error> {
        let Self { inner, thread } = self;
        thread.block_checked(async { work(inner).await })?
    }

    /// As [`call`](Self::call), for a closure whose value is called later: a view, a guard, a member.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub fn wrap<U>(&self, work: impl AsyncFnOnce(&T) -> Result<U, Error>) -> Result<Blocking<U>, Error> {
        Ok(self.beside(self.call(work)?))
    }

    pub(super) fn of(inner: T, thread: &RuntimeThread) -> Self {
        Self { inner, thread: thread.clone() }
    }

    /// Another value on the same thread.
    pub(super) fn beside<U>(&self, inner: U) -> Blocking<U> {
        Blocking::of(inner, &self.thread)
    }

    /// Waits for a call that may take long.
    pub(super) fn block<R>(&self, call: impl Future<Output = Result<R, Error>>) -> Result<R, Error> {
        self.thread.block_checked(call)?
    }

    /// As [`block`](Self::block), for an acquire.
    pub(super) fn guard<H, B>(
        &self,
        acquire: impl Future<Output = Result<crate::Guard<H>, Error>>,
    ) -> Result<Guard<H, B>, Error> {
        Ok(Guard::new(self.block(acquire)?, &self.thread))
    }

    /// As [`block`](Self::block), for a try.
    pub(super) fn try_guard<H, B>(
        &self,
        acquire: impl Future<Output = Result<Option<crate::Guard<H>>, Error>>,
    ) -> Result<Option<Guard<H, B>>, Error> {
        Ok(self.block(acquire)?.map(|guard| Guard::new(guard, &self.thread)))
    }
}
