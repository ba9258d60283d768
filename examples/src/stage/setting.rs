use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;

use futures::future::join_all;
use lockkeeper::{ConnectionManager, CreateMode, PathError, ZnodePath, Znodes};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::connection::Connection;
use super::failure::Failure;
use super::patience::patiently;
use super::process::{News, Process};
use super::worker::{Briefing, Told};

/// What the process that leads has: nodes of its own in the ensemble, and processes that tell it `T`s.
#[derive(Debug)]
pub struct Stage<T> {
    manager: ConnectionManager,
    root: ZnodePath,
    briefing: Briefing,
    processes: BTreeMap<u32, Process>,
    started: u32,
    killed: BTreeSet<u32>,
    /// Heard while waiting for something else.
    kept: VecDeque<(u32, T)>,
    news: mpsc::UnboundedReceiver<News<Told<T>>>,
    sender: mpsc::UnboundedSender<News<Told<T>>>,
}

impl<T: DeserializeOwned + Send + 'static> Stage<T> {
    pub(super) fn new(manager: ConnectionManager, connection: Connection, root: ZnodePath) -> Self {
        let (sender, news) = mpsc::unbounded_channel();
        Self {
            manager,
            briefing: Briefing { connection, root: root.to_string() },
            root,
            processes: BTreeMap::new(),
            started: 0,
            killed: BTreeSet::new(),
            kept: VecDeque::new(),
            news,
            sender,
        }
    }

    pub(super) fn root(&self) -> &ZnodePath {
        &self.root
    }

    /// The connection of the process that leads.
    #[must_use]
    pub fn manager(&self) -> &ConnectionManager {
        &self.manager
    }

    /// Nodes beside the locks.
    #[must_use]
    pub fn znodes(&self) -> Znodes {
        self.manager.znodes()
    }

    /// The path of this name within this run.
    ///
    /// # Errors
    ///
    /// [`PathError`] when there can be none.
    pub fn path(&self, name: &str) -> Result<ZnodePath, PathError> {
        name.split('/').try_fold(self.root.clone(), |path, name| path.child(name))
    }

    /// Makes a node of this run.
    ///
    /// # Errors
    ///
    /// As [`Znodes::create`].
    pub async fn set_up(&self, name: &str, data: &[u8]) -> Result<(), Failure> {
        self.znodes().create(&self.path(name)?, data, CreateMode::Persistent).await?;
        Ok(())
    }

    /// What stands in a node of this run.
    ///
    /// # Errors
    ///
    /// As [`Znodes::read`]; and when it is gone.
    pub async fn read(&self, name: &str) -> Result<Vec<u8>, Failure> {
        let (znodes, path) = (self.znodes(), self.path(name)?);
        let read = patiently(|| znodes.read(&path)).await?;
        read.map(|(data, _)| data).ok_or_else(|| Failure::Other(format!("{path} is gone")))
    }

    /// Starts so many processes more, and lets them begin together once all are connected.
    ///
    /// # Errors
    ///
    /// [`Failure`] when one does not get so far.
    pub async fn start(&mut self, count: u32) -> Result<(), Failure> {
        let mut awaited = BTreeSet::new();
        for _ in 0..count {
            self.started += 1;
            let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
            let process =
                Process::start(self.started, arguments, &self.briefing, self.sender.clone()).await?;
            self.processes.insert(self.started, process);
            awaited.insert(self.started);
        }
        let new = awaited.clone();
        while !awaited.is_empty() {
            match self.news.recv().await {
                Some(News::Said { by, what: Told::Ready }) => drop(awaited.remove(&by)),
                Some(News::Said { by, what: Told::News(news) }) => self.kept.push_back((by, news)),
                Some(News::Left { who }) if awaited.contains(&who) => return Err(Failure::Process(who)),
                Some(News::Left { who }) => self.left(who).await?,
                // Not while we have a sender ourselves.
                None => break,
            }
        }
        for number in new {
            self.tell(number, &"begin").await;
        }
        Ok(())
    }

    /// What is told next, and by which process; `None` when all have ended.
    ///
    /// # Errors
    ///
    /// [`Failure::Process`] when one ended badly, unless it was [killed](Self::kill).
    pub async fn next(&mut self) -> Result<Option<(u32, T)>, Failure> {
        loop {
            if let Some(kept) = self.kept.pop_front() {
                return Ok(Some(kept));
            }
            if self.processes.is_empty() {
                return Ok(None);
            }
            match self.news.recv().await {
                Some(News::Said { by, what: Told::News(news) }) => return Ok(Some((by, news))),
                Some(News::Said { what: Told::Ready, .. }) => {}
                Some(News::Left { who }) => self.left(who).await?,
                None => return Ok(None),
            }
        }
    }

    /// Everything that is still told, until all have ended.
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next).
    pub async fn rest(&mut self) -> Result<Vec<(u32, T)>, Failure> {
        let mut rest = Vec::new();
        while let Some(told) = self.next().await? {
            rest.push(told);
        }
        Ok(rest)
    }

    /// Says something to one of them.
    pub async fn tell(&mut self, number: u32, message: &impl Serialize) {
        if let Some(process) = self.processes.get_mut(&number) {
            process.say(message).await;
        }
    }

    /// Says something to all of them.
    pub async fn tell_all(&mut self, message: &impl Serialize) {
        join_all(self.processes.values_mut().map(|process| process.say(message))).await;
    }

    /// Kills one with SIGKILL.
    ///
    /// # Errors
    ///
    /// Of the operating system.
    pub fn kill(&mut self, number: u32) -> Result<(), Failure> {
        self.killed.insert(number);
        Ok(self.processes.get_mut(&number).map_or(Ok(()), Process::kill)?)
    }

    /// Stops one where it stands, with SIGSTOP.
    ///
    /// # Errors
    ///
    /// Of the operating system.
    pub fn pause(&mut self, number: u32) -> Result<(), Failure> {
        Ok(self.processes.get_mut(&number).map_or(Ok(()), Process::pause)?)
    }

    /// Lets one go on that was stopped.
    ///
    /// # Errors
    ///
    /// Of the operating system.
    pub fn resume(&mut self, number: u32) -> Result<(), Failure> {
        Ok(self.processes.get_mut(&number).map_or(Ok(()), Process::resume)?)
    }

    /// Ends all of them, and waits until they are gone.
    pub async fn close(&mut self) {
        join_all(std::mem::take(&mut self.processes).into_values().map(Process::close)).await;
    }

    async fn left(&mut self, who: u32) -> Result<(), Failure> {
        let Some(mut process) = self.processes.remove(&who) else { return Ok(()) };
        if process.ended_well().await? || self.killed.contains(&who) {
            return Ok(());
        }
        Err(Failure::Process(who))
    }
}
