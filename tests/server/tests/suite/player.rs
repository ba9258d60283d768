//! One side of a comparison: servers, and the sessions that a script uses there.

use std::collections::HashMap;
use std::fmt::Write;
use std::io;
use std::time::Duration;

use tokio::time::sleep;

use crate::raw::{Body, Conn, Event, Fields, Reply, op};
use crate::script::{SESSIONS, Step};

const SESSION_TIMEOUT: i32 = 30_000;
const SHORT_TIMEOUT: i32 = 1_000;

/// Servers and the sessions that a script uses there.
pub(crate) struct Player {
    name: &'static str,
    addresses: Vec<String>,
    /// Which of the servers serve.
    alive: Vec<usize>,
    /// At which of them each session is.
    at: Vec<usize>,
    sessions: Vec<Conn>,
    ids: HashMap<i64, String>,
    root: String,
    /// The leaders' epochs, each with the transactions that were before it.
    epochs: Vec<(i64, i64)>,
    /// The latest transaction in an answer.
    counted: i64,
}

impl Player {
    pub(crate) fn new(name: &'static str, addresses: Vec<String>) -> Self {
        Self {
            name,
            alive: (0..addresses.len()).collect(),
            addresses,
            at: Vec::new(),
            sessions: Vec::new(),
            ids: HashMap::new(),
            root: String::new(),
            epochs: Vec::new(),
            counted: 0,
        }
    }

    pub(crate) async fn begin(&mut self, root: &str) {
        self.root = root.to_owned();
        self.sessions.clear();
        self.at = (0..=SESSIONS).map(|session| session % self.addresses.len()).collect();
        for index in 0..SESSIONS {
            let session = self.join(index, SESSION_TIMEOUT).await;
            self.sessions.push(session);
        }
        self.sessions[0].ok(op::CREATE, &Body::create(root, 0)).await;
    }

    pub(crate) async fn end(&mut self) {
        for session in &mut self.sessions {
            session.ok(op::CLOSE, &Body::new()).await;
        }
    }

    async fn join(&mut self, index: usize, timeout: i32) -> Conn {
        let session = Conn::new(self.address(index), timeout).await;
        let name = format!("session {index} (number {})", self.ids.len());
        self.ids.insert(session.session, name);
        session
    }

    fn address(&self, session: usize) -> &str {
        &self.addresses[self.at[session]]
    }

    async fn again(&self, session: usize) -> Conn {
        self.sessions[session].again(self.address(session)).await.unwrap()
    }

    /// From now on these servers serve. Sessions of others move, each with its password, and with `all` every
    /// session has lost its connection.
    pub(crate) async fn settle(&mut self, alive: &[usize], all: bool) -> String {
        let mut output = String::new();
        self.alive = alive.to_vec();
        for session in 0..=SESSIONS {
            let is_gone = !alive.contains(&self.at[session]);
            if is_gone {
                self.at[session] = alive[session % alive.len()];
            }
            if session < SESSIONS && (is_gone || all) {
                let again = self.again(session).await;
                writeln!(output, "attached: {} for {} ms", self.id(again.session), again.timeout).unwrap();
                self.sessions[session] = again;
            }
        }
        output
    }

    /// Plays a step and returns its effects, in words that are equal for equal servers.
    pub(crate) async fn play(&mut self, step: &Step) -> String {
        let mut output = String::new();
        match step {
            Step::Call { session, op, body, .. } => {
                if *op == op::CHECK {
                    return "not compared: the real server does not answer a check that holds".to_owned();
                }
                match self.sessions[*session].call(*op, body).await {
                    Ok(reply) => {
                        let before = format!("{:?}", self.sessions[*session].events);
                        writeln!(output, "{}, after {before}", self.describe(*op, &reply)).unwrap();
                    }
                    Err(error) => writeln!(output, "connection closed: {:?}", error.kind()).unwrap(),
                }
            }
            Step::SetWatches { session, back, lists } => {
                let seen = self.sessions[*session].last_zxid - back;
                let body = lists.iter().fold(Body::new().long(seen), |body, list| body.strs(list));
                let reply = self.sessions[*session].call(op::SET_WATCHES2, &body).await.unwrap();
                let before = format!("{:?}", self.sessions[*session].events);
                writeln!(output, "{}, after {before}", self.describe(op::SET_WATCHES2, &reply)).unwrap();
            }
            Step::Reconnect { session } => {
                let again = self.again(*session).await;
                writeln!(output, "attached: {} for {} ms", self.id(again.session), again.timeout).unwrap();
                self.sessions[*session].closed().await;
                self.sessions[*session] = again;
            }
            Step::Move { session, server } => {
                self.at[*session] = self.alive[server % self.alive.len()];
                let moved = self.again(*session).await;
                writeln!(output, "moved: {} for {} ms", self.id(moved.session), moved.timeout).unwrap();
                self.sessions[*session] = moved;
            }
            Step::WrongPassword { session } => output = self.wrong_password(*session).await,
            Step::Close { session } => {
                let reply = self.sessions[*session].ok(op::CLOSE, &Body::new()).await;
                writeln!(output, "closed: {}", self.describe(op::CLOSE, &reply)).unwrap();
                self.sessions[*session].closed().await;
                self.sessions[*session] = self.join(*session, SESSION_TIMEOUT).await;
            }
            Step::Expire { session } => match self.expire(*session).await {
                (shown, true) => output = shown,
                (shown, false) => return shown,
            },
        }
        output + &self.events(step).await
    }

