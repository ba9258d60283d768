//! The lock is held, and the program runs.

use std::pin::pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lockkeeper::{ConnectionManager, Lost};
use rustix::process::Signal;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::grant::{Grant, LockInfo};
use super::job;
use super::nest::Nest;
use super::options::{OnRevoke, RunOptions};
use super::requests;
use crate::exit::{Exit, Failure};
use crate::output::warn;
use crate::signals::Signals;
use crate::supervisor::boot_time::BootTime;
use crate::supervisor::message::{Ended, Order, Report};
use crate::supervisor::{LeaseEnd, OnLoss, Policy, Supervisor, SupervisorDied};

/// The end of the lease is read this often in a session timeout.
const LOOKS_PER_TIMEOUT: u32 = 24;

pub(super) struct Held<'a> {
    pub(super) grant: Grant,
    pub(super) nest: Nest,
    pub(super) supervisor: Supervisor,
    pub(super) signals: Signals,
    pub(super) options: &'a RunOptions,
    pub(super) grace: Duration,
}

/// How the run ended.
struct Outcome {
    how: Ended,
    /// The program was ended because of the lease, or the lock was lost while it ran.
    is_lost: bool,
}

impl Held<'_> {
    pub(super) async fn run(mut self, manager: &ConnectionManager) -> Result<Exit, Failure> {
        let look_every = (manager.session_timeout() / LOOKS_PER_TIMEOUT).max(Duration::from_millis(1));
        self.wait_for_lease(look_every).await?;
        self.signals.listen_for_jobs()?;
        let policy = self.policy();
        let environment = environment(&self.grant, &self.nest);
        let lease = LeaseEnd::new(BootTime::of(self.grant.valid_until()));
        let start = Order::Start { environment, policy, lease_end: lease.end() };
        self.supervisor
            .start_program(&start)
            .map_err(|error| Failure::new(Exit::INTERNAL, format!("the program was not started: {error}")))?;
        let outcome = match self.watch(manager, look_every, lease).await {
            Ok(outcome) => outcome,
            Err(Ending::Failed(failure)) => return Err(failure),
            Err(Ending::SupervisorDied(died)) => {
                self.supervisor.kill_orphans().await;
                return Err(Failure::new(Exit::INTERNAL, died.to_string()));
            }
        };
        if outcome.is_lost {
            // The node is deleted with the session, if it exists.
            return Ok(Exit::LOST);
        }
        self.grant.end(outcome.how == Ended::Exited(0)).await?;
        Ok(match outcome.how {
            Ended::Exited(code) => Exit::of_program(code),
            Ended::Signalled(number) => Exit::of_signal(number),
        })
    }

    /// Waits until more of the lease is left than the grace: a program that is asked to end as soon as it
    /// starts does nothing. The servers confirm the session meanwhile.
    async fn wait_for_lease(&mut self, look_every: Duration) -> Result<(), Failure> {
        while self.grant.valid_until().remaining() <= self.grace {
            self.grant.check().map_err(|lost| lost_before_start(&lost))?;
            tokio::time::sleep(look_every).await;
        }
        Ok(())
    }

    async fn watch(
        &mut self,
        manager: &ConnectionManager,
        look_every: Duration,
        mut lease: LeaseEnd,
    ) -> Result<Outcome, Ending> {
        let policy = self.policy();
        let Self { grant, supervisor, signals, options, .. } = self;
        let mut looks = interval(look_every);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Kept over the rounds of the loop: a new future would ask the servers again.
        let (heard, mut requests) = mpsc::channel(1);
        let (mut losing, mut following) = (pin!(grant.lost()), pin!(requests::follow(manager, grant, heard)));
        let (mut is_lost, mut was_killed) = (false, false);
        loop {
            tokio::select! {
                biased;
                report = supervisor.report() => match report? {
                    Report::Ended { how, interfered } => {
                        if (interfered || was_killed) && !is_lost {
                            warn("the lease was about to end, so the program was stopped");
                        }
                        return Ok(Outcome { how, is_lost: interfered || was_killed || is_lost });
                    }
                    Report::TooLate => {
                        let message = "the lease was over before the program was started";
                        return Err(Ending::Failed(Failure::new(Exit::LOST, message)));
                    }
                    Report::NotStarted { errno } => {
                        let error = std::io::Error::from_raw_os_error(errno);
                        let failure = Failure::new(Exit::INTERNAL, format!("no process: {error}"));
                        return Err(Ending::Failed(failure));
                    }
                    Report::Asked if !is_lost => warn(asked(&policy, &lease)),
                    Report::Suspended => job::stop(),
                    Report::Started { .. } | Report::Asked => {}
                },
                signal = signals.next() => supervisor.send(&match signal {
                    Signal::CONT => Order::Resume,
                    signal => Order::Signal { number: signal.as_raw() },
                }),
                loss = &mut losing, if !is_lost => {
                    warn(&loss);
                    is_lost = true;
                    lease.lose(&policy, BootTime::now());
                    supervisor.send(&Order::Lost);
                }
                () = &mut following, if !is_lost => {}
                Some(()) = requests.recv(), if !is_lost => revoke(supervisor, options.on_revoke),
                _ = looks.tick() => {}
            }
            if !is_lost && lease.extend(BootTime::of(grant.valid_until())) {
                supervisor.send(&Order::Extend { lease_end: lease.end() });
            }
            // The supervisor has killed the program before, unless it is stopped.
            if policy.on_loss != OnLoss::Ignore && lease.end() <= BootTime::now() {
                was_killed = true;
                supervisor.kill_program();
            }
        }
    }

    fn policy(&self) -> Policy {
        Policy { on_loss: self.options.on_loss.clone(), grace: self.grace }
    }
}

