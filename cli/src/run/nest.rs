//! Commands within commands: the program of one command runs another command, and waits for its end.
//!
//! The inner command waits for its lock with a session of its own. So that the diagnosis of deadlocks sees
//! that the outer locks are held meanwhile, the environment passes the owner and its holds to the inner
//! command, whose node names them. No grant depends on it.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process;

use lockkeeper::Owner;
use lockkeeper::inspect::Identity;
use lockkeeper_core::NodeName;

/// The name of the owner: the program of the outermost command, and the process id of that command.
const OWNER: &str = "LOCKKEEPER_OWNER";

/// The create ids of the nodes that the commands hold, with commas between them.
const HOLDS: &str = "LOCKKEEPER_HOLDS";

/// The greatest number of characters of a program in the name of an owner.
const PROGRAM_CHARS_MAX: usize = 40;

/// The greatest number of characters of an owner that the environment names.
const OWNER_CHARS_MAX: usize = 60;

/// The commands around this one, and this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Nest {
    owner: String,
    holds: Vec<String>,
}

impl Nest {
    pub(super) fn of_environment(program: &[OsString]) -> Self {
        let text = |name| env::var(name).unwrap_or_default();
        Self::new(&text(OWNER), &text(HOLDS), program.first())
    }

    fn new(owner: &str, holds: &str, program: Option<&OsString>) -> Self {
        let is_id = |id: &&str| id.len() == 36 && id.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        let holds = holds.split(',').filter(is_id).map(str::to_owned).collect();
        let named = printable(owner, OWNER_CHARS_MAX);
        if !named.is_empty() {
            return Self { owner: named, holds };
        }
        let program = program.map(Path::new).and_then(Path::file_name).unwrap_or_default();
        let program = printable(&program.to_string_lossy(), PROGRAM_CHARS_MAX);
        Self { owner: format!("{program}[{}]", process::id()), holds }
    }

    /// Whether another command runs this one.
    pub(super) fn is_within_another(&self) -> bool {
        !self.holds.is_empty()
    }

    /// The owner of the locks of this command.
    pub(super) fn owner(&self) -> Owner {
        Owner::new(&self.owner)
    }

    /// The data of a lock's nodes: that of the process, and what the commands around this one hold.
    pub(super) fn node_data(&self, process: &[u8]) -> Vec<u8> {
        Identity::append_wait(process, &self.holds, None)
    }

    /// The environment of the program, which holds these nodes as well.
    pub(super) fn environment<'a>(
        &self,
        nodes: impl Iterator<Item = &'a str>,
    ) -> [(&'static str, String); 2] {
        let held = nodes.filter_map(NodeName::create_id).map(str::to_owned);
        let holds: Vec<String> = self.holds.iter().cloned().chain(held).collect();
        [(OWNER, self.owner.clone()), (HOLDS, holds.join(","))]
    }
}

/// The name of a program may have any characters.
fn printable(text: &str, chars_max: usize) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).take(chars_max).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "00c9d435-2596-43a6-90c7-196313af6a00";
    const OTHER: &str = "11c9d435-2596-43a6-90c7-196313af6a11";

    #[test]
    fn the_outermost_command_names_the_owner_and_each_command_adds_its_nodes() {
        let outer = Nest::new("", "", Some(&"/usr/bin/report.sh".into()));
        assert_eq!(outer.owner, format!("report.sh[{}]", process::id()));
        assert_eq!(outer.node_data(b"host=a pid=1"), b"host=a pid=1");
        let [(_, owner), (_, holds)] =
            outer.environment([&*format!("/a/_c_{ONE}-lock-0000000000")].into_iter());
        assert_eq!(holds, ONE);
        let inner = Nest::new(&owner, &holds, Some(&"other".into()));
        assert_eq!(inner.owner, owner);
        assert_eq!(inner.node_data(b"host=a pid=2"), format!("host=a pid=2 holds={ONE}").as_bytes());
        let [_, (_, holds)] = inner.environment([&*format!("/b/_c_{OTHER}-lock-0000000001")].into_iter());
        assert_eq!(holds, format!("{ONE},{OTHER}"));
    }

    #[test]
    fn an_environment_that_no_command_made_names_no_holds() {
        let nest = Nest::new("a\nb", &format!("x,{ONE} holds=,,"), None);
        assert_eq!((nest.owner.as_str(), nest.holds.len()), ("a?b", 0));
        assert_eq!(Nest::new(&"x".repeat(100), "", None).owner.len(), OWNER_CHARS_MAX);
    }
}
