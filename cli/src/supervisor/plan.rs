//! When the program is asked to end, and when it is killed. Pure: no clock, no process.
//!
//! ```text
//!  started                      TERM                    KILL  end of the lease
//!     │  the lease is renewed …  │◄──────── grace ────────┼──────┤
//!     └──────────────────────────┴────────────────────────┴──────┘
//!                                                         ◄margin►
//! ```
//!
//! 1. While the servers confirm the session, the end of the lease moves, and nothing happens.
//! 2. `grace` before the end the program is asked to end. That is never taken back, even if the session is
//!    confirmed again.
//! 3. `margin` before the end the program is killed, so that it is over when another contender can hold the
//!    lock.
//! 4. If the lock is lost without a warning, the program is asked at once, and killed a grace later. A loss
//!    never moves the end of the lease forward: a lease that is over, because every process was stopped
//!    meanwhile, stays over, and the program is killed at once. No renewal counts after a loss.
//! 5. Once the program is due to be killed, it gets no other signal: SIGCONT would resume it.
//! 6. If the command is gone, the program is killed at once.

use std::time::Duration;

use super::boot_time::BootTime;
use super::lease_end::LeaseEnd;
use super::policy::{OnLoss, Policy};

/// The time to carry out a kill: an eighth of the grace, and at least this long.
const MARGIN_MIN: Duration = Duration::from_millis(100);

/// What is due now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nothing until this instant; nothing at all for `None`.
    Wait(Option<BootTime>),
    /// The program is asked to end.
    Ask,
    /// Everything is killed.
    Kill,
}

/// The state of one run.
#[derive(Debug)]
pub(crate) struct Plan {
    policy: Policy,
    lease: LeaseEnd,
    phase: RunPhase,
    has_interfered: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunPhase {
    Running,
    /// The program was asked to end, and is killed at this instant.
    Asked {
        kill_at: BootTime,
    },
    Killing,
}

impl Plan {
    pub(crate) fn new(policy: Policy, lease_end: BootTime) -> Self {
        Self { policy, lease: LeaseEnd::new(lease_end), phase: RunPhase::Running, has_interfered: false }
    }

    /// The servers have confirmed the session: the lease ends at this instant now.
    pub(crate) fn extend(&mut self, lease_end: BootTime) {
        self.lease.extend(lease_end);
    }

    /// The lock is lost.
    pub(crate) fn lose(&mut self, now: BootTime) {
        self.lease.lose(&self.policy, now);
    }

    /// Whether the program must not run at this instant, and so must not start either.
    pub(crate) fn is_over(&self, now: BootTime) -> bool {
        match self.policy.on_loss {
            OnLoss::Ignore => now >= self.lease.end(),
            OnLoss::Term | OnLoss::Kill | OnLoss::Run(_) => now >= self.kill_at(),
        }
    }

    /// The program has ended, and processes that it started have not.
    pub(crate) fn clean_up(&mut self, now: BootTime) {
        if self.phase == RunPhase::Running {
            self.phase = RunPhase::Asked { kill_at: now.after(self.policy.grace) };
        }
    }

    /// The command is gone.
    pub(crate) fn abandon(&mut self) {
        self.phase = RunPhase::Killing;
    }

    /// Whether the program was asked or killed because of the lease.
    pub(crate) fn has_interfered(&self) -> bool {
        self.has_interfered
    }

    /// What is due at this instant. [`Due::Ask`] is answered once.
    pub(crate) fn due(&mut self, now: BootTime) -> Due {
        match self.phase {
            RunPhase::Running => self.due_while_running(now),
            RunPhase::Asked { kill_at } => {
                // A lease that ends sooner than the grace leaves less time.
                let kill_at = self.bounded(kill_at);
                if now < kill_at {
                    return Due::Wait(Some(kill_at));
                }
                self.phase = RunPhase::Killing;
                Due::Kill
            }
            RunPhase::Killing => Due::Kill,
        }
    }

