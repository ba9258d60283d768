//! One program for all targets: `LOCKKEEPER_FUZZ_TARGET` names the one that gets libFuzzer's inputs.
//! `tests/fuzz/run` builds and runs it.

#![no_main]
#![allow(dead_code, reason = "the command uses more of its files")]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

// The command is no library. Its files that decode name each other by `crate`, so they are modules here.
#[path = "../../../cli/src/fuzzing.rs"]
mod command;
#[path = "../../../cli/src/connection_file.rs"]
mod connection_file;
#[path = "../../../cli/src/doctor"]
mod doctor {
    pub(crate) mod fuzzing;
    mod words;
}
#[path = "../../../cli/src/escape.rs"]
mod escape;
#[path = "../../../cli/src/exit.rs"]
mod exit;
#[path = "../../../cli/src/four_letter_words.rs"]
mod four_letter_words;
#[path = "../../../cli/src/inspect"]
mod inspect {
    pub(crate) mod cons;
}
#[path = "../../../cli/src/setting.rs"]
mod setting;
#[path = "../../../cli/src/span.rs"]
mod span;
#[path = "../../../cli/src/supervisor"]
mod supervisor {
    pub(crate) mod boot_time;
    pub(crate) mod fuzzing;
    pub(crate) mod message;
    pub(crate) mod policy;
    pub(crate) mod process_stat;
}

type Check = fn(&[u8]);

static TARGET: LazyLock<Check> = LazyLock::new(|| {
    let wanted = std::env::var("LOCKKEEPER_FUZZ_TARGET").unwrap_or_default();
    let targets = [
        lockkeeper_core::fuzzing::TARGETS,
        lockkeeper::fuzzing::TARGETS,
        lockkeeper_redis::fuzzing::TARGETS,
        lockkeeper_fence::fuzzing::TARGETS,
        lockkeeper_testserver::fuzzing::TARGETS,
        command::TARGETS,
    ];
    let names = || targets.iter().copied().flatten();
    names().find(|(name, _)| *name == wanted).map(|(_, check)| *check).unwrap_or_else(|| {
        let names: Vec<&str> = names().map(|(name, _)| *name).collect();
        eprintln!("LOCKKEEPER_FUZZ_TARGET={wanted:?} is no target; take one of {}", names.join(", "));
        std::process::exit(2);
    })
});

fuzz_target!(|data: &[u8]| TARGET(data));
