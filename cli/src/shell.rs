//! Commands that a person may paste into a shell.

use crate::escape::is_printable;

/// A command line of a POSIX shell that runs exactly these words, whatever is in them.
pub(crate) fn command(words: &[&str]) -> String {
    words.iter().map(|text| word(text)).collect::<Vec<_>>().join(" ")
}

/// A text as one word of a POSIX shell, without what would upset a terminal. No argument of a program has
/// NUL characters.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_-.:,@%+".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    let mut word = String::from("'");
    for c in text.chars() {
        match c {
            '\'' => word.push_str("'\\''"),
            // A shell removes the newlines at the end of what a command prints.
            _ if is_printable(c) || c == '\n' => word.push(c),
            _ => {
                let mut bytes = [0; 4];
                let octal = c.encode_utf8(&mut bytes).bytes().map(|byte| format!("\\{byte:03o}"));
                word.push_str(&format!("'\"$(printf '{}')\"'", octal.collect::<String>()));
            }
        }
    }
    word.push('\'');
    word
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_plain_path_stays_as_it_is_and_another_one_is_quoted() {
        assert_eq!(command(&["lockkeeper", "revoke", "/shop/a-1"]), "lockkeeper revoke /shop/a-1");
        assert_eq!(word("/x;touch /tmp/a"), "'/x;touch /tmp/a'");
        assert_eq!(word("it's"), "'it'\\''s'");
        assert_eq!(word("/a\u{202e}b"), "'/a'\"$(printf '\\342\\200\\256')\"'b'");
        assert_eq!(word(""), "''");
    }

    /// Any character but NUL, and often one that a shell knows.
    fn texts() -> impl Strategy<Value = Vec<String>> {
        let special = prop::sample::select(
            "'\"\\$`!*?[]{}()<>|&;#~= \t\n\r-é\u{301}\u{202e}\u{2066}n0".chars().collect::<Vec<_>>(),
        );
        let c = prop_oneof![3 => special, 1 => any::<char>().prop_filter("no NUL", |c| *c != '\0')];
        prop::collection::vec(prop::collection::vec(c, 0..12).prop_map(String::from_iter), 1..20)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn a_shell_reads_exactly_the_words_that_were_written(texts in texts()) {
            let words: Vec<&str> = texts.iter().map(String::as_str).collect();
            let line = format!("printf '%s\\0' {}", command(&words));
            prop_assert!(line.chars().all(|c| is_printable(c) || c == '\n'), "{}", line);
            for shell in ["sh", "bash"] {
                let output = Command::new(shell).args(["-c", &line]).output().unwrap();
                let read = String::from_utf8(output.stdout).unwrap();
                let read: Vec<&str> = read.split_terminator('\0').collect();
                prop_assert_eq!(&read, &words, "{}: {}", shell, line);
            }
        }
    }
}
