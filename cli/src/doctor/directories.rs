//! The directories of locks below a root: their counters, their nodes, and their sizes.

use std::collections::BTreeSet;

use lockkeeper::ConnectionManager;
use lockkeeper::inspect::{ContenderInfo, NodeInfo, Role, Survey, SurveyGroup};
use lockkeeper::znodes::Stat;

use super::finding::Finding;
use super::limits::PACKET_MAX;
use super::options::DoctorOptions;
use crate::escape::printable;
use crate::exit::Failure;
use crate::partial::partial;

/// A counter beyond this many creates is near its end, 2³¹ − 1.
const COUNTER_WARN: i32 = 1_900_000_000;

pub(super) async fn examine(
    manager: &ConnectionManager,
    options: &DoctorOptions,
) -> Result<Vec<Finding>, Failure> {
    let root = &options.root;
    let survey = Survey::below_with(manager, &**root, options.nodes).await?;
    let mut findings = Vec::new();
    let mut directories = BTreeSet::new();
    for contender in survey.locks().iter().flat_map(lockkeeper::Inspection::contenders) {
        directories.extend(contender.path().rsplit_once('/').map(|(directory, _)| directory.to_owned()));
        findings.extend(judge_node(contender));
    }
    for directory in &directories {
        // A directory may be gone meanwhile.
        let Some((_, stat)) = manager.znodes().read(directory).await? else { continue };
        let names = manager.znodes().children(directory).await?.unwrap_or_default();
        findings.extend(judge_directory(directory, &stat, &names));
    }
    findings.extend(survey.groups().iter().filter_map(judge_group));
    let count = format!("{} directories of locks in use below {root}", directories.len());
    findings.push(match partial(&survey, options.nodes) {
        Some(why) => Finding::warn(format_args!("{count} were seen, PARTIAL"), why),
        None if findings.is_empty() => Finding::ok(format!("{count}, all in order")),
        None => Finding::ok(count),
    });
    Ok(findings)
}

fn judge_node(contender: &ContenderInfo) -> Option<Finding> {
    if contender.role() == Role::Foreign {
        return Some(Finding::bad(
            format_args!("{} is no contender of its lock", contender.path()),
            "delete it, or give each kind of lock a path of its own: acquires may fail with ConflictingKind",
        ));
    }
    (contender.session() == 0).then(|| {
        Finding::bad(
            format_args!("{} has the name of a contender and no session", contender.path()),
            "no crash will ever remove it: delete it if no process owns it",
        )
    })
}

fn judge_group(group: &SurveyGroup) -> Option<Finding> {
    let unowned: Vec<&str> = group.unowned().iter().take(3).map(NodeInfo::name).collect();
    let more = if group.unowned().len() > unowned.len() { ", …" } else { "" };
    let names = printable(&unowned.join(", "));
    (!unowned.is_empty()).then(|| {
        Finding::warn(
            format_args!(
                "{}: {names}{more} beside ephemeral nodes is persistent",
                printable(group.path().as_str())
            ),
            "in a group, a partition or a barrier it is no member, and no crash removes it: delete it there",
        )
    })
}

fn judge_directory(directory: &str, stat: &Stat, names: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let made = stat.children_made();
    if !(0..COUNTER_WARN).contains(&made) {
        findings.push(Finding::bad(
            format_args!("{directory} has had {} of 2147483647 children", made.cast_unsigned()),
            "a read/write lock fails at the end: delete the directory while it is unused",
        ));
    }
    let size: u64 = names.iter().filter_map(|name| u64::try_from(name.len() + 4).ok()).sum();
    if size > PACKET_MAX / 2 {
        findings.push(Finding::warn(
            format_args!("the list of {directory} has {size} bytes"),
            format_args!("Java's clients read at most {PACKET_MAX} by default: raise their jute.maxbuffer"),
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;
    use lockkeeper::znodes::Zxid;

    fn stat(child_version: i32) -> Stat {
        Stat {
            czxid: Zxid::new(1),
            mzxid: Zxid::new(1),
            pzxid: Zxid::new(1),
            ctime: 0,
            mtime: 0,
            version: 0,
            child_version,
            ephemeral_owner: 0,
            data_length: 0,
            children: 0,
        }
    }

    #[test]
    fn a_directory_is_judged_by_its_counter_and_its_size() {
        assert!(judge_directory("/a", &stat(10), &[]).is_empty());
        // The version counts creates and deletes, and may have overflowed.
        let full = judge_directory("/a", &stat(-400_000_000), &[]);
        assert!(matches!(&full[..], [finding] if finding.level == Level::Bad), "{full:?}");
        let names = vec!["_c_00c9d435-2596-43a6-90c7-196313af6a00-lock-0000000000".to_owned(); 20_000];
        let large = judge_directory("/a", &stat(10), &names);
        assert!(matches!(&large[..], [finding] if finding.text.contains("jute.maxbuffer")));
    }
}
