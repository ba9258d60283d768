//! The command line.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use thiserror::Error;

/// Every scenario with its keys and their defaults. All of them have `threads` and `timeout` as well.
const SCENARIOS: &[(&str, &[(&str, &str)])] = &[
    ("uncontended", &[("n", "1000"), ("warmn", "200"), ("release", "await"), ("keep", "0")]),
    ("handoff", &[("w", "10"), ("s", "2"), ("t", "5"), ("warm", "1"), ("hold", "0"), ("keep", "0")]),
    ("elect", &[("w", "10"), ("s", "2"), ("t", "5"), ("warm", "1"), ("hold", "0")]),
    ("failover", &[("n", "5"), ("tick", "2000")]),
    ("lead", &[("of", "1")]),
    ("expire", &[("k", "100"), ("n", "5")]),
    ("register", &[("of", "1"), ("k", "100")]),
    ("rw", &[("w", "10"), ("s", "2"), ("readpct", "90"), ("t", "5"), ("warm", "1"), ("keep", "0")]),
    ("semaphore", &[("w", "32"), ("s", "2"), ("leases", "10"), ("t", "5"), ("warm", "1"), ("keep", "0")]),
    ("admit", ADMIT),
    ("queue", QUEUE),
    ("keyed", &[("k", "1000"), ("w", "100"), ("s", "1"), ("limit", "10"), ("window", "10000")]),
    ("count", &[("w", "10"), ("s", "1"), ("t", "5"), ("warm", "1")]),
    ("multi", &[("k", "5"), ("n", "1000"), ("warmn", "200")]),
    ("many", &[("w", "100"), ("s", "1"), ("k", "100"), ("pool", "0"), ("t", "5"), ("warm", "1")]),
    ("herd", &[("w", "200"), ("s", "2")]),
    ("keep", &[("k", "1000"), ("s", "1"), ("pool", "0")]),
    ("table", &[("w", "10"), ("s", "2"), ("k", "1000"), ("t", "5"), ("warm", "1")]),
    ("view", &[("k", "10000"), ("n", "1000"), ("warmn", "200")]),
    ("members", &[("w", "10"), ("s", "2"), ("k", "1000"), ("t", "5"), ("warm", "1")]),
    ("rebalance", &[("w", "4"), ("s", "4"), ("k", "64"), ("n", "10"), ("warmn", "1")]),
    ("lookup", &[("k", "100"), ("w", "4"), ("n", "1000"), ("warmn", "200")]),
    ("bare", &[("w", "1"), ("s", "1"), ("t", "5"), ("warm", "1")]),
];

/// The window is in milliseconds, and the grace too; 0: the default one.
const ADMIT: &[(&str, &str)] = &[
    ("w", "32"),
    ("s", "2"),
    ("limit", "1000"),
    ("window", "1000"),
    ("objects", "0"),
    ("ahead", "0"),
    ("grace", "0"),
    ("try", "0"),
    ("by", "lockkeeper"),
    ("t", "5"),
    ("warm", "1"),
];

/// Producers and takers. `ahead` items wait at most, besides those that wait before the load begins.
const QUEUE: &[(&str, &str)] = &[
    ("p", "10"),
    ("w", "10"),
    ("s", "2"),
    ("batch", "1"),
    ("waiting", "0"),
    ("ahead", "1000"),
    ("bytes", "100"),
    ("t", "5"),
    ("warm", "1"),
];

/// `threads=0` is a thread for each core, `threads=1` one for everything. `timeout` is the session's, in
/// seconds.
const COMMON: &[(&str, &str)] = &[("threads", "0"), ("timeout", "30")];

/// Keys that may be zero.
const MAY_BE_ZERO: &[&str] = &[
    "warmn", "warm", "hold", "readpct", "pool", "threads", "keep", "objects", "ahead", "grace", "try",
    "waiting",
];

/// Keys of a span, which may have a fraction.
const SECONDS: &[&str] = &["t", "warm", "timeout"];

/// The arguments of the command line.
#[derive(Debug)]
pub(crate) struct Arguments {
    servers: String,
    scenario: &'static str,
    values: BTreeMap<&'static str, String>,
}

/// An invalid command line.
#[derive(Debug, Error)]
pub(crate) enum ArgumentError {
    #[error("usage: lockkeeper-bench CONNECT SCENARIO key=value…, such as localhost:2181 uncontended n=1000")]
    Usage,
    #[error("{0} is not key=value")]
    Pair(String),
    #[error("there is no scenario {asked}; take {known}")]
    Scenario { asked: String, known: String },
    #[error("{scenario} has no key {key}; it has {known}")]
    Key { scenario: &'static str, key: String, known: String },
    #[error("{key}={value}: {expected}")]
    Value { key: &'static str, value: String, expected: &'static str },
}

impl Arguments {
    /// Reads the words behind the program's name.
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, ArgumentError> {
        let mut words = words.into_iter();
        let (Some(servers), Some(asked)) = (words.next(), words.next()) else {
            return Err(ArgumentError::Usage);
        };
        let Some((scenario, own)) = SCENARIOS.iter().find(|(name, _)| *name == asked) else {
            let known = SCENARIOS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
            return Err(ArgumentError::Scenario { asked, known });
        };
        let known = || own.iter().chain(COMMON);
        let mut values: BTreeMap<_, _> = known().map(|(key, value)| (*key, (*value).to_owned())).collect();
        for word in words {
            let Some((key, value)) = word.split_once('=') else {
                return Err(ArgumentError::Pair(word));
            };
            let Some((key, _)) = known().find(|(name, _)| *name == key) else {
                let known = known().map(|(key, _)| *key).collect::<Vec<_>>().join(", ");
                return Err(ArgumentError::Key { scenario, key: key.to_owned(), known });
            };
            check(key, value)?;
            values.insert(key, value.to_owned());
        }
        Ok(Self { servers, scenario, values })
    }

