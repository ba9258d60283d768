//! The processes below a process: its children, their children, and so on.

use std::collections::BTreeMap;
use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group, wait};

use super::process_stat::ProcessStat;

/// What a look at the children of this process found.
#[derive(Debug)]
pub(crate) enum Reaped {
    /// This child has ended, or was stopped.
    Child(Pid, WaitStatus),
    /// No child changed.
    Nothing,
    /// There is no child at all.
    NoChild,
}

/// The next change of a child of this process.
pub(crate) fn reap() -> Reaped {
    loop {
        match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
            Ok(Some((pid, status))) => return Reaped::Child(pid, status),
            Ok(None) => return Reaped::Nothing,
            Err(Errno::INTR) => {}
            Err(_) => return Reaped::NoChild,
        }
    }
}

/// Sends the signal to the process group, if a process below `root` is in it. The system gives the number of
/// an empty group again, and then the group is a stranger's.
pub(crate) fn signal_group(root: Pid, group: Pid, signal: Signal) {
    let all = processes();
    let in_group = |pid: &i32| all.iter().any(|(of, stat)| of == pid && stat.group == Some(group));
    if below(root.as_raw_pid(), &parents(&all)).iter().any(in_group) {
        // It may be empty by now.
        let _ = kill_process_group(group, signal);
    }
}

/// Kills every process below `root`, wherever it moved, and not `root`. A process that one of them starts
/// meanwhile is found by the next call: call again until no child is left.
pub(crate) fn kill_below(root: Pid) {
    signal_below(root, &[Signal::KILL]);
}

/// The children of a process.
pub(crate) fn children(parent: Pid) -> Vec<Pid> {
    let is_child = |(pid, of): (i32, i32)| (of == parent.as_raw_pid()).then(|| Pid::from_raw(pid)).flatten();
    parents(&processes()).into_iter().filter_map(is_child).collect()
}

/// Sends these signals to every process below `root`, and not to `root`.
pub(crate) fn signal_below(root: Pid, signals: &[Signal]) {
    for pid in below(root.as_raw_pid(), &parents(&processes())).into_iter().filter_map(Pid::from_raw) {
        for signal in signals {
            // It may have ended.
            let _ = kill_process(pid, *signal);
        }
    }
}

/// All processes that this one sees.
fn processes() -> Vec<(i32, ProcessStat)> {
    let Ok(folder) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = folder.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| Some((pid, ProcessStat::of(Pid::from_raw(pid)?)?))).collect()
}

/// The parent of each.
fn parents(processes: &[(i32, ProcessStat)]) -> Vec<(i32, i32)> {
    processes.iter().filter_map(|(pid, stat)| Some((*pid, stat.parent?.as_raw_pid()))).collect()
}

/// The processes below `root`, in no order.
fn below(root: i32, parents: &[(i32, i32)]) -> Vec<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for (pid, parent) in parents {
        children.entry(*parent).or_default().push(*pid);
    }
    let mut found = Vec::new();
    // Each process is visited once, because its list is taken away.
    let mut to_visit = children.remove(&root).unwrap_or_default();
    while let Some(pid) = to_visit.pop() {
        found.push(pid);
        to_visit.extend(children.remove(&pid).unwrap_or_default());
    }
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::Command;

    use rustix::process::getpid;

    use super::*;

    #[test]
    fn every_process_below_is_found_and_no_other() {
        let parents = [(10, 1), (11, 10), (12, 11), (13, 10), (20, 1), (21, 20), (1, 0)];
        let mut found = below(10, &parents);
        found.sort_unstable();
        assert_eq!(found, [11, 12, 13]);
        assert!(below(99, &parents).is_empty());
        // Read while processes end and start, the pairs may close a circle.
        assert_eq!(below(5, &[(6, 5), (5, 6)]).len(), 2);
    }

    #[test]
    fn a_group_gets_a_signal_only_while_a_process_below_is_in_it() {
        // Nothing is below it, as if its group were a stranger's.
        for (root, ends_by) in [(None, Signal::KILL), (Some(getpid()), Signal::TERM)] {
            let mut child = Command::new("sleep").arg("1000").process_group(0).spawn().unwrap();
            let group = Pid::from_raw(child.id().cast_signed()).unwrap();
            signal_group(root.unwrap_or(group), group, Signal::TERM);
            // It ends by the first of its signals.
            let _ = kill_process(group, Signal::KILL);
            assert_eq!(child.wait().unwrap().signal(), Some(ends_by.as_raw()));
        }
    }
}
