use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use lockkeeper_tests::Timing;
use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::{Instant, sleep};

use crate::Failure;

/// Ends the server when the test's process ends, however that dies: then the shell sees the end of its input.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
redis-server "$@" >server.log 2>&1 </dev/null &
echo $!
cat >/dev/null
kill -KILL $! 2>/dev/null
wait
"#;

/// Whether tests on real servers are to be left out (`LOCKKEEPER_WITHOUT_REDIS=1`), which is then said aloud.
#[must_use]
pub fn left_out() -> bool {
    let left_out = std::env::var("LOCKKEEPER_WITHOUT_REDIS").is_ok_and(|value| value == "1");
    if left_out {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("a test");
        eprintln!("LEFT OUT (LOCKKEEPER_WITHOUT_REDIS=1): {name} needs redis-server");
    }
    left_out
}

/// A server of its own, on loopback, with its data in a folder of its own.
#[derive(Debug)]
pub struct RedisServer {
    folder: TempDir,
    port: u16,
    options: Vec<String>,
    process: Option<Process>,
}

#[derive(Debug)]
struct Process {
    /// The shell that started the server. It ends when its input does.
    shell: Child,
    input: Option<ChildStdin>,
    pid: String,
}

impl RedisServer {
    /// Starts a server with these options, such as `--appendonly yes`.
    ///
    /// # Errors
    ///
    /// There is no `redis-server`, or it does not answer.
    pub async fn start(options: &[&str]) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("lockkeeper-redis-").tempdir()?;
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let mut server = Self { folder, port: 0, options, process: None };
        for _ in 0..5 {
            // Another program may take the port between the two.
            server.port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            if server.restart().await.is_ok() {
                return Ok(server);
            }
        }
        Err(format!("redis-server does not start; is it installed? Its log: {}", server.log()).into())
    }

    /// The URL of the server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// The port of the server.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of the server's data.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("server.log")).unwrap_or_default()
    }

    /// A connection of the test's own, past the crate under test.
    ///
    /// A reply may take as long as a `WAIT` for a replica, and a busy machine may take as long to connect.
    ///
    /// # Errors
    ///
    /// The server does not answer.
    pub async fn raw(&self) -> Result<MultiplexedConnection, Failure> {
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(Timing::event()));
        let config = config.set_connection_timeout(Some(Timing::event()));
        Ok(redis::Client::open(self.url())?.get_multiplexed_async_connection_with_config(&config).await?)
    }

    /// Starts the server again, with the data that it saved.
    ///
    /// # Errors
    ///
    /// It does not answer.
    pub async fn restart(&mut self) -> Result<(), Failure> {
        self.kill().await?;
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "lockkeeper-redis"]).args(["--port", &self.port.to_string()]);
        command.args(["--bind", "127.0.0.1", "--save", "", "--repl-diskless-sync-delay", "0"]);
        command.args(&self.options).current_dir(self.folder.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut shell = command.spawn()?;
        let mut pid = String::new();
        let output = shell.stdout.take().ok_or("no output")?;
        BufReader::new(output).read_line(&mut pid).await?;
        let input = shell.stdin.take();
        // No other server that was faster to take the port.
        let own = format!("\nprocess_id:{}\r\n", pid.trim());
        self.process = Some(Process { shell, input, pid: pid.trim().to_owned() });
        let end = Instant::now() + Timing::scaled(Duration::from_secs(15));
        while Instant::now() < end {
            if let Ok(mut raw) = self.raw().await
                && let Ok(report) = redis::cmd("INFO").arg("server").query_async::<String>(&mut raw).await
                && report.contains(&own)
            {
                return Ok(());
            }
            if self.log().contains("Address already in use") {
                break;
            }
            sleep(Duration::from_millis(10)).await;
        }
        self.kill().await?;
        Err(format!("the server does not answer: {}", self.log()).into())
    }

    /// Ends the server at once, as a crash does.
    ///
    /// # Errors
    ///
    /// The signal cannot be sent.
    pub async fn kill(&mut self) -> Result<(), Failure> {
        let Some(mut process) = self.process.take() else { return Ok(()) };
        // The shell kills the server at the end of its input, and waits for it.
        drop(process.input.take());
        process.shell.wait().await?;
        Ok(())
    }

    /// Stops the server's process: it answers nothing, and its clock continues.
    ///
    /// # Errors
    ///
    /// The signal cannot be sent.
    pub async fn pause(&self) -> Result<(), Failure> {
        self.signal("-STOP").await
    }

    /// Lets the server's process continue.
    ///
    /// # Errors
    ///
    /// The signal cannot be sent.
    pub async fn resume(&self) -> Result<(), Failure> {
        self.signal("-CONT").await
    }

    async fn signal(&self, signal: &str) -> Result<(), Failure> {
        let process = self.process.as_ref().ok_or("the server does not run")?;
        let sent = Command::new("kill").args([signal, &process.pid]).status().await?;
        if sent.success() { Ok(()) } else { Err("the server is gone".into()) }
    }
}
