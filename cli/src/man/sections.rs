//! The sections of a manual page behind its options.

use clap::{Arg, Command};
use clap_mangen::roff::{Roff, bold, roman};

use super::examples;

/// A code or a name, and its meaning.
type Line = (&'static str, &'static str);

/// The codes of every subcommand.
const CODES: [Line; 6] = [
    ("64", "wrong usage: a flag, a path or a setting. Nothing was done"),
    ("69", "no server was reached, or none answered"),
    ("70", "the operating system refused what the command needs"),
    ("77", "the servers refused: the access list or the credentials"),
    ("128 + n", "signal n ended the command"),
    ("141", "the reader of the output has closed it"),
];

/// Those of a command that runs a program, beside them.
const CODES_OF_RUNS: [Line; 5] = [
    ("0 to 255", "the code of the program, which ended by itself under the lock"),
    ("75", "the lock was not got in time; -E chooses another code"),
    ("79", "the lock was lost, or the program was stopped because the lease was about to end"),
    ("126, 127", "the program cannot be executed, or does not exist"),
    ("128 + n", "signal n ended the program, or the wait for the lock"),
];

/// What the program finds.
const OF_THE_PROGRAM: [Line; 5] = [
    ("LOCKKEEPER_PATH", "the path of the lock; with several locks one line for each, as in the next two"),
    ("LOCKKEEPER_NODE", "the path of its node"),
    (
        "LOCKKEEPER_TOKEN",
        "the fencing token: send it with each write, and let the resource refuse smaller ones",
    ),
    ("LOCKKEEPER_VALID_UNTIL", "the end of the lease when the program started, in seconds since 1970"),
    ("LOCKKEEPER_OWNER, LOCKKEEPER_HOLDS", "for commands within this one, so that deadlocks are found"),
];

pub(super) fn add(roff: &mut Roff, whole: &Command, command: &Command) {
    let is_run = runs(command);
    if is_run {
        section(roff, "THE PROGRAM");
        entry(
            roff,
            "--",
            "Ends the flags of this command. What is behind it is the program and its arguments, which get \
             to the program as they are, also those that begin with a dash. No shell reads them: for a pipe \
             or a variable, name one, as in -- sh -c 'a | b'.",
        );
    }
    section(roff, "EXIT STATUS");
    codes(roff, name(command), is_run);
    section(roff, "ENVIRONMENT");
    roff.text([roman("Each variable is the default of a flag, and the flag wins.")]);
    for argument in command.get_arguments() {
        environment(roff, argument);
    }
    if is_run {
        roff.control("PP", []);
        roff.text([roman("The program finds:")]);
        OF_THE_PROGRAM.iter().for_each(|(name, meaning)| entry(roff, name, meaning));
    }
    section(roff, "FILES");
    files(roff);
    section(roff, "EXAMPLES");
    for (line, meaning) in examples::of(name(command)) {
        roff.control("PP", []);
        roff.text([roman(*meaning)]);
        roff.control("PP", []);
        roff.control("RS", ["4"]);
        roff.text([bold(*line)]);
        roff.control("RE", []);
    }
    section(roff, "SEE ALSO");
    let pages: Vec<String> = others(whole, command).iter().map(|of| format!("{}(1)", name(of))).collect();
    roff.text([roman(pages.join(", "))]);
}

/// The name of the page, such as `lockkeeper-queue-list`.
pub(super) fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// Whether the command runs a program.
fn runs(command: &Command) -> bool {
    command.get_positionals().any(Arg::is_last_set)
}

fn section(roff: &mut Roff, heading: &str) {
    roff.control("SH", [heading]);
}

fn entry(roff: &mut Roff, term: &str, meaning: &str) {
    roff.control("TP", []);
    roff.text([bold(term)]);
    roff.text([roman(meaning)]);
}

fn codes(roff: &mut Roff, page: &str, is_run: bool) {
    let own: &[Line] = match page.strip_prefix("lockkeeper-").unwrap_or_default() {
        _ if is_run => &CODES_OF_RUNS,
        "doctor" => &[("0", "all is well"), ("1", "the worst finding is a warning"), ("2", "one is bad")],
        "check" => &[
            ("0", "no lock is older than a limit"),
            ("2", "at least one is"),
            ("3", "none is as far as was seen, and not all was seen"),
        ],
        "deadlocks" => &[
            ("0", "no certain deadlock"),
            ("1", "a deadlock"),
            ("3", "none in the part that was seen, and not all was seen"),
        ],
        "wait" => &[("0", "nobody holds the lock"), ("75", "somebody holds it still at the end of the time")],
        "inspect" => {
            &[("0", "done; with --exit-code, every path is held"), ("1", "with --exit-code, a path is free")]
        }
        "get" | "ls" => &[("0", "done"), ("1", "there is no such node")],
        "queue-list" | "queue-requeue" => &[("0", "done"), ("1", "there is no such queue, or no such item")],
        "revoke" | "release" => {
            &[("0", "done"), ("1", "there is no such node any more, or the answer was not yes")]
        }
        "" => &[("other", "each subcommand has its own, on its page")],
        _ => &[("0", "done")],
    };
    let is_own = |code: &str| own.iter().any(|(own, _)| *own == code);
    own.iter().for_each(|(code, meaning)| entry(roff, code, meaning));
    if page == "lockkeeper-once" {
        entry(roff, "1", "with --show, the program has not succeeded yet; otherwise that of the program");
    }
    let common = CODES.iter().filter(|(code, _)| !is_own(code));
    common.for_each(|(code, meaning)| entry(roff, code, meaning));
}

fn environment(roff: &mut Roff, argument: &Arg) {
    if let (Some(variable), Some(long)) = (argument.get_env(), argument.get_long()) {
        entry(roff, &variable.to_string_lossy(), &format!("as --{long}"));
    }
}

fn files(roff: &mut Roff) {
    roff.text([
        roman("The file of "),
        bold("--config"),
        roman(" has the settings of the connection in TOML:"),
    ]);
    roff.control("PP", []);
    roff.control("RS", ["4"]);
    roff.control("nf", []);
    for line in [
        "connect = \"zk1:2181,zk2:2181,zk3:2181/shop\"",
        "auth = \"shop:secret\"",
        "acl = \"creator\"",
        "session-timeout = \"20s\"",
    ] {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    roff.control("RE", []);
}

/// The command above, and all beside or below.
fn others<'a>(whole: &'a Command, command: &'a Command) -> Vec<&'a Command> {
    let own = name(command);
    if own == name(whole) {
        return whole.get_subcommands().collect();
    }
    let beside = whole.get_subcommands().filter(|of| name(of) != own);
    std::iter::once(whole).chain(command.get_subcommands()).chain(beside).collect()
}
