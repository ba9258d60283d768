//! The process of the supervisor: one loop over the orders, the children, and the clock.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal as SignalName};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitStatus, getpid, kill_process_group, set_child_subreaper};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use super::boot_time::BootTime;
use super::message::{EXEC, Ended, Order, Report};
use super::orphans::{Reaped, kill_below, reap, signal_below, signal_group};
use super::plan::{Due, Plan};
use super::policy::{OnLoss, Policy};
use super::socket::{self, Received};
use super::terminal::{OnStop, Terminal};
use crate::exit::Exit;
use crate::output::warn;

/// The pause between two kills, for processes that were started between the look and the signal.
const KILL_AGAIN: Duration = Duration::from_millis(20);

/// This binary, also if its file was replaced or deleted meanwhile.
pub(crate) const THIS_BINARY: &str = "/proc/self/exe";

/// `lockkeeper __supervise JOB`, with the socket as its standard input. JOB is the process group of the
/// command, or 0 if its leader is outside of this PID namespace.
pub(crate) fn main(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let job = arguments.next().and_then(|job| Pid::from_raw(job.to_str()?.parse().ok()?));
    if let Err(error) = Loop::prepare(job).and_then(Loop::serve) {
        warn(format_args!("supervisor: {error}"));
        return Exit::INTERNAL.into();
    }
    ExitCode::SUCCESS
}

struct Loop {
    link: OwnedFd,
    /// Readable when a child has changed.
    children: SignalFd,
    /// Readable when the instant of [`Due::Wait`] has come, also after the machine has slept.
    alarm: OwnedFd,
    terminal: Option<Terminal>,
    command: Vec<OsString>,
    run: Option<Run>,
    /// The command is gone.
    is_abandoned: bool,
}

/// The program.
struct Run {
    plan: Plan,
    policy: Policy,
    /// The variables that name the lock.
    environment: Vec<(String, String)>,
    group: Pid,
    ended: Option<Ended>,
    /// What the program gets, unless it is due to be killed.
    signals: Vec<Signal>,
    /// The program has ended, and what it left has not been asked to end.
    is_left: bool,
    /// Ctrl-Z was passed on, and the program has not stopped yet.
    is_stopping: bool,
}

impl Loop {
    fn prepare(job: Option<Pid>) -> io::Result<Self> {
        // The command decides what a signal means. One that all processes get must not end the supervisor.
        // This also lets it hand the terminal over from the background (SIGTTOU).
        SigSet::all().thread_block()?;
        let mut of_children = SigSet::empty();
        of_children.add(SignalName::SIGCHLD);
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let alarm = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        set_child_subreaper(Some(getpid()))?;
        // `ps` would show the name of the link otherwise.
        let _ = rustix::thread::set_name(c"lockkeeper-sup");
        Ok(Self {
            link: io::stdin().as_fd().try_clone_to_owned()?,
            children: SignalFd::with_flags(&of_children, flags)?,
            alarm: timerfd_create(TimerfdClockId::Boottime, alarm)?,
            terminal: job.and_then(Terminal::open),
            command: Vec::new(),
            run: None,
            is_abandoned: false,
        })
    }

    fn serve(mut self) -> io::Result<()> {
        loop {
            self.take_orders()?;
            let has_children = self.reap();
            let Some(run) = &mut self.run else {
                if self.is_abandoned {
                    return Ok(());
                }
                self.wait(None)?;
                continue;
            };
            if let (Some(how), false) = (run.ended, has_children) {
                let report = Report::Ended { how, interfered: run.plan.has_interfered() };
                self.report(report);
                return Ok(());
            }
            let now = BootTime::now();
            let until = match run.plan.due(now) {
                Due::Wait(until) => {
                    run.send_signals();
                    until
                }
                Due::Ask => {
                    run.send_signals();
                    ask(run);
                    self.report(Report::Asked);
                    continue;
                }
                Due::Kill => {
                    // All processes may have been stopped until the lease was over, and SIGCONT would resume
                    // the program beside the next holder.
                    run.signals.clear();
                    run.signal(Signal::KILL);
                    kill_below(getpid());
                    Some(now.after(KILL_AGAIN))
                }
            };
            self.wait(until)?;
        }
    }

