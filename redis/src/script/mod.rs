//! The scripts: what one round trip decides on the server. `PROTOCOL.md` has every key and every answer.

use std::sync::LazyLock;

use redis::{FromRedisValue, Script, Value};

use crate::name::LockName;

macro_rules! script {
    ($name:ident, $($part:literal),+) => {
        static $name: LazyLock<Script> =
            LazyLock::new(|| Script::new(concat!($(include_str!($part), "\n"),+)));
    };
}

script!(ACQUIRE, "queue.lua", "mutex.lua", "acquire.lua");
script!(RELEASE, "queue.lua", "mutex.lua", "release.lua");
script!(EXTEND, "queue.lua", "mutex.lua", "extend.lua");
script!(ACQUIRE_PERMITS, "queue.lua", "permits.lua", "acquire_permits.lua");
script!(RELEASE_PERMITS, "queue.lua", "permits.lua", "release_permits.lua");
script!(EXTEND_PERMITS, "queue.lua", "permits.lua", "extend_permits.lua");
script!(AVAILABLE, "queue.lua", "permits.lua", "available.lua");
script!(ADMIT, "admit.lua");

/// A script with its keys and arguments.
pub(crate) struct Call {
    script: &'static Script,
    keys: Vec<String>,
    arguments: Vec<String>,
}

impl Call {
    fn new(script: &'static Script, keys: &[String], arguments: Vec<String>) -> Self {
        Self { script, keys: keys.to_vec(), arguments }
    }

    /// Sends the script, and its text only if the server does not have it yet.
    pub(crate) async fn send(
        &self,
        connection: &mut (impl redis::aio::ConnectionLike + Send),
    ) -> redis::RedisResult<Vec<i64>> {
        let mut invocation = self.script.prepare_invoke();
        invocation.key(&self.keys).arg(&self.arguments);
        let value: Value = invocation.invoke_async(connection).await?;
        match value {
            Value::Int(single) => Ok(vec![single]),
            value => Ok(Vec::<i64>::from_redis_value(value)?),
        }
    }
}

/// The two kinds of lock, by what they keep at their key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// The id of the holder.
    Mutex,
    /// The holders of permits, of so many in all.
    Permits { limit: u32 },
}

/// A lock, as the scripts name it.
#[derive(Clone, Debug)]
pub(crate) struct LockKeys {
    pub(crate) name: LockName,
    pub(crate) kind: Kind,
    keys: Vec<String>,
}

impl LockKeys {
    pub(crate) fn new(name: LockName, kind: Kind) -> Self {
        let parts: &[&str] = match kind {
            Kind::Mutex => &["fence", "queue", "waiters"],
            Kind::Permits { .. } => &["fence", "queue", "waiters", "permits"],
        };
        let keys = std::iter::once(name.as_str().to_owned())
            .chain(parts.iter().map(|part| name.beside(part)))
            .collect();
        Self { name, kind, keys }
    }

    /// Takes the lock, or waits for it.
    pub(crate) fn acquire(&self, id: &str, lease: u64, waits: bool, channel: &str, asked: u32) -> Call {
        let mode = if waits { "wait" } else { "try" };
        let mut arguments = vec![id.to_owned(), lease.to_string(), mode.to_owned(), channel.to_owned()];
        match self.kind {
            Kind::Mutex => Call::new(&ACQUIRE, &self.keys, arguments),
            Kind::Permits { limit } => {
                arguments.extend([asked.to_string(), limit.to_string()]);
                Call::new(&ACQUIRE_PERMITS, &self.keys, arguments)
            }
        }
    }

    /// Gives up what the id holds, or its position.
    pub(crate) fn release(&self, id: &str) -> Call {
        let script: &LazyLock<Script> = match self.kind {
            Kind::Mutex => &RELEASE,
            Kind::Permits { .. } => &RELEASE_PERMITS,
        };
        Call::new(script, &self.keys, vec![id.to_owned()])
    }

