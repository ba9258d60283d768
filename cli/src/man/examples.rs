//! The examples of the manual pages: pure.

/// A command line, and what it does.
pub(super) type Example = (&'static str, &'static str);

/// Those of the page with this name.
pub(super) fn of(page: &str) -> &'static [Example] {
    match page.strip_prefix("lockkeeper-").unwrap_or_default() {
        "" => &[
            (
                "lockkeeper lock /locks/nightly-report -- ./report.sh",
                "Run a script while no other machine does.",
            ),
            ("lockkeeper top /locks", "See who holds and who waits."),
            ("lockkeeper doctor", "Examine the servers."),
        ],
        "lock" => &[
            (
                "lockkeeper lock /locks/nightly-report --timeout 10m -- ./report.sh --all",
                "Run a script under a lock, and wait for the lock for ten minutes at most.",
            ),
            (
                "lockkeeper lock /locks/backup -q --try -E 0 -- backup --full",
                "In a job of cron on every machine: one of them runs, and the others end without a message.",
            ),
            (
                "lockkeeper lock /locks/deploy --note JIRA-42 -- sh -c 'migrate && restart'",
                "Tell people who look why the lock is held. A shell is needed for the two commands.",
            ),
        ],
        "read" => &[(
            "lockkeeper read /locks/stock -- ./export.sh",
            "Run beside other readers, and not beside a writer.",
        )],
        "write" => &[("lockkeeper write /locks/stock -- ./import.sh", "Run beside no reader and no writer.")],
        "semaphore" => &[
            (
                "lockkeeper semaphore -n 3 /pools/convert -- ./convert.sh",
                "Run on three machines at once at most.",
            ),
            (
                "lockkeeper semaphore -n 8 --take 2 /pools/convert -- ./convert.sh",
                "The same with two of eight permits for this program.",
            ),
        ],
        "multi" => {
            &[("lockkeeper multi /locks/stock /locks/orders -- ./close.sh", "Hold two locks at once.")]
        }
        "elect" => {
            &[("lockkeeper elect /leaders/mailer --id web-3 -- ./mailer", "Run on the machine that leads.")]
        }
        "once" => &[
            ("lockkeeper once /migrations/0007 -- ./migrate.sh", "Run once for ever, over all machines."),
            (
                "lockkeeper once --every 24h --offset 2h /jobs/nightly -- ./nightly.sh",
                "Run once a day, at two in the morning by UTC.",
            ),
            (
                "lockkeeper once /migrations/0007 --show",
                "Print whether the program has succeeded, when, and in which process.",
            ),
        ],
        "inspect" => &[
            ("lockkeeper inspect /locks/nightly-report", "Show who holds and who waits."),
            ("lockkeeper inspect -o json /locks/nightly-report | jq .holders", "The same for a program."),
        ],
        "tree" => &[("lockkeeper tree /", "Show everything that is in use.")],
        "top" => &[
            ("lockkeeper top /locks", "A live screen."),
            ("lockkeeper top -b -n 1 --sort age /locks | head", "The oldest locks, as text."),
        ],
        rest => of_the_others(rest),
    }
}

fn of_the_others(page: &str) -> &'static [Example] {
    match page {
        "check" => &[(
            "lockkeeper check /locks --holder-older 2h --waiter-older 10m",
            "For a monitoring system: exit code 2 if a lock is held or waited for too long.",
        )],
        "queue" | "queue-list" => {
            &[("lockkeeper queue list /queues/orders", "Show the items of a work queue.")]
        }
        "queue-requeue" => {
            &[("lockkeeper queue requeue /queues/orders --all", "Put every failed item back to the end.")]
        }
        "watch" => &[("lockkeeper watch /locks/nightly-report", "A line for each change, until ctrl-c.")],
        "wait" => &[("lockkeeper wait /locks/deploy --timeout 5m", "Wait until nobody holds the lock.")],
        "get" => &[
            ("lockkeeper get /config/limits", "Print the data of a node."),
            ("lockkeeper get --stat /config/limits", "Print when it was written, and by which transaction."),
        ],
        "ls" => &[
            ("lockkeeper ls /locks", "Print the names of the children."),
            ("lockkeeper ls -l /locks/deploy", "The same with the age, the session and the data of each."),
        ],
        "deadlocks" => &[("lockkeeper deadlocks /locks", "Find contenders that wait for each other.")],
        "revoke" => &[("lockkeeper revoke /locks/nightly-report", "Ask the holders to release.")],
        "release" => &[(
            "lockkeeper release /locks/nightly-report --force --node 0x1f2",
            "Take the lock away from the holder with this node, after a question.",
        )],
        "doctor" => &[("lockkeeper doctor --root /locks", "Examine the servers, a session and the locks.")],
        "serve" => &[("lockkeeper serve --port 2181", "A server that forgets everything when it ends.")],
        "completions" => &[(
            "lockkeeper completions bash > /etc/bash_completion.d/lockkeeper",
            "Complete subcommands, flags, and the paths of nodes from the servers.",
        )],
        "man" => &[("lockkeeper man /usr/local/share/man/man1", "Write these pages.")],
        _ => &[],
    }
}
