"""One program for each ring, with every mutant as a branch, and its runs."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# The crates that are broken. The text of a rule may have moved within all of them.
SOURCES = ["src", "recipes/src", "tower/src", "fence/src", "lock/src"]
# These crates have files of the crates that are broken.
CRATES = [*SOURCES, "tests/interleavings"]

# The rings that may catch a mutant: `cargo test` arguments.
RINGS = {
    "core": ["-p", "lockkeeper-core", "--lib"],
    "recipes": ["-p", "lockkeeper", "--features", "discovery", "--lib"],
    "interleavings": ["-p", "lockkeeper-interleavings", "--lib"],
    "embedded": ["-p", "lockkeeper-tests", "--test", "embedded"],
    "blocking": ["-p", "lockkeeper-tests", "--test", "blocking"],
    "observed": ["-p", "lockkeeper-tests", "--test", "observed"],
    "tower": ["-p", "lockkeeper-tower", "--lib"],
    "layers": ["-p", "lockkeeper-tower", "--test", "layers"],
    "lock": ["-p", "lockkeeper-lock", "--lib"],
    "fence": ["-p", "lockkeeper-fence", "--lib"],
    "http": ["-p", "lockkeeper-fence", "--features", "http,sqlite,zookeeper", "--test", "http"],
    "sql": ["-p", "lockkeeper-fence", "--features", "postgres,sqlite,mysql", "--test", "sql"],
    "leaks": ["-p", "lockkeeper-tests", "--test", "leaks"],
    "sim": ["-p", "lockkeeper-sim", "--test", "sim"],
}
SIMULATION = "every_seed_keeps_the_promises"

# All mutants are built at once; this chooses one of them, in each broken crate.
CHOSEN = "LOCKKEEPER_MUTANT"
SWITCH = """
#[allow(warnings, clippy::all, clippy::pedantic)]
pub(crate) mod mutant {
    pub(crate) fn is(number: u32) -> bool {
        static CHOSEN: std::sync::OnceLock<Option<u32>> = std::sync::OnceLock::new();
        *CHOSEN.get_or_init(|| std::env::var("LOCKKEEPER_MUTANT").ok()?.parse().ok()) == Some(number)
    }
}
"""


class Problem(Exception):
    """The description of a mutant does not fit the repository."""


def copy_tree(tree, texts):
    """A copy of what git knows or would add, broken. Equal files are left alone, and not built again."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout
    wanted = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    for path in [path for path in tree.rglob("*") if path.is_file()]:
        if str(path.relative_to(tree)) not in wanted:
            path.unlink()
    for name in wanted:
        source, copy = ROOT / name, tree / name
        content = texts[name].encode() if name in texts else source.read_bytes()
        if name in [f"{folder}/lib.rs" for folder in CRATES]:
            content = b"#![allow(warnings)]\n" + content + SWITCH.encode()
        if not copy.is_file() or copy.read_bytes() != content:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
            copy.chmod(source.stat().st_mode)


def build(ring, tree, target, arguments):
    """The test program of a ring, with all mutants in it, and the folder that it runs in."""
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    command = ["cargo", "test", "--locked", *RINGS[ring], "--no-run", "--message-format=json-render-diagnostics"]
    built = call(command, tree, environment, arguments.build_limit)
    if built is None or built.returncode != 0:
        told = " in time" if built is None else ":\n" + built.stdout[-4000:]
        raise Problem(f"{ring}: it does not build{told}")
    lines = [json.loads(line) for line in built.stdout.splitlines() if line.startswith("{")]
    programs = [line for line in lines if line.get("executable") and line["profile"]["test"]]
    if len(programs) != 1:
        raise Problem(f"{ring}: it has {len(programs)} test programs, not one")
    return programs[0]["executable"], Path(programs[0]["manifest_path"]).parent


def test(name, mutant, programs, arguments):
    """Runs one test with a mutant, or with none."""
    ring, _, what = name.partition(" ")
    program, folder = programs[ring]
    environment = environment_of(folder, mutant["number"] if mutant else 0)
    if ring == "sim":
        environment["LOCKKEEPER_SIM_SEEDS"], what = what, SIMULATION
    tested = call([program, what], folder, environment, arguments.limit)
    if tested is None:
        return "caught", f"{name} has no end"
    if tested.returncode == 0:
        is_empty = not re.search(r"^test result: ok\. [1-9]", tested.stdout, re.MULTILINE)
        return ("error", f"{name} runs no test") if is_empty else ("survived", name)
    seed = re.search(r"LOCKKEEPER_SIM_SEED=(\d+)", tested.stdout) if ring == "sim" else None
    if "test result: FAILED" in tested.stdout:
        return "caught", name + (f" (seed {seed[1]})" if seed else "")
    return "caught", f"{name} ends with code {tested.returncode}"


def environment_of(folder, number):
    """What a test program has in its environment while it runs with the mutant of this number, or with none (0)."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LOCKKEEPER_SIM_")}
    # As cargo sets it: tests that build programs look for their sources there.
    environment.update(CARGO_MANIFEST_DIR=str(folder), RUST_BACKTRACE="0", **{CHOSEN: str(number)})
    # What proptest finds with one mutant is not tried with the others, or with none.
    environment["PROPTEST_DISABLE_FAILURE_PERSISTENCE"] = "1"
    # A mutant may show in one case alone.
    environment["LOCKKEEPER_CASES"] = "all"
    return environment


def call(command, folder, environment, limit):
    """None when it took longer than the limit, and was ended with all that it had started."""
    process = subprocess.Popen(
        command, cwd=folder, env=environment, text=True, errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit)
        return subprocess.CompletedProcess(command, process.returncode, output)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