    /// Carries out every order that has come.
    fn take_orders(&mut self) -> io::Result<()> {
        while !self.is_abandoned {
            match socket::receive(&self.link)? {
                Received::Message(Order::Start { environment, policy, lease_end }, input) => {
                    self.start(environment, policy, lease_end, input);
                }
                Received::Message(Order::Program, Some(words)) => self.command = read_words(words)?,
                Received::Message(order, _) => {
                    if let Some(run) = &mut self.run {
                        obey(run, &order);
                    }
                }
                Received::Nothing => return Ok(()),
                Received::End => {
                    self.is_abandoned = true;
                    if let Some(run) = &mut self.run {
                        run.plan.abandon();
                    }
                }
            }
        }
        Ok(())
    }

    fn start(
        &mut self,
        environment: Vec<(String, String)>,
        policy: Policy,
        lease_end: BootTime,
        input: Option<OwnedFd>,
    ) {
        let plan = Plan::new(policy.clone(), lease_end);
        if plan.is_over(BootTime::now()) {
            self.report(Report::TooLate);
            return;
        }
        let started = new_process()
            .args(&self.command)
            .envs(environment.iter().cloned())
            .stdin(input.map_or_else(Stdio::null, Stdio::from))
            .spawn();
        // The child is waited for with all others.
        let started = started.map(|child| Pid::from_raw(child.id().cast_signed()));
        match started {
            Ok(Some(group)) => {
                self.run = Some(Run {
                    plan,
                    policy,
                    environment,
                    group,
                    ended: None,
                    signals: Vec::new(),
                    is_left: false,
                    is_stopping: false,
                });
                self.report(Report::Started { group: group.as_raw_pid() });
            }
            Ok(None) => self.report(Report::NotStarted { errno: 0 }),
            Err(error) => {
                self.report(Report::NotStarted { errno: error.raw_os_error().unwrap_or_default() });
            }
        }
    }

    /// Takes note of every child that changed. Returns whether a child is left.
    fn reap(&mut self) -> bool {
        loop {
            match reap() {
                Reaped::Child(pid, status) => {
                    // Once the program has ended, a process that it left may have its number.
                    if self.run.as_ref().is_some_and(|run| run.group == pid && run.ended.is_none()) {
                        self.on_program(status);
                    }
                }
                Reaped::Nothing => return true,
                Reaped::NoChild => return false,
            }
        }
    }

    fn on_program(&mut self, status: WaitStatus) {
        let Some(run) = &mut self.run else { return };
        if let Some(signal) = status.stopping_signal() {
            // A stop by the terminal may be in front of Ctrl-Z, and to resume the program would undo that.
            let signal = if std::mem::take(&mut run.is_stopping) { Signal::TSTP.as_raw() } else { signal };
            match self.terminal.as_mut().map(|terminal| (terminal.on_stop(signal), terminal)) {
                Some((OnStop::HandOver, terminal)) => {
                    terminal.hand_over(run.group);
                    run.signals.push(Signal::CONT);
                }
                Some((OnStop::Suspend, terminal)) => {
                    terminal.take_back(run.group, false);
                    self.report(Report::Suspended);
                }
                Some((OnStop::Leave, _)) | None => {}
            }
            return;
        }
        let Some(how) = how_ended(status) else { return };
        run.ended = Some(how);
        if let Some(terminal) = &mut self.terminal {
            terminal.take_back(run.group, matches!(how, Ended::Signalled(_)));
        }
        // What the program left, in whatever group and session, has to end before the lock is released.
        run.plan.clean_up(BootTime::now());
        run.is_left = true;
    }

