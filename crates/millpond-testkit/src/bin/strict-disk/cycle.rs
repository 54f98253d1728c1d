//! What happens in one cycle, and what the worker said of it.

use std::collections::{BTreeMap, BTreeSet};

use millpond_testkit::journal::{Event, Journal};
use millpond_testkit::ledger::Crash;
use millpond_testkit::oracle::{Drained, Verdict};
use millpond_testkit::random::Random;
use millpond_testkit::sim_disk::{Fault, Kind};
use millpond_testkit::strict_disk::{Deaf, Plan};
use rustix::io::Errno;

/// Answers after which a life that is not cut off closes its queue.
const ANSWERS: u64 = 60;

/// What is to happen, drawn from a seed.
#[derive(Clone, Debug)]
pub(crate) struct Cycle {
    pub(crate) plan: Plan,
    pub(crate) answers: u64,
    pub(crate) crash: Crash,
    pub(crate) durability: &'static str,
    pub(crate) drains: bool,
}

impl Cycle {
    pub(crate) fn draw(random: &mut Random, deaf: Deaf) -> Self {
        let mut plan = Plan { deaf, ..Plan::default() };
        let mut answers = u64::MAX >> 12;
        match random.below(10) {
            // Cut off while it opens or soon after, or later.
            0..3 => plan.cut = Some(1 + random.below(20)),
            3..7 => plan.cut = Some(1 + random.below(150)),
            7..9 => {
                plan.fault = Some(fault(random));
                answers = 1 + random.below(2 * ANSWERS);
            }
            _ => answers = 1 + random.below(ANSWERS),
        }
        if random.below(4) == 0 {
            plan.short = Some(1 + random.below(30));
        }
        let crash = if random.below(4) == 0 { Crash::Kill } else { Crash::PowerCut };
        let durability = if random.below(2) == 0 { "sync" } else { "group" };
        Self { plan, answers, crash, durability, drains: random.below(5) == 0 }
    }
}

/// A call that fails, once or from then on.
fn fault(random: &mut Random) -> Fault {
    let kinds = [
        (Kind::Sync, Errno::IO, 60),
        (Kind::Sync, Errno::IO, 60),
        (Kind::Write, Errno::IO, 60),
        (Kind::Write, Errno::NOSPC, 60),
        (Kind::Create, Errno::NOSPC, 4),
        (Kind::Create, Errno::MFILE, 4),
        (Kind::Rename, Errno::IO, 4),
        (Kind::Unlink, Errno::IO, 3),
        (Kind::SyncDir, Errno::IO, 6),
        (Kind::Read, Errno::IO, 40),
        (Kind::Open, Errno::MFILE, 12),
        (Kind::List, Errno::IO, 3),
    ];
    let (kind, errno, span) = kinds[usize::try_from(random.below(kinds.len() as u64)).unwrap_or_default()];
    Fault {
        kind,
        after: random.below(span),
        errno: errno.raw_os_error(),
        for_ever: random.below(2) == 0,
        half: random.below(2) == 0,
    }
}

/// What the worker said.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// What was there when it opened; `None` when it could not look.
    pub(crate) seen: Option<Drained>,
    pub(crate) events: Vec<Event>,
    pub(crate) damage: Option<String>,
    /// How it ended.
    pub(crate) why: String,
}

impl Said {
    pub(crate) fn read(text: &str) -> Self {
        let (mut said, mut drained) = (Self::default(), Drained { next: u64::MAX, ..Drained::default() });
        for line in text.lines() {
            let mut words = line.splitn(2, ' ');
            let (word, rest) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            match word {
                "length" => drained.length = rest.parse().unwrap_or(u64::MAX),
                "entry" => {
                    let (id, nonce) = rest.split_once(' ').unwrap_or_default();
                    drained.delivered.push((id.parse().unwrap_or_default(), nonce.parse().ok()));
                }
                "seen" => said.seen = Some(std::mem::take(&mut drained)),
                "damage" => said.damage = Some(rest.to_owned()),
                "over" => rest.clone_into(&mut said.why),
                _ => said.events.extend(line.parse::<Event>().ok()),
            }
        }
        if let Some(seen) = &mut said.seen {
            let id = |event: &Event| if let Event::Pushed(_, id) = event { Some(*id) } else { None };
            seen.next = said.events.iter().filter_map(id).min().unwrap_or(u64::MAX);
        }
        said
    }
}

/// Holds what was seen after a crash against what was owed, and goes on from it: what was seen stays, and what was not
/// does not come back. Says how much was owed, too.
pub(crate) fn judge(seen: &Drained, journal: &mut Journal) -> (u64, Verdict) {
    let owed = journal.pushed.keys().filter(|id| !journal.acks.contains(id)).count() as u64;
    let verdict = seen.judge(journal);
    let returned = journal.pushed.keys().copied().max().max(journal.returned);
    let there: BTreeMap<u64, u64> =
        seen.delivered.iter().filter_map(|(id, nonce)| Some((*id, (*nonce)?))).collect();
    let known = journal.pushed.keys().chain(&journal.acked).copied();
    let gone: BTreeSet<u64> = known.filter(|id| !there.contains_key(id)).collect();
    *journal = Journal {
        pushes: there.values().copied().collect(),
        returned: returned.max(there.keys().copied().max()),
        pushed: there,
        acks: gone.clone(),
        acked: gone,
    };
    (owed, verdict)
}