    /// The connect string.
    pub(crate) fn servers(&self) -> &str {
        &self.servers
    }

    /// The scenario.
    pub(crate) fn scenario(&self) -> &'static str {
        self.scenario
    }

    /// The number behind `key`.
    pub(crate) fn number(&self, key: &'static str) -> Result<u64, ArgumentError> {
        let value = self.values.get(key).map_or("", String::as_str);
        value.parse().map_err(|_| number_expected(key, value))
    }

    /// The number behind `key`, as a count of things in memory.
    pub(crate) fn size(&self, key: &'static str) -> Result<usize, ArgumentError> {
        Ok(usize::try_from(self.number(key)?).unwrap_or(usize::MAX))
    }

    /// The seconds behind `key`.
    pub(crate) fn seconds(&self, key: &'static str) -> Result<Duration, ArgumentError> {
        let value = self.values.get(key).map_or("", String::as_str);
        seconds(value).ok_or_else(|| seconds_expected(key, value))
    }

    /// The word behind `key`.
    pub(crate) fn word(&self, key: &'static str) -> &str {
        self.values.get(key).map_or("", String::as_str)
    }

    /// All keys and their values, as they were given or are by default.
    pub(crate) fn params(&self) -> Value {
        let pairs = self.values.iter().map(|(key, value)| {
            let number =
                value.parse::<u64>().map(Value::from).or_else(|_| value.parse::<f64>().map(Value::from));
            ((*key).to_owned(), number.unwrap_or_else(|_| value.as_str().into()))
        });
        Value::Object(pairs.collect())
    }
}

/// A number of seconds, with a fraction if it has one.
fn seconds(value: &str) -> Option<Duration> {
    value.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

fn seconds_expected(key: &'static str, value: &str) -> ArgumentError {
    ArgumentError::Value { key, value: value.to_owned(), expected: "a number of seconds" }
}

fn check(key: &'static str, value: &str) -> Result<(), ArgumentError> {
    let wrong = |expected| Err(ArgumentError::Value { key, value: value.to_owned(), expected });
    if key == "release" {
        return if matches!(value, "await" | "drop") { Ok(()) } else { wrong("await or drop") };
    }
    if key == "by" {
        return if matches!(value, "lockkeeper" | "governor") {
            Ok(())
        } else {
            wrong("lockkeeper or governor")
        };
    }
    if SECONDS.contains(&key) {
        return match seconds(value) {
            None => Err(seconds_expected(key, value)),
            Some(Duration::ZERO) if !MAY_BE_ZERO.contains(&key) => wrong("more than 0"),
            Some(_) => Ok(()),
        };
    }
    match value.parse::<u64>() {
        Err(_) => Err(number_expected(key, value)),
        Ok(0) if !MAY_BE_ZERO.contains(&key) => wrong("at least 1"),
        Ok(percent) if key == "readpct" && percent > 100 => wrong("at most 100"),
        Ok(_) => Ok(()),
    }
}

fn number_expected(key: &'static str, value: &str) -> ArgumentError {
    ArgumentError::Value { key, value: value.to_owned(), expected: "a whole number" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, ArgumentError> {
        Arguments::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn keys_are_read_and_others_have_defaults() {
        let arguments = parse("host:1 handoff w=3 t=2").unwrap();
        assert_eq!((arguments.number("w").unwrap(), arguments.size("s").unwrap()), (3, 2));
        assert_eq!(arguments.seconds("t").unwrap(), Duration::from_secs(2));
        let brief = parse("host:1 handoff t=0.25").unwrap();
        assert_eq!(
            (brief.seconds("t").unwrap(), &brief.params()["t"]),
            (Duration::from_millis(250), &0.25.into())
        );
        assert_eq!(arguments.params()["w"], 3);
        assert_eq!(parse("h uncontended release=drop").unwrap().params()["release"], "drop");
    }

    #[test]
    fn what_cannot_be_done_is_refused_with_what_can() {
        for (line, word) in [
            ("", "usage"),
            ("host:1", "usage"),
            ("host:1 dance", "uncontended, handoff"),
            ("host:1 herd x=1", "has w, s"),
            ("host:1 herd w", "key=value"),
            ("host:1 herd w=-1", "whole number"),
            ("host:1 herd w=0", "at least 1"),
            ("host:1 handoff t=-1", "seconds"),
            ("host:1 handoff t=nan", "seconds"),
            ("host:1 handoff t=0", "more than 0"),
            ("host:1 rw readpct=101", "at most 100"),
            ("host:1 uncontended release=never", "await or drop"),
            ("host:1 admit by=nobody", "lockkeeper or governor"),
        ] {
            let message = parse(line).unwrap_err().to_string();
            assert!(message.contains(word), "{line}: {message}");
        }
    }

    #[test]
    fn what_may_be_zero_may_be_zero() {
        assert_eq!(parse("host:1 rw readpct=0 warm=0").unwrap().number("readpct").unwrap(), 0);
    }
}