    /// A command that is gone is noticed when the next order is awaited.
    fn report(&self, report: Report) {
        let _ = socket::send(&self.link, &report, None);
    }

    /// Waits for an order, a child, or this instant.
    fn wait(&self, until: Option<BootTime>) -> io::Result<()> {
        // Zero turns the alarm off.
        let at = until.map_or(Duration::ZERO, |until| until.since_boot().max(Duration::from_nanos(1)));
        let it_value = Timespec::try_from(at).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        timerfd_settime(&self.alarm, TimerfdTimerFlags::ABSTIME, &Itimerspec { it_interval, it_value })?;
        let mut sources =
            vec![PollFd::new(&self.alarm, PollFlags::IN), PollFd::new(&self.children, PollFlags::IN)];
        if !self.is_abandoned {
            sources.push(PollFd::new(&self.link, PollFlags::IN));
        }
        match poll(&mut sources, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        while let Ok(Some(_)) = self.children.read_signal() {}
        Ok(())
    }
}

impl Run {
    /// Sends a signal to the program's group.
    fn signal(&self, signal: Signal) {
        if self.ended.is_none() {
            // Nobody has waited for its leader, so the number is its own.
            let _ = kill_process_group(self.group, signal);
        } else {
            signal_group(getpid(), self.group, signal);
        }
    }

    /// Sends the signals that have come, in their order.
    fn send_signals(&mut self) {
        for signal in std::mem::take(&mut self.signals) {
            self.signal(signal);
        }
        if std::mem::take(&mut self.is_left) {
            signal_below(getpid(), &[Signal::TERM, Signal::CONT]);
        }
    }
}

fn obey(run: &mut Run, order: &Order) {
    match order {
        Order::Extend { lease_end } => run.plan.extend(*lease_end),
        Order::Lost => run.plan.lose(BootTime::now()),
        Order::Signal { number } => {
            if let Some(signal) = Signal::from_named_raw(*number) {
                run.is_stopping = signal == Signal::TSTP;
                run.signals.push(signal);
            }
        }
        Order::Resume => run.signals.push(Signal::CONT),
        Order::Program | Order::Start { .. } => {}
    }
}

/// Each word has a NUL character behind it.
fn read_words(file: OwnedFd) -> io::Result<Vec<OsString>> {
    let mut text = Vec::new();
    File::from(file).read_to_end(&mut text)?;
    let words = text.split_inclusive(|byte| *byte == 0);
    Ok(words
        .filter_map(|word| word.strip_suffix(b"\0"))
        .map(|word| OsStr::from_bytes(word).to_owned())
        .collect())
}

/// A process in a group of its own, which the kernel kills with this one. Its arguments are the program's.
fn new_process() -> Command {
    let mut command = Command::new(THIS_BINARY);
    command.arg(EXEC).arg(getpid().as_raw_pid().to_string()).process_group(0);
    command
}

/// Asks the program to end, as its policy says.
fn ask(run: &Run) {
    match &run.policy.on_loss {
        OnLoss::Run(command) => {
            let started = new_process()
                .args(["sh", "-c", command])
                .envs(run.environment.iter().cloned())
                .env("LOCKKEEPER_GROUP", run.group.as_raw_pid().to_string())
                .stdin(Stdio::null())
                .spawn();
            if let Err(error) = started {
                warn(format_args!("--on-loss: sh: {error}; the program gets SIGTERM"));
                run.signal(Signal::TERM);
            }
        }
        OnLoss::Term | OnLoss::Kill | OnLoss::Ignore => run.signal(Signal::TERM),
    }
    // A stopped program could not do anything about it.
    run.signal(Signal::CONT);
}

fn how_ended(status: WaitStatus) -> Option<Ended> {
    let exited = status.exit_status().map(|code| Ended::Exited(u8::try_from(code).unwrap_or(u8::MAX)));
    exited.or_else(|| status.terminating_signal().map(Ended::Signalled))
}
