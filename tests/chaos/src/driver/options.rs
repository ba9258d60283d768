use std::path::PathBuf;
use std::time::Duration;

/// How to run.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// One server, or three.
    #[arg(long, default_value_t = 3, value_parser = servers)]
    pub servers: usize,
    /// How many processes contend.
    #[arg(long, default_value_t = 4)]
    pub clients: usize,
    /// The plan of the first round; later rounds count on. By default random.
    #[arg(long, default_value_t = rand::random_range(0..1_000_000))]
    pub seed: u64,
    /// How long to continue with further rounds, such as 4h, 30m or 90s. By default one round.
    #[arg(long = "for", default_value = "0s", value_parser = span)]
    pub all: Duration,
    /// How long faults strike in one round, at least; each kind strikes once in any case.
    #[arg(long, default_value = "60s", value_parser = span)]
    pub round: Duration,
    /// The time limit for new grants to every client, and for the end of all nodes.
    #[arg(long, default_value = "90s", value_parser = span)]
    pub patience: Duration,
    /// Session timeout of the clients.
    #[arg(long, default_value = "3s", value_parser = span)]
    pub session: Duration,
    /// The servers' tick.
    #[arg(long, default_value = "250ms", value_parser = span)]
    pub tick: Duration,
    /// The folder in which each round creates its own. Earlier contents of that are deleted.
    #[arg(long, default_value = "target/chaos")]
    pub folder: PathBuf,
    /// The first client breaks every rule, which must be found. No fault strikes.
    #[arg(long)]
    pub cheat: bool,
}

fn servers(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|servers| matches!(servers, 1 | 3)).ok_or_else(|| "1 or 3".to_owned())
}

/// A number and its unit: `ms`, `s`, `m` or `h`.
fn span(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err("give a number with ms, s, m or h, such as 90s".to_owned()),
    };
    let number: u64 = number.parse().map_err(|error| format!("{error}"))?;
    Ok(Duration::from_millis(number.saturating_mul(milliseconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_a_number_and_a_unit() {
        assert_eq!(span("4h"), Ok(Duration::from_secs(14_400)));
        assert_eq!(span("250ms"), Ok(Duration::from_millis(250)));
        for text in ["", "4", "h", "4 h", "-1s", "4d"] {
            assert!(span(text).is_err(), "{text}");
        }
    }
}
