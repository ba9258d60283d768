//! Messages about wrong settings, in the words of the command line and not in those of the library.

use lockkeeper::error::ConfigError;

/// The library's names of settings, and the flags.
const FLAGS: [(&str, &str); 5] = [
    ("session_timeout", "--session-timeout"),
    ("connect_deadline", "--connect-timeout"),
    ("tick_time", "--tick-time"),
    ("token_generation", "--token-generation"),
    ("interval", "--every"),
];

/// What is wrong, and what to give instead.
pub(crate) fn message(error: &ConfigError) -> String {
    match error {
        ConfigError::Setting { name: "acl", .. } => {
            "--acl creator needs a user; give --auth user:password, or --acl open".to_owned()
        }
        ConfigError::Setting { name, value, advice } => {
            // A time of nothing has no unit.
            let value = value.strip_prefix("0ns").map_or_else(|| value.clone(), |rest| format!("0{rest}"));
            let mut text = format!("{name} is {value}; {advice}");
            for (name, flag) in FLAGS {
                text = text.replace(name, flag);
            }
            text
        }
        error => error.to_string(),
    }
}
