//! What `/proc` says of a process. A group or a session whose leader is outside of this PID namespace has the
//! number 0, which is no process, and a panic of the library for system calls; here it is `None`.

use std::fs;

use rustix::process::{Pid, getpid};

/// The relations of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    pub(crate) parent: Option<Pid>,
    pub(crate) group: Option<Pid>,
    pub(crate) session: Option<Pid>,
}

impl ProcessStat {
    pub(crate) fn of(pid: Pid) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?)
    }

    pub(crate) fn of_this() -> Option<Self> {
        Self::of(getpid())
    }

    /// Reads a line of `/proc/PID/stat`. The name of the program is in parentheses, and may have any
    /// characters.
    pub(super) fn parse(stat: &str) -> Option<Self> {
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(1);
        let mut next = || fields.next()?.parse::<i32>().ok().map(|pid| Pid::from_raw(pid.max(0)));
        Some(Self { parent: next()?, group: next()?, session: next()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(parent: i32, group: i32, session: i32) -> ProcessStat {
        let [parent, group, session] = [parent, group, session].map(Pid::from_raw);
        ProcessStat { parent, group, session }
    }

    #[test]
    fn the_relations_are_read_behind_any_name() {
        assert_eq!(ProcessStat::parse("42 (cat) S 7 42 41 0 -1"), Some(stat(7, 42, 41)));
        assert_eq!(ProcessStat::parse("42 (a) b (c) R 8 42 42 0 -1"), Some(stat(8, 42, 42)));
        // Their leaders are outside of the namespace.
        assert_eq!(ProcessStat::parse("1 (lockkeeper) S 0 0 0 34816 -1"), Some(stat(0, 0, 0)));
        assert_eq!(ProcessStat::parse("42 (cat) S 7"), None);
        assert_eq!(ProcessStat::parse(""), None);
    }
}
