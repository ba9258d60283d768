use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::Failure;

/// Sees who is inside, from outside of all contenders: a server that answers each line `enter <token>
/// <permits>` and `leave <token>`.
#[derive(Debug)]
pub struct Witness {
    port: u16,
    observations: Arc<Mutex<Observations>>,
    accepting: JoinHandle<()>,
}

/// What the witness has seen.
#[derive(Clone, Debug, Default)]
pub struct Observations {
    limit: usize,
    /// The tokens of those inside now, and their permits.
    pub inside: BTreeMap<u64, usize>,
    /// The number of entries.
    pub entries: usize,
    /// The most permits that were inside at a time.
    pub most: usize,
    tokens: BTreeSet<u64>,
    /// What must not happen, and did.
    pub violations: Vec<String>,
}

impl Witness {
    /// A witness of a lock for so many permits at a time: one for a mutex.
    ///
    /// # Errors
    ///
    /// There is no free port.
    pub async fn start(limit: usize) -> Result<Self, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let observations = Arc::new(Mutex::new(Observations { limit, ..Observations::default() }));
        let shared = Arc::clone(&observations);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(watch(client, Arc::clone(&shared)));
            }
        });
        Ok(Self { port, observations, accepting })
    }

    /// The address for `enter` and `leave`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// What it has seen until now.
    #[must_use]
    pub fn observations(&self) -> Observations {
        self.observations.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// One contender. If its connection ends while it is inside, it has left.
async fn watch(client: TcpStream, observations: Arc<Mutex<Observations>>) {
    let (read, mut write) = client.into_split();
    let mut lines = BufReader::new(read).lines();
    let mut own = None;
    while let Ok(Some(line)) = lines.next_line().await {
        let number = |index| line.split(' ').nth(index).and_then(|word| word.parse::<u64>().ok());
        let token = number(1).unwrap_or(0);
        {
            let mut observations = observations.lock().unwrap_or_else(PoisonError::into_inner);
            if line.starts_with("enter") {
                own = Some(token);
                let permits = number(2).and_then(|permits| usize::try_from(permits).ok());
                observations.enter(token, permits.unwrap_or(1));
            } else {
                own = None;
                observations.inside.remove(&token);
            }
        }
        if write.write_all(b"ok\n").await.is_err() {
            break;
        }
    }
    if let Some(token) = own {
        observations.lock().unwrap_or_else(PoisonError::into_inner).inside.remove(&token);
    }
}

impl Observations {
    fn enter(&mut self, token: u64, permits: usize) {
        let inside = permits + self.inside.values().sum::<usize>();
        if inside > self.limit {
            self.violations.push(format!("{token} enters with {permits} permits beside {:?}", self.inside));
        }
        // Permits are granted side by side, so only those of a mutex enter in the order of their grants.
        match self.tokens.last() {
            Some(newest) if self.limit == 1 && token < *newest => {
                self.violations.push(format!("{token} enters after {newest}"));
            }
            _ => {}
        }
        if !self.tokens.insert(token) {
            self.violations.push(format!("{token} enters twice"));
        }
        self.most = self.most.max(inside);
        self.entries += 1;
        self.inside.insert(token, permits);
    }
}
