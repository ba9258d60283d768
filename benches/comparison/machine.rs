//! Where this runs.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the repository.
pub(crate) fn repository() -> &'static Path {
    let benches = Path::new(env!("CARGO_MANIFEST_DIR"));
    benches.parent().unwrap_or(benches)
}

/// The folder of what is built, which is on a disk.
pub(crate) fn built() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let folder = program.parent().and_then(Path::parent);
    folder.map_or_else(|| repository().join("target"), Path::to_owned)
}

/// The processor, its cores, memory and system.
pub(crate) fn description() -> String {
    let field = |file: &str, name: &str| -> Option<String> {
        let text = fs::read_to_string(file).ok()?;
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let model = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".to_owned());
    let memory =
        field("/proc/meminfo", "MemTotal").and_then(|line| line.split(' ').next()?.parse::<u64>().ok());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let busy = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    format!(
        "{model}, {cores} cores, {} GiB of memory, Linux {}; load average at the end of the run: {}",
        memory.unwrap_or_default() / 1024 / 1024,
        kernel.trim(),
        busy.split(' ').take(3).collect::<Vec<_>>().join(", "),
    )
}