    /// Extends the lease of a hold.
    pub(crate) fn extend(&self, id: &str, lease: u64) -> Call {
        let script: &LazyLock<Script> = match self.kind {
            Kind::Mutex => &EXTEND,
            Kind::Permits { .. } => &EXTEND_PERMITS,
        };
        Call::new(script, &self.keys, vec![id.to_owned(), lease.to_string()])
    }

    /// Counts the permits in use.
    pub(crate) fn taken(&self) -> Call {
        Call::new(&AVAILABLE, &self.keys, Vec::new())
    }
}

/// Records starts of a rate limiter, if they need not wait longer than `longest` milliseconds.
pub(crate) fn admit(
    name: &LockName,
    id: &str,
    asked: u32,
    limit: u32,
    span: u64,
    longest: Option<u64>,
) -> Call {
    let longest = longest.map_or_else(|| "-1".to_owned(), |longest| longest.to_string());
    let arguments = vec![id.to_owned(), asked.to_string(), limit.to_string(), span.to_string(), longest];
    Call::new(&ADMIT, &[name.as_str().to_owned()], arguments)
}

/// What a script answered to an acquire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The contender holds the lock.
    Held { token: u64 },
    /// It waits, or would have to.
    Waits(Waiting),
    /// The users of a semaphore disagree.
    OtherLimit { recorded: u32 },
}

/// The queue, as a waiter sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) ahead: u32,
    /// The milliseconds until the lease of a holder ends. `None` if the holder has no lease.
    pub(crate) ends: Option<u64>,
    /// For permits, how many are free; for a mutex, 1 if the holder is a contender of this crate.
    pub(crate) detail: u32,
    /// The newest token that was granted before the answer: a grant that is not newer is not of this wait.
    pub(crate) newest: u64,
}

impl Answer {
    /// `None` if no script answers so.
    pub(crate) fn read(answer: &[i64]) -> Option<Self> {
        match *answer {
            [1, token] => Some(Self::Held { token: u64::try_from(token).ok()? }),
            [0, ahead, ends, detail, newest] => Some(Self::Waits(Waiting {
                ahead: u32::try_from(ahead).ok()?,
                ends: u64::try_from(ends).ok(),
                detail: u32::try_from(detail).ok()?,
                newest: u64::try_from(newest).ok()?,
            })),
            [-1, recorded] => Some(Self::OtherLimit { recorded: u32::try_from(recorded).ok()? }),
            _ => None,
        }
    }
}

/// Reads the message of a grant: the id of the waiter, and its token.
pub(crate) fn read_grant(message: &str) -> Option<(&str, u64)> {
    let (id, token) = message.rsplit_once(' ')?;
    Some((id, token.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_and_others_are_refused() {
        assert_eq!(Answer::read(&[1, 7]), Some(Answer::Held { token: 7 }));
        let waiting = Waiting { ahead: 2, ends: None, detail: 0, newest: 9 };
        assert_eq!(Answer::read(&[0, 2, -1, 0, 9]), Some(Answer::Waits(waiting)));
        assert_eq!(Answer::read(&[-1, 4]), Some(Answer::OtherLimit { recorded: 4 }));
        for other in [&[][..], &[1], &[0, 1], &[0, -1, 5, 1, 1], &[2, 2], &[1, -1]] {
            assert_eq!(Answer::read(other), None, "{other:?}");
        }
    }

    #[test]
    fn a_grant_has_an_id_and_a_token() {
        assert_eq!(read_grant("lockkeeper:ab 12"), Some(("lockkeeper:ab", 12)));
        for other in ["", "lockkeeper:ab", "a -1", "a 1.5"] {
            assert_eq!(read_grant(other), None, "{other}");
        }
    }

    #[test]
    fn the_keys_of_a_mutex_are_those_of_the_protocol() {
        let keys = LockKeys::new(LockName::new("stock").unwrap(), Kind::Mutex).keys;
        assert_eq!(
            keys,
            ["stock", "{stock}:lockkeeper:fence", "{stock}:lockkeeper:queue", "{stock}:lockkeeper:waiters"]
        );
    }
}