    async fn wrong_password(&mut self, session: usize) -> String {
        let mut output = String::new();
        let address = self.address(session).to_owned();
        let old = &mut self.sessions[session];
        let refused = Conn::attach(&address, 8000, old.session, &[7; 16], 0).await;
        let refused = refused.map(|mut conn| {
            let answer = (conn.session, conn.timeout, std::mem::take(&mut conn.password));
            (answer, conn)
        });
        let (answer, mut conn) = refused.unwrap();
        conn.closed().await;
        old.closed().await;
        writeln!(output, "wrong password: {answer:?}").unwrap();
        let again = self.again(session).await;
        writeln!(output, "right password: {}", self.id(again.session)).unwrap();
        self.sessions[session] = again;
        output
    }

    /// Has the session of another client expire. Returns its effects, and whether there was such a session.
    async fn expire(&mut self, session: usize) -> (String, bool) {
        let mut output = String::new();
        let mut doomed = self.join(SESSIONS, SHORT_TIMEOUT).await;
        let path = format!("{}/doomed", self.root);
        let reply = doomed.call(op::CREATE2, &Body::create(&path, 1)).await.unwrap();
        writeln!(output, "doomed: {}", self.describe(op::CREATE2, &reply)).unwrap();
        if reply.err != 0 {
            // Without an own node the end of the session would be invisible.
            doomed.ok(op::CLOSE, &Body::new()).await;
            return (output, false);
        }
        let (id, password) = (doomed.session, doomed.password.clone());
        drop(doomed);
        let observer = &mut self.sessions[session];
        // Expiry is the one thing a client cannot ask for and has to wait for.
        while observer.call(op::EXISTS, &Body::watch(&path, false)).await.unwrap().err == 0 {
            sleep(Duration::from_millis(20)).await;
        }
        let mut late = Conn::attach(self.address(SESSIONS), 8000, id, &password, 0).await.unwrap();
        late.closed().await;
        writeln!(output, "too late: {:?}", (late.session, late.timeout, late.password)).unwrap();
        (output, true)
    }

    /// The effects of the step on all sessions.
    async fn events(&mut self, step: &Step) -> String {
        let mut output = String::new();
        // All effects of the step on other sessions arrive before the answer to a ping or, if the server of a
        // session may be behind, to a sync.
        for index in 0..SESSIONS {
            match self.drain(index).await {
                Ok(events) => {
                    // The nodes of a session go in the order of a Java hash set; everything else has an
                    // order.
                    let ordered = !matches!(step, Step::Close { .. } | Step::Expire { .. });
                    let zxids = std::mem::take(&mut self.sessions[index].event_zxids);
                    let events =
                        events.into_iter().zip(zxids.into_iter().map(|zxid| self.count(zxid))).collect();
                    let events = if ordered { events } else { sorted(events) };
                    writeln!(output, "events of {index}: {events:?}").unwrap();
                }
                Err(_) => {
                    writeln!(output, "connection of {index} was closed").unwrap();
                    self.sessions[index] = self.again(index).await;
                }
            }
        }
        output
    }

    async fn drain(&mut self, session: usize) -> io::Result<Vec<Event>> {
        if self.addresses.len() > 1 {
            self.sessions[session].call(op::SYNC, &Body::new().str("/")).await?;
        }
        self.sessions[session].drain().await
    }