    fn due_while_running(&mut self, now: BootTime) -> Due {
        let ask_at = match self.policy.on_loss {
            OnLoss::Ignore => return Due::Wait(None),
            OnLoss::Kill => self.kill_at(),
            // A grace that is shorter than the margin leaves no time to be asked.
            OnLoss::Term | OnLoss::Run(_) => self.lease.end().before(self.policy.grace).min(self.kill_at()),
        };
        if now < ask_at {
            return Due::Wait(Some(ask_at));
        }
        self.has_interfered = true;
        let kill_at = self.kill_at();
        if now >= kill_at || self.policy.on_loss == OnLoss::Kill {
            self.phase = RunPhase::Killing;
            return Due::Kill;
        }
        self.phase = RunPhase::Asked { kill_at };
        Due::Ask
    }

    fn bounded(&self, kill_at: BootTime) -> BootTime {
        if self.policy.on_loss == OnLoss::Ignore { kill_at } else { kill_at.min(self.kill_at()) }
    }

    fn kill_at(&self) -> BootTime {
        self.lease.end().before(margin(self.policy.grace))
    }
}

/// The time to carry out a kill.
pub(crate) fn margin(grace: Duration) -> Duration {
    (grace / 8).max(MARGIN_MIN)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: u64) -> BootTime {
        BootTime::at(Duration::from_millis(millis))
    }

    fn plan(on_loss: OnLoss, lease_end: u64) -> Plan {
        Plan::new(Policy { on_loss, grace: Duration::from_millis(4_000) }, at(lease_end))
    }

    #[test]
    fn the_program_is_asked_a_grace_before_the_end_and_killed_a_margin_before_it() {
        let mut plan = plan(OnLoss::Term, 15_000);
        assert_eq!(plan.due(at(0)), Due::Wait(Some(at(11_000))));
        assert_eq!(plan.due(at(11_000)), Due::Ask);
        assert_eq!(plan.due(at(11_001)), Due::Wait(Some(at(14_500))));
        assert_eq!(plan.due(at(14_500)), Due::Kill);
        assert!(plan.has_interfered());
    }

    #[test]
    fn a_renewed_lease_moves_both_instants() {
        let mut plan = plan(OnLoss::Term, 15_000);
        plan.extend(at(20_000));
        assert_eq!(plan.due(at(15_999)), Due::Wait(Some(at(16_000))));
        assert!(!plan.has_interfered());
    }

    #[test]
    fn a_renewal_after_the_program_was_asked_takes_nothing_back() {
        let mut plan = plan(OnLoss::Term, 15_000);
        assert_eq!(plan.due(at(11_000)), Due::Ask);
        plan.extend(at(25_000));
        assert_eq!(plan.due(at(11_100)), Due::Wait(Some(at(14_500))));
        assert_eq!(plan.due(at(14_500)), Due::Kill);
    }

    #[test]
    fn a_program_that_is_too_late_to_be_asked_is_killed() {
        assert_eq!(plan(OnLoss::Term, 15_000).due(at(14_600)), Due::Kill);
        let policy = Policy { on_loss: OnLoss::Term, grace: Duration::ZERO };
        let mut hasty = Plan::new(policy, at(15_000));
        assert_eq!(hasty.due(at(0)), Due::Wait(Some(at(14_900))));
        assert_eq!(hasty.due(at(14_900)), Due::Kill);
    }

    #[test]
    fn a_sudden_loss_asks_at_once_and_kills_a_grace_later() {
        let mut plan = plan(OnLoss::Term, 15_000);
        plan.lose(at(3_000));
        assert_eq!(plan.due(at(3_000)), Due::Ask);
        assert_eq!(plan.due(at(3_001)), Due::Wait(Some(at(6_500))));
    }

    #[test]
    fn a_loss_never_moves_the_end_of_the_lease_forward() {
        for on_loss in [OnLoss::Term, OnLoss::Kill, OnLoss::Run("x".to_owned())] {
            let mut over = plan(on_loss.clone(), 15_000);
            over.lose(at(15_000));
            assert_eq!(over.due(at(15_000)), Due::Kill, "{on_loss:?}");
            let mut near = plan(on_loss.clone(), 15_000);
            near.lose(at(14_000));
            near.extend(at(30_000));
            assert_eq!(near.due(at(14_500)), Due::Kill, "{on_loss:?}");
        }
        let mut nearly = plan(OnLoss::Term, 15_000);
        nearly.lose(at(14_000));
        assert_eq!(nearly.due(at(14_000)), Due::Ask);
        assert_eq!(nearly.due(at(14_000)), Due::Wait(Some(at(14_500))));
    }

