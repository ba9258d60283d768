//! `doctor`: one page about the servers, a session, and the directories of locks.

mod directories;
mod finding;
#[cfg(test)]
pub(crate) mod fuzzing;
mod limits;
mod options;
mod servers;
mod session;
mod words;

use self::finding::Finding;
pub(crate) use self::options::DoctorOptions;
use self::servers::Settings;
use crate::connection::ConnectionOptions;
use crate::exit::{Exit, Failure};
use crate::four_letter_words::addresses;
use crate::output::say;

/// Prints the page. The worst finding decides the exit code: 0 ok, 1 warn, 2 bad.
pub(crate) async fn doctor(options: &DoctorOptions, connection: &ConnectionOptions) -> Result<Exit, Failure> {
    // A wrong setting is found before anything is sent.
    connection.check()?;
    let complete = connection.with_file()?;
    let settings = Settings { session_timeout: complete.session_timeout(), tick_time: complete.tick_time() };
    let asking = connection.words()?;
    let mut reports = Vec::new();
    for address in addresses(complete.servers()?) {
        reports.push(words::ask(&asking, &address).await);
    }
    let mut findings = print(servers::judge(&reports, settings))?;
    connection
        .with_session(async |manager| {
            findings.extend(print(session::examine(manager, settings.session_timeout).await?)?);
            findings.extend(print(directories::examine(manager, options).await?)?);
            Ok(finding::exit(&findings))
        })
        .await
}

fn print(findings: Vec<Finding>) -> Result<Vec<Finding>, Failure> {
    findings.iter().try_for_each(|finding| say(&finding.to_string()))?;
    Ok(findings)
}
