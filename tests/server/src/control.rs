use lockkeeper_testserver::{TestEnsemble, TestServer};

/// The commands of the program on its standard input.
const HELP: &str = "commands: stop [N], start [N], restart [N], freeze [N], thaw [N], drop [N], expire ID, \
                    status, help, quit; N is a server, counted from 1, and all of them if left out";

/// Executes a command. Returns the line to print, or nothing when the program has to end.
///
/// # Errors
///
/// The reason of the failure, in one line.
pub(crate) async fn obey(ensemble: &TestEnsemble, line: &str) -> Result<Option<String>, String> {
    let mut words = line.split_ascii_whitespace();
    let (command, argument) = (words.next().unwrap_or_default(), words.next());
    if words.next().is_some() {
        return Err(format!("too many words; {HELP}"));
    }
    match command {
        "quit" => return Ok(None),
        "help" => return Ok(Some(format!("ok {HELP}"))),
        "status" => return Ok(Some(format!("ok {}", status(ensemble)))),
        "expire" => {
            let session =
                argument.and_then(session).ok_or("give the number of a session, as 0x… or decimal")?;
            let server = ensemble.servers().first().ok_or("there is no server")?;
            return server.expire(session).then(ok).ok_or_else(|| "there is no such session".to_owned());
        }
        "stop" | "start" | "restart" | "freeze" | "thaw" | "drop" => {}
        _ => return Err(format!("unknown command; {HELP}")),
    }
    for server in chosen(ensemble, argument)? {
        match command {
            "stop" => server.stop().await,
            "start" if server.is_running() => {}
            "start" | "restart" => server.restart().await.map_err(|error| error.to_string())?,
            "freeze" => server.freeze(),
            "thaw" => server.thaw(),
            _ => server.drop_connections(),
        }
    }
    Ok(ok())
}

#[expect(clippy::unnecessary_wraps, reason = "the answer to a line; none ends the program")]
fn ok() -> Option<String> {
    Some("ok".to_owned())
}

/// The server with that number, or all.
fn chosen<'a>(ensemble: &'a TestEnsemble, number: Option<&str>) -> Result<Vec<&'a TestServer>, String> {
    let Some(number) = number else { return Ok(ensemble.servers().iter().collect()) };
    let index = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let server = index.and_then(|index| ensemble.server(index));
    server.map(|server| vec![server]).ok_or_else(|| {
        format!("there is no server {number}; they are numbered from 1 to {}", ensemble.servers().len())
    })
}

fn session(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// `1=leader 2=stopped 3=follower`
fn status(ensemble: &TestEnsemble) -> String {
    let servers = ensemble.servers().iter().enumerate();
    let modes = servers.map(|(index, server)| format!("{}={}", index + 1, server.mode()).replace(' ', "-"));
    modes.collect::<Vec<_>>().join(" ")
}