    #[test]
    fn a_renewal_that_arrives_late_does_not_shorten_the_lease() {
        let mut plan = plan(OnLoss::Term, 15_000);
        plan.extend(at(14_000));
        assert_eq!(plan.due(at(0)), Due::Wait(Some(at(11_000))));
    }

    #[test]
    fn each_policy_has_its_first_step() {
        assert_eq!(plan(OnLoss::Kill, 15_000).due(at(11_000)), Due::Wait(Some(at(14_500))));
        assert_eq!(plan(OnLoss::Kill, 15_000).due(at(14_500)), Due::Kill);
        assert_eq!(plan(OnLoss::Run("x".to_owned()), 15_000).due(at(11_000)), Due::Ask);
        let mut ignoring = plan(OnLoss::Ignore, 15_000);
        ignoring.lose(at(1_000));
        assert_eq!(ignoring.due(at(99_000)), Due::Wait(None));
        let mut killing = plan(OnLoss::Kill, 15_000);
        killing.lose(at(1_000));
        assert_eq!(killing.due(at(1_000)), Due::Kill);
    }

    #[test]
    fn without_the_command_everything_is_killed_under_every_policy() {
        for on_loss in [OnLoss::Term, OnLoss::Kill, OnLoss::Ignore, OnLoss::Run("x".to_owned())] {
            let mut plan = plan(on_loss, 15_000);
            plan.abandon();
            assert_eq!(plan.due(at(0)), Due::Kill);
        }
    }

    #[test]
    fn what_a_program_leaves_behind_has_a_grace_to_end() {
        let mut leaving = plan(OnLoss::Term, 15_000);
        leaving.clean_up(at(1_000));
        assert_eq!(leaving.due(at(1_000)), Due::Wait(Some(at(5_000))));
        assert_eq!(leaving.due(at(5_000)), Due::Kill);
        assert!(!leaving.has_interfered());
        let mut late = plan(OnLoss::Term, 15_000);
        late.clean_up(at(10_999));
        assert_eq!(late.due(at(10_999)), Due::Wait(Some(at(14_500))));
        let mut ignoring = plan(OnLoss::Ignore, 2_000);
        ignoring.clean_up(at(9_000));
        assert_eq!(ignoring.due(at(9_000)), Due::Wait(Some(at(13_000))));
    }

    #[derive(Clone, Debug)]
    enum Event {
        Renew(u64),
        Lose,
        CleanUp,
    }

    fn events() -> impl Strategy<Value = Vec<(u64, Event)>> {
        let event = prop_oneof![
            4 => (1_000_u64..20_000).prop_map(Event::Renew),
            1 => Just(Event::Lose),
            1 => Just(Event::CleanUp),
        ];
        prop::collection::vec((0_u64..3_000, event), 0..40)
    }

    proptest! {
        /// Whatever happens: under every policy that ends programs, everything is killed a margin before the
        /// end of the lease at the latest, if the plan is asked at the instants that it names.
        #[test]
        fn nothing_runs_beyond_the_lease(grace in 0_u64..5_000, steps in events()) {
            let policy = Policy { on_loss: OnLoss::Term, grace: Duration::from_millis(grace) };
            let (mut now, mut end, mut is_lost) = (at(0), at(15_000), false);
            let mut plan = Plan::new(policy, end);
            for (pause, event) in steps {
                let next = now.after(Duration::from_millis(pause));
                loop {
                    match plan.due(now) {
                        Due::Kill => return Ok(()),
                        Due::Ask => {}
                        Due::Wait(until) => {
                            let until = until.unwrap();
                            prop_assert!(until <= end.before(margin(Duration::from_millis(grace))));
                            if until > next {
                                break;
                            }
                            now = now.max(until);
                        }
                    }
                }
                now = next;
                match event {
                    Event::Renew(by) if is_lost => plan.extend(now.after(Duration::from_millis(by))),
                    Event::Renew(by) => {
                        end = end.max(now.after(Duration::from_millis(by)));
                        plan.extend(end);
                    }
                    // The lease still ends when it ends, whatever the loss leaves of the grace.
                    Event::Lose => {
                        end = end.min(now.after(Duration::from_millis(grace)));
                        plan.lose(now);
                        is_lost = true;
                    }
                    Event::CleanUp => plan.clean_up(now),
                }
            }
        }
    }
}