/// Why the program is asked to end although the lock is not lost.
fn asked(policy: &Policy, lease: &LeaseEnd) -> String {
    let left = lease.end().since_boot().saturating_sub(BootTime::now().since_boot());
    let what = match policy.on_loss {
        OnLoss::Run(_) => "the command of --on-loss is run",
        _ => "the program gets SIGTERM",
    };
    format!("no server confirms the session, and the lease ends in {left:.1?}, so {what}")
}

fn revoke(supervisor: &Supervisor, on_revoke: OnRevoke) {
    match on_revoke {
        OnRevoke::Term => {
            warn("another client asks for the lock, so the program gets SIGTERM");
            supervisor.send(&Order::Signal { number: Signal::TERM.as_raw() });
        }
        OnRevoke::Ignore => warn("another client asks for the lock"),
    }
}

fn lost_before_start(lost: &Lost) -> Failure {
    Failure::new(Exit::LOST, format!("{lost}; the program was not started"))
}

/// Why there is no outcome.
enum Ending {
    Failed(Failure),
    SupervisorDied(SupervisorDied),
}

impl From<SupervisorDied> for Ending {
    fn from(died: SupervisorDied) -> Self {
        Self::SupervisorDied(died)
    }
}

/// The environment that names the lock. One line for each of several locks, in the order of their paths.
fn environment(grant: &Grant, nest: &Nest) -> Vec<(String, String)> {
    let locks = grant.locks();
    let lines = |each: &dyn Fn(&LockInfo) -> String| locks.iter().map(each).collect::<Vec<_>>().join("\n");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let valid_until = now.saturating_add(grant.valid_until().remaining());
    let nested = nest.environment(locks.iter().map(|lock| lock.node.as_str()));
    let own = [
        ("LOCKKEEPER_PATH", lines(&|lock| lock.path.clone())),
        ("LOCKKEEPER_TOKEN", lines(&|lock| lock.token.as_u128().to_string())),
        ("LOCKKEEPER_NODE", lines(&|lock| lock.node.clone())),
        ("LOCKKEEPER_VALID_UNTIL", valid_until.as_secs().to_string()),
    ];
    own.into_iter().chain(nested).map(|(name, value)| (name.to_owned(), value)).collect()
}
