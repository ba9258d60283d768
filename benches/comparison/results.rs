//! The measurements: one line for each run.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Outcome;
use crate::servers::Kind;
use crate::statistics::{Spread, ratios};

/// Lines as the load generators print them, with `servers`, `row` and `round` besides, kept in a file as
/// well.
#[derive(Debug)]
pub(crate) struct Results {
    file: PathBuf,
    lines: Vec<Value>,
}

impl Results {
    pub(crate) fn at(file: PathBuf) -> Self {
        Self { file, lines: Vec::new() }
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Reads what earlier runs left.
    pub(crate) fn load(&mut self) -> Outcome<()> {
        let text =
            fs::read_to_string(&self.file).map_err(|error| format!("{}: {error}", self.file.display()))?;
        self.lines = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Makes the file say what is known, and no more.
    pub(crate) fn begin(&self) -> Outcome<()> {
        let mut file = File::create(&self.file)?;
        self.lines.iter().try_for_each(|line| writeln!(file, "{line}"))?;
        Ok(())
    }

    pub(crate) fn add(&mut self, line: Value) -> Outcome<()> {
        writeln!(File::options().append(true).open(&self.file)?, "{line}")?;
        self.lines.push(line);
        Ok(())
    }

    /// The number of the next round: those of earlier runs have theirs.
    pub(crate) fn next_round(&self) -> u64 {
        self.lines.iter().filter_map(|line| line.get("round")?.as_u64()).max().map_or(0, |last| last + 1)
    }

    /// The figures called `field`, with their rounds.
    fn figures(&self, kind: Kind, row: &str, peer: &str, field: &str) -> Vec<(u64, f64)> {
        let text =
            |line: &Value, name: &str, value: &str| line.get(name).and_then(Value::as_str) == Some(value);
        let lines = self.lines.iter().filter(|line| {
            text(line, "servers", kind.name()) && text(line, "row", row) && text(line, "peer", peer)
        });
        lines.filter_map(|line| Some((line.get("round")?.as_u64()?, line.get(field)?.as_f64()?))).collect()
    }

    pub(crate) fn spread(&self, kind: Kind, row: &str, peer: &str, field: &str) -> Option<Spread> {
        Spread::of(self.figures(kind, row, peer, field).into_iter().map(|(_, figure)| figure))
    }

    pub(crate) fn median(&self, kind: Kind, row: &str, peer: &str, field: &str) -> Option<f64> {
        self.spread(kind, row, peer, field).map(|spread| spread.median)
    }

    /// Ours divided by `peer`'s in the same round.
    pub(crate) fn ratio(&self, kind: Kind, row: &str, peer: &str, field: &str) -> Option<Spread> {
        let theirs = self.figures(kind, row, peer, field);
        let ours = self.figures(kind, row, "lockkeeper", field);
        ratios(ours.iter().filter_map(|(round, ours)| {
            let beside = theirs.iter().find(|(other, _)| other == round);
            beside.map(|(_, theirs)| (*ours, *theirs))
        }))
    }

    /// The results of each round by itself.
    pub(crate) fn by_round(&self) -> Vec<Self> {
        let of = |line: &&Value, round| line.get("round").and_then(Value::as_u64) == Some(round);
        let rounds = (0..self.next_round()).map(|round| {
            let lines = self.lines.iter().filter(|line| of(line, round)).cloned().collect();
            Self { file: self.file.clone(), lines }
        });
        rounds.collect()
    }

    /// How many rounds there were of a row.
    pub(crate) fn rounds_of(&self, kind: Kind, row: &str) -> usize {
        self.figures(kind, row, "lockkeeper", "round").len()
    }

    /// Whether anything was measured on these servers.
    pub(crate) fn has(&self, kind: Kind) -> bool {
        self.lines.iter().any(|line| line.get("servers").and_then(Value::as_str) == Some(kind.name()))
    }

    /// Runs that broke exclusion, had stuck workers, or failed.
    pub(crate) fn troubles(&self) -> Vec<String> {
        let text =
            |line: &Value, name: &str| line.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let trouble = |line: &Value| {
            let count = |name: &str| line.get(name).and_then(Value::as_u64).unwrap_or_default();
            let what = match (count("violations"), count("stuck_workers")) {
                (0, 0) => line.get("failure")?.as_str()?.to_owned(),
                (violations, stuck) => format!("{violations} violations, {stuck} stuck workers"),
            };
            Some(format!("{}, {}, {}: {what}", text(line, "peer"), text(line, "row"), text(line, "servers")))
        };
        self.lines.iter().filter_map(trouble).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ratios_are_of_the_same_round() {
        let line = |peer: &str, round: u64, ops: f64| {
            json!({
                "servers": "tmpfs", "row": "herd", "peer": peer, "round": round, "ops_s": ops,
            })
        };
        let lines = vec![
            line("lockkeeper", 0, 20.0),
            line("curator", 1, 1.0),
            line("curator", 0, 10.0),
            line("lockkeeper", 1, 3.0),
            line("lockkeeper", 2, 99.0),
        ];
        let results = Results { file: PathBuf::new(), lines };
        let ratio = results.ratio(Kind::Tmpfs, "herd", "curator", "ops_s").unwrap();
        assert_eq!((ratio.least, ratio.median, ratio.greatest), (2.0, 2.5, 3.0));
        assert_eq!((results.next_round(), results.rounds_of(Kind::Tmpfs, "herd")), (3, 3));
        assert!(results.has(Kind::Tmpfs) && !results.has(Kind::Disk));
        assert_eq!(results.ratio(Kind::Disk, "herd", "curator", "ops_s"), None);
    }

    #[test]
    fn broken_exclusion_is_reported() {
        let line =
            json!({ "servers": "disk", "row": "herd", "peer": "kazoo", "violations": 1, "stuck_workers": 0 });
        let results = Results { file: PathBuf::new(), lines: vec![line] };
        assert_eq!(results.troubles(), ["kazoo, herd, disk: 1 violations, 0 stuck workers"]);
    }
}
