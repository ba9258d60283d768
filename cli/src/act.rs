//! `revoke` and `release`: what is done to contenders. Both act on the nodes that were shown, and never on a
//! later contender.

use std::io::{self, IsTerminal, Write};

use clap::Args;
use lockkeeper::inspect::{ContenderInfo, Role};
use lockkeeper::znodes::Zxid;
use lockkeeper::{ConnectionManager, Inspection, Revoker};

use crate::connection::ConnectionOptions;
use crate::exit::{Exit, Failure};
use crate::inspect::parse_path;
use crate::inspect::print::{age, fence, name, token};
use crate::output::say;

#[derive(Debug, Args)]
pub(crate) struct RevokeOptions {
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct ReleaseOptions {
    #[command(flatten)]
    target: Target,

    /// Delete the node although its holder may still be working: without this flag nothing is done
    #[arg(long)]
    force: bool,

    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

/// The contender that the command acts on.
#[derive(Debug, Args)]
struct Target {
    /// The path of the lock
    path: String,

    /// The czxid of one node, as inspect and deadlocks print it [default: every holder]
    #[arg(long, value_name = "CZXID", value_parser = parse_czxid)]
    node: Option<Zxid>,
}

fn parse_czxid(text: &str) -> Result<Zxid, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let number = u64::from_str_radix(digits, 16).map(|number| Zxid::new(number.cast_signed()));
    number.map_err(|_| "it is no czxid; give it as inspect prints it, 0x1f2".to_owned())
}

/// Asks the holders to release.
pub(crate) async fn revoke(connection: &ConnectionOptions, options: RevokeOptions) -> Result<Exit, Failure> {
    connection
        .with_session(async |manager| {
            let chosen = options.target.choose(manager).await?;
            if chosen.is_empty() {
                say("nobody holds it")?;
                return Ok(Exit::NO);
            }
            let asked = Revoker::new(manager).ask(&chosen).await.map_err(lockkeeper::Error::from)?;
            for node in &asked {
                say(&format!("asked {}  [{}]", name(node), node.czxid()))?;
            }
            if asked.is_empty() {
                say("nobody was asked: the nodes do not exist any more")?;
                return Ok(Exit::NO);
            }
            say("a holder that listens releases when it is ready; another holder is not disturbed")?;
            Ok(Exit::SUCCESS)
        })
        .await
}

/// Takes the lock away from its holders.
pub(crate) async fn release(
    connection: &ConnectionOptions,
    options: ReleaseOptions,
) -> Result<Exit, Failure> {
    if !options.force {
        return Err(Failure::usage(
            "only the holder can release its lock; ask the holder by revoke, \
             or take the lock away by --force",
        ));
    }
    connection
        .with_session(async |manager| {
            let chosen = options.target.choose(manager).await?;
            if chosen.is_empty() {
                say("nobody holds it")?;
                return Ok(Exit::NO);
            }
            say(&meaning(&options.target.path, &chosen))?;
            if !options.yes && !confirm().await? {
                say("nothing was done")?;
                return Ok(Exit::NO);
            }
            let gone = Revoker::new(manager).force_release(&chosen).await.map_err(lockkeeper::Error::from)?;
            for node in &gone {
                say(&format!("deleted {}  [{}]", node.path(), node.czxid()))?;
            }
            if gone.is_empty() {
                say("nothing was done: the nodes that were shown do not exist any more")?;
                return Ok(Exit::NO);
            }
            Ok(Exit::SUCCESS)
        })
        .await
}

impl Target {
    /// The nodes as they are now. What happens later concerns these nodes alone.
    async fn choose(&self, manager: &ConnectionManager) -> Result<Vec<ContenderInfo>, Failure> {
        let lock = Inspection::of_path(manager, parse_path(&self.path)?).await?;
        let is_chosen = |of: &&ContenderInfo| match self.node {
            Some(czxid) => of.czxid() == czxid && matches!(of.role(), Role::Holder | Role::Waiter),
            None => of.role() == Role::Holder,
        };
        Ok(lock.iter().flat_map(Inspection::contenders).filter(is_chosen).cloned().collect())
    }
}

/// What it means to ask the holders of this lock.
pub(crate) fn request(path: &str, chosen: &[ContenderInfo]) -> String {
    format!(
        "this asks for a release of {path}{}\nthe program of a command lockkeeper gets SIGTERM; another \
         holder releases when it is ready, or is not disturbed",
        list(chosen)
    )
}

/// The nodes, one a line.
fn list(chosen: &[ContenderInfo]) -> String {
    let mut text = String::new();
    for node in chosen {
        text.push_str(&format!("\n  {}  [{}]  for {}", name(node), node.czxid(), age(node.age())));
        if let Some(token) = token(node) {
            text.push_str(&format!("  token {token}"));
        }
    }
    text
}

/// What it means to delete these nodes of the holders of this lock.
pub(crate) fn meaning(path: &str, chosen: &[ContenderInfo]) -> String {
    let mut text = format!("this takes {path} away from{}", list(chosen));
    text.push_str(
        "\nthe next contender holds at once, while the former holder may still be working: two holders",
    );
    match fence(chosen) {
        Some(fence) => text.push_str(&format!("\nfirst stop its process, or let the resource {fence}")),
        None => text.push_str("\nfirst stop its process: the node determines no token to refuse"),
    }
    text
}

async fn confirm() -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::usage("nobody can confirm: the input is no terminal; scripts give --yes"));
    }
    let mut out = io::stdout();
    out.write_all(b"type yes to continue: ")?;
    out.flush()?;
    // A person thinks for longer than a session timeout, and this thread keeps the session.
    let answer = tokio::task::spawn_blocking(|| io::stdin().lines().next().transpose());
    let answer = answer.await.map_err(io::Error::from)??.unwrap_or_default();
    Ok(answer.trim() == "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_czxid_is_read_as_it_is_printed() {
        assert_eq!(parse_czxid("0x1f2"), Ok(Zxid::new(0x1f2)));
        assert_eq!(parse_czxid("1f2"), Ok(Zxid::new(0x1f2)));
        assert!(parse_czxid("latest").unwrap_err().contains("0x1f2"));
    }
}
