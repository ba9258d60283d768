//! The command line.

use crate::Outcome;
use crate::peers::Peer;
use crate::servers::Kind;

const USAGE: &str = "usage: benches/compare [--quick] [--rounds N] [--only ROW,…] [--add] [--write]
    [--peers lockkeeper,curator,kazoo,governor,redis] [--servers tmpfs,disk,three,far]
  ROW is a part of a row's name, such as handoff; --add keeps the results of earlier runs; --write only writes
  the page anew from them";

/// The comparison to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// Short runs, to see that everything works.
    pub(crate) quick: bool,
    pub(crate) rounds: usize,
    pub(crate) peers: Vec<Peer>,
    /// Parts of rows' names; empty for all rows.
    pub(crate) only: Vec<String>,
    pub(crate) servers: Vec<Kind>,
    /// Whether the results of earlier runs count as well.
    pub(crate) adds: bool,
    /// Whether nothing is measured.
    pub(crate) only_writes: bool,
}

impl Options {
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Outcome<Self> {
        let mut options = Self {
            quick: false,
            rounds: 5,
            peers: Peer::ALL.to_vec(),
            only: Vec::new(),
            servers: Kind::ALL.to_vec(),
            adds: false,
            only_writes: false,
        };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut list = || -> Outcome<Vec<String>> {
                let value = words.next().ok_or_else(|| format!("{word} needs a value\n{USAGE}"))?;
                Ok(value.split(',').map(str::to_owned).collect())
            };
            match word.as_str() {
                "--quick" => (options.quick, options.rounds) = (true, 1),
                "--rounds" => options.rounds = list()?.concat().parse().map_err(|_| USAGE)?,
                "--peers" => options.peers = named(&list()?, &Peer::ALL, Peer::name)?,
                "--only" => options.only = list()?,
                "--servers" => options.servers = named(&list()?, &Kind::ALL, Kind::name)?,
                "--add" => options.adds = true,
                "--write" => options.only_writes = true,
                _ => return Err(USAGE.into()),
            }
        }
        if options.rounds == 0 {
            return Err(USAGE.into());
        }
        Ok(options)
    }

    /// Whether the row called `name` is asked for.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }
}

fn named<T: Copy>(names: &[String], all: &[T], name: impl Fn(T) -> &'static str) -> Outcome<Vec<T>> {
    let find = |asked: &String| {
        let found = all.iter().copied().find(|one| name(*one) == asked);
        found.ok_or_else(|| format!("{asked} is unknown\n{USAGE}").into())
    };
    names.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Outcome<Options> {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn everything_is_compared_unless_less_is_asked_for() {
        let all = parse("").unwrap();
        assert_eq!((all.peers.len(), all.servers.len(), all.wants("herd s=1")), (5, 4, true));
        let some = parse("--peers lockkeeper,curator --servers disk --rounds 2 --only handoff,rw").unwrap();
        assert_eq!((some.peers, some.servers), (vec![Peer::Lockkeeper, Peer::Curator], vec![Kind::Disk]));
        assert_eq!((some.rounds, some.only.len()), (2, 2));
        assert!(parse("--only rw").unwrap().wants("rw s=1") && !parse("--only rw").unwrap().wants("herd"));
    }

    #[test]
    fn what_is_not_known_is_refused_with_what_is() {
        for line in ["--slow", "--rounds", "--rounds 0", "--rounds x", "--peers etcd", "--servers none"] {
            assert!(parse(line).unwrap_err().to_string().contains("usage"), "{line}");
        }
    }
}
