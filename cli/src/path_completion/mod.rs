//! The paths of nodes that begin as what is typed, from the servers. A shell asks for them at each press of
//! the key, so the time is short, and whatever goes wrong is no message in the middle of a command line.

mod typed;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, Parser};
use lockkeeper::{ConnectionManager, Error};
use tokio::time::timeout;

use self::typed::Typed;
use crate::escape::is_printable;
use crate::exit::Exit;
use crate::nodes::is_contender;
use crate::options::Options;
use crate::output::say_exactly;

/// The first argument by which the completion of a shell starts the command.
pub(crate) const NAME: &str = "__paths";

/// How long a server may take to be reached, and how long the nodes may take.
const LIMIT: Duration = Duration::from_secs(1);

/// Prints the paths that may follow, one a line. The words are those of the command line, from the name of
/// the command to the one at the cursor. Exit code 1: that one is no path of a node.
pub(crate) fn main(words: impl Iterator<Item = OsString>) -> ExitCode {
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let mut command = Options::command();
    command.build();
    let Some(typed) = Typed::of(&command, &words) else { return Exit::NO.into() };
    for path in found(&typed).unwrap_or_default() {
        if say_exactly(&format!("{}{path}", typed.before)).is_err() {
            break;
        }
    }
    Exit::SUCCESS.into()
}

/// `None` if nobody can be asked.
fn found(typed: &Typed) -> Option<Vec<String>> {
    let words = ["lockkeeper"].into_iter().chain(typed.flags.iter().map(String::as_str)).chain(["ls", "/"]);
    let options = Options::try_parse_from(words).ok()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let mut found = Vec::new();
    let asked = options.connection.with_session_within(Some(LIMIT), async |manager| {
        if let Ok(Ok(paths)) = timeout(LIMIT, following(manager, typed)).await {
            found = paths;
        }
        Ok(Exit::SUCCESS)
    });
    let asked = runtime.block_on(asked);
    runtime.shutdown_background();
    asked.ok().map(|_| found)
}

/// The nodes whose paths begin as what is typed. If there is one alone, and others are below it, it is also
/// there with a slash: so the shell adds no space behind it.
async fn following(manager: &ConnectionManager, typed: &Typed) -> Result<Vec<String>, Error> {
    let (above, begun) = typed.path.rsplit_once('/').unwrap_or_default();
    let mut found = children(manager, above, begun, typed.any_node).await?;
    if let [only] = found.as_slice()
        && !children(manager, only, "", typed.any_node).await?.is_empty()
    {
        let within = format!("{only}/");
        found.push(within);
    }
    Ok(found)
}

/// The nodes below `above` whose names begin so, in order. Names that a terminal does not show as they are
/// cannot be typed.
async fn children(
    manager: &ConnectionManager,
    above: &str,
    begun: &str,
    any_node: bool,
) -> Result<Vec<String>, Error> {
    let parent = if above.is_empty() { "/" } else { above };
    let mut names = manager.znodes().children(parent).await?.unwrap_or_default();
    names.retain(|name| name.starts_with(begun) && name.chars().all(is_printable));
    names.retain(|name| any_node || !is_contender(name));
    names.sort_unstable();
    Ok(names.into_iter().map(|name| format!("{above}/{name}")).collect())
}
