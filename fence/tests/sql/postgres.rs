//! One PostgreSQL for all tests of this process.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::{env, io, thread};

/// Starts PostgreSQL in a folder of its own, without TCP, and prints the folder, which has its socket. Ends
/// it and removes the folder at the end of the input, which comes with the end of the test's process, however
/// that dies. initdb refuses root, so root becomes nobody.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
initdb=$(command -v initdb || ls -d /usr/lib/postgresql/*/bin/initdb 2>/dev/null | tail -n1)
[ -n "$initdb" ] || { echo "no initdb; install the package postgresql" >&2; exit 1; }
bin=$(dirname "$(readlink -f "$initdb")")
folder=$(mktemp -d) || exit 1
as=
if [ "$(id -u)" = 0 ]; then
    chown 65534:65534 "$folder"
    as='setpriv --reuid=65534 --regid=65534 --clear-groups'
fi
cd "$folder"
$as "$bin/initdb" -D data -A trust -U lockkeeper -E UTF8 --no-locale --no-sync >log 2>&1 </dev/null ||
    { cat log >&2; exit 1; }
$as "$bin/postgres" -D data -k "$folder" -c listen_addresses= -c fsync=off -c max_connections=60 \
    -c shared_buffers=16MB >>log 2>&1 </dev/null &
until "$bin/pg_isready" -q -h "$folder"; do
    kill -0 $! || { cat log >&2; exit 1; }
    sleep 0.05
done
echo "$folder"
cat >/dev/null
kill -QUIT $!
wait
cd / && rm -rf "$folder"
"#;

struct Server {
    folder: String,
    /// The server ends when these do.
    _shell: Child,
    _input: ChildStdin,
}

/// The folder of the server's socket; `None` if the tests on PostgreSQL are to be left out, which is then
/// said.
pub(crate) fn socket() -> Option<&'static str> {
    static SERVER: OnceLock<Server> = OnceLock::new();
    if env::var("LOCKKEEPER_WITHOUT_POSTGRES").is_ok_and(|value| value == "1") {
        let thread = thread::current();
        let name = thread.name().unwrap_or("a test");
        // Past the capture of the test runner, which would hide it as the test passes.
        let _ = writeln!(io::stderr(), "LEFT OUT (LOCKKEEPER_WITHOUT_POSTGRES=1): {name} needs PostgreSQL");
        return None;
    }
    Some(&SERVER.get_or_init(start).folder)
}

fn start() -> Server {
    let mut command = Command::new("sh");
    command.args(["-c", SCRIPT, "lockkeeper-postgres"]);
    let mut shell = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell");
    let mut line = String::new();
    BufReader::new(shell.stdout.take().expect("an output")).read_line(&mut line).expect("a line");
    let folder = line.trim().to_owned();
    assert!(!folder.is_empty(), "PostgreSQL does not start; is the package postgresql installed?");
    let input = shell.stdin.take().expect("an input");
    Server { folder, _shell: shell, _input: input }
}