    /// The number of a transaction, counted through: each leader counts from 0 in an epoch of its own.
    fn count(&mut self, zxid: i64) -> i64 {
        if zxid <= 0 {
            return zxid;
        }
        let (epoch, counter) = (zxid >> 32, zxid & 0xffff_ffff);
        if self.epochs.last().is_none_or(|(last, _)| epoch > *last) {
            self.epochs.push((epoch, self.counted));
        }
        let before = self.epochs.iter().find(|(number, _)| *number == epoch).map_or(0, |(_, before)| *before);
        self.counted = self.counted.max(before + counter);
        before + counter
    }

    fn id(&self, session: i64) -> &str {
        if session == 0 {
            return "none";
        }
        self.ids.get(&session).map_or("an unknown session", String::as_str)
    }

    fn describe(&mut self, op: i32, reply: &Reply) -> String {
        let mut text = format!("zxid {} err {}", self.count(reply.zxid), reply.err);
        if reply.err == 0 {
            let mut fields = Fields(&reply.body);
            match op {
                op::CREATE => write!(text, " {}", fields.str()).unwrap(),
                op::SYNC => write!(text, " {:?}", fields.bytes()).unwrap(),
                op::CREATE2 | op::CREATE_CONTAINER | op::CREATE_TTL => {
                    write!(text, " {} {}", fields.str(), self.stat(&mut fields)).unwrap();
                }
                op::EXISTS | op::SET_DATA | op::SET_ACL => {
                    write!(text, " {}", self.stat(&mut fields)).unwrap()
                }
                op::GET_DATA => write!(text, " {:?} {}", fields.bytes(), self.stat(&mut fields)).unwrap(),
                op::GET_CHILDREN | op::GET_EPHEMERALS => {
                    write!(text, " {:?}", sorted(fields.strs())).unwrap()
                }
                op::GET_CHILDREN2 => {
                    write!(text, " {:?} {}", sorted(fields.strs()), self.stat(&mut fields)).unwrap()
                }
                op::GET_ACL => {
                    let acl: Vec<_> =
                        (0..fields.int()).map(|_| (fields.int(), fields.str(), fields.str())).collect();
                    write!(text, " {:?} {}", sorted(acl), self.stat(&mut fields)).unwrap();
                }
                op::WHO_AM_I => {
                    let who: Vec<_> = (0..fields.int()).map(|_| (fields.str(), fields.str())).collect();
                    write!(text, " {:?}", sorted(who)).unwrap();
                }
                op::GET_ALL_CHILDREN_NUMBER | op::ADD_WATCH => write!(text, " {}", fields.int()).unwrap(),
                op::MULTI | op::MULTI_READ => self.multi(&mut fields, &mut text),
                _ => {}
            }
            assert!(fields.0.is_empty(), "{}: bytes left over after op {op}: {:?}", self.name, reply.body);
        } else {
            assert!(reply.body.is_empty(), "{}: an error with a body after op {op}", self.name);
        }
        text
    }

    fn multi(&mut self, fields: &mut Fields<'_>, text: &mut String) {
        loop {
            let (kind, done, err) = (fields.int(), fields.bool(), fields.int());
            write!(text, "\n  {kind} {done} {err}").unwrap();
            if done {
                return;
            }
            match kind {
                op::CREATE => write!(text, " {}", fields.str()).unwrap(),
                op::CREATE2 => write!(text, " {} {}", fields.str(), self.stat(fields)).unwrap(),
                op::SET_DATA => write!(text, " {}", self.stat(fields)).unwrap(),
                op::GET_DATA => write!(text, " {:?} {}", fields.bytes(), self.stat(fields)).unwrap(),
                op::GET_CHILDREN => write!(text, " {:?}", sorted(fields.strs())).unwrap(),
                -1 => write!(text, " {}", fields.int()).unwrap(),
                _ => {}
            }
        }
    }

    /// Everything but the times, of which only the order is compared.
    fn stat(&mut self, fields: &mut Fields<'_>) -> String {
        let (czxid, mzxid) = (self.count(fields.long()), self.count(fields.long()));
        let (ctime, mtime) = (fields.long(), fields.long());
        let (version, cversion, aversion, owner) = (fields.int(), fields.int(), fields.int(), fields.long());
        let (length, children, pzxid) = (fields.int(), fields.int(), self.count(fields.long()));
        format!(
            "czxid {czxid} mzxid {mzxid} pzxid {pzxid} times {:?} versions {version} {cversion} {aversion} \
             owner {} length {length} children {children}",
            (ctime != 0, mtime != 0, ctime <= mtime),
            self.id(owner)
        )
    }
}

fn sorted<T: Ord>(mut items: Vec<T>) -> Vec<T> {
    items.sort();
    items
}
