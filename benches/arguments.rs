use std::collections::BTreeMap;

use thiserror::Error;

/// What was asked for on the command line.
#[derive(Debug)]
pub(crate) struct Arguments {
    servers: String,
    scenario: String,
    keys: BTreeMap<String, u64>,
}

/// A command line that asks for nothing we can do.
#[derive(Debug, Error)]
pub(crate) enum ArgumentError {
    #[error("usage: lockkeeper-bench CONNECT SCENARIO key=value…, such as localhost:2181 uncontended n=1000")]
    Usage,
    #[error("{0} is not key=number")]
    Pair(String),
    #[error("there is no scenario {0}; take uncontended, handoff, many or herd")]
    Scenario(String),
    #[error("{scenario} has no key {key}; it has {known}")]
    Key { scenario: String, key: String, known: String },
    #[error("{0} must be at least 1")]
    Zero(String),
}

impl Arguments {
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, ArgumentError> {
        let mut words = words.into_iter();
        let (Some(servers), Some(scenario)) = (words.next(), words.next()) else {
            return Err(ArgumentError::Usage);
        };
        let known: &[&str] = match scenario.as_str() {
            "uncontended" => &["n", "warmn"],
            "handoff" => &["w", "s", "t"],
            "many" => &["w", "k", "s", "t"],
            "herd" => &["w", "s"],
            _ => return Err(ArgumentError::Scenario(scenario)),
        };
        let mut keys = BTreeMap::new();
        for word in words {
            let pair =
                word.split_once('=').and_then(|(key, value)| Some((key.to_owned(), value.parse().ok()?)));
            let (key, value) = pair.ok_or(ArgumentError::Pair(word))?;
            if !known.contains(&key.as_str()) {
                return Err(ArgumentError::Key { scenario, key, known: known.join(", ") });
            }
            if value == 0 && key != "warmn" {
                return Err(ArgumentError::Zero(key));
            }
            keys.insert(key, value);
        }
        Ok(Self { servers, scenario, keys })
    }

    pub(crate) fn servers(&self) -> &str {
        &self.servers
    }

    pub(crate) fn scenario(&self) -> &str {
        &self.scenario
    }

    pub(crate) fn number(&self, key: &str, default: u64) -> u64 {
        self.keys.get(key).copied().unwrap_or(default)
    }

    /// The keys as they were given.
    pub(crate) fn given(&self) -> String {
        self.keys.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
    }
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
        assert_eq!((arguments.number("w", 10), arguments.number("s", 7)), (3, 7));
        assert_eq!(arguments.given(), "t=2 w=3");
    }

    #[test]
    fn what_cannot_be_done_is_refused_with_what_can() {
        for (line, word) in [
            ("", "usage"),
            ("host:1", "usage"),
            ("host:1 dance", "uncontended, handoff"),
            ("host:1 herd x=1", "has w, s"),
            ("host:1 herd w", "key=number"),
            ("host:1 herd w=-1", "key=number"),
            ("host:1 herd w=0", "at least 1"),
        ] {
            let message = parse(line).unwrap_err().to_string();
            assert!(message.contains(word), "{line}: {message}");
        }
    }
}
