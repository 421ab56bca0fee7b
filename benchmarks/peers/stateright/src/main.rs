//! Two-phase commit and single-decree Paxos for stateright: `srbench MODEL COUNT` prints states, seconds and the verdict.
//!
//! `2pc COUNT`: the transaction manager and COUNT resource managers of Gray and Lamport 2006.
//! `paxos COUNT`: COUNT proposers, each with its own ballot and value, and three acceptors, of Lamport 1998.
//! Messages are a set that grows: each may be received late, twice, or never.

use stateright::{Checker, Model, Property};
use std::collections::BTreeSet;
use std::time::Instant;

#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
enum Rm { Working, Prepared, Committed, Aborted }

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Commit { rms: Vec<Rm>, votes: u32, sent: u32, decision: Option<bool> }

#[derive(Clone, Copy, Debug, PartialEq)]
enum Step { Prepare(usize), Refuse(usize), Count(usize), Decide(bool), Hear(usize) }

struct TwoPhase(usize);

impl Model for TwoPhase {
    type State = Commit;
    type Action = Step;

    fn init_states(&self) -> Vec<Commit> {
        vec![Commit { rms: vec![Rm::Working; self.0], votes: 0, sent: 0, decision: None }]
    }

    fn actions(&self, s: &Commit, out: &mut Vec<Step>) {
        for rm in 0..self.0 {
            if s.rms[rm] == Rm::Working { out.extend([Step::Prepare(rm), Step::Refuse(rm)]) }
            if s.decision.is_none() && s.sent & !s.votes & (1 << rm) != 0 { out.push(Step::Count(rm)) }
            if s.decision.is_some() { out.push(Step::Hear(rm)) }
        }
        if s.decision.is_none() {
            out.push(Step::Decide(false));
            if s.votes == (1 << self.0) - 1 { out.push(Step::Decide(true)) }
        }
    }

    fn next_state(&self, last: &Commit, step: Step) -> Option<Commit> {
        let mut s = last.clone();
        match step {
            Step::Prepare(rm) => { s.rms[rm] = Rm::Prepared; s.sent |= 1 << rm }
            Step::Refuse(rm) => s.rms[rm] = Rm::Aborted,
            Step::Count(rm) => s.votes |= 1 << rm,
            Step::Decide(commit) => s.decision = Some(commit),
            Step::Hear(rm) => s.rms[rm] = if s.decision? { Rm::Committed } else { Rm::Aborted },
        }
        Some(s)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("one decision", |_, s: &Commit| {
            !(s.rms.contains(&Rm::Committed) && s.rms.contains(&Rm::Aborted))
        })]
    }
}

const ACCEPTORS: u8 = 3;
const MOST: usize = 2;

#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
enum Message {
    Prepare { ballot: u8 },
    Promise { ballot: u8, from: u8, seen: u8, value: u8 },
    Accept { ballot: u8, value: u8 },
    Taken { ballot: u8, from: u8, value: u8 },
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Voting { sent: BTreeSet<Message>, promised: [u8; 3], accepted: [(u8, u8); 3] }

#[derive(Clone, Copy, Debug, PartialEq)]
enum Move { Try(u8), Promise(u8, u8), Propose(u8, u8), Take(u8, u8, u8) }

struct Paxos(u8);

fn chosen(s: &Voting) -> BTreeSet<u8> {
    let taken: Vec<(u8, u8)> = s.sent.iter().filter_map(|m| match *m {
        Message::Taken { ballot, value, .. } => Some((ballot, value)),
        _ => None,
    }).collect();
    taken.iter().filter(|one| taken.iter().filter(|other| other == one).count() >= MOST).map(|one| one.1).collect()
}

impl Model for Paxos {
    type State = Voting;
    type Action = Move;

    fn init_states(&self) -> Vec<Voting> {
        vec![Voting { sent: BTreeSet::new(), promised: [0; 3], accepted: [(0, 0); 3] }]
    }

    fn actions(&self, s: &Voting, out: &mut Vec<Move>) {
        for ballot in 1..=self.0 {
            if !s.sent.contains(&Message::Prepare { ballot }) { out.push(Move::Try(ballot)) }
            let promises: Vec<(u8, u8)> = s.sent.iter().filter_map(|m| match *m {
                Message::Promise { ballot: b, seen, value, .. } if b == ballot => Some((seen, value)),
                _ => None,
            }).collect();
            let begun = s.sent.iter().any(|m| matches!(m, Message::Accept { ballot: b, .. } if *b == ballot));
            if promises.len() >= MOST && !begun {
                // Any majority of those who promised: what it saw under the greatest ballot, or one's own value.
                let mut values = BTreeSet::new();
                for i in 0..promises.len() { for j in 0..i {
                    let best = promises[i].max(promises[j]);
                    values.insert(if best.0 == 0 { ballot } else { best.1 });
                } }
                out.extend(values.into_iter().map(|value| Move::Propose(ballot, value)));
            }
        }
        for m in &s.sent {
            for from in 0..ACCEPTORS {
                match *m {
                    Message::Prepare { ballot } if ballot > s.promised[from as usize] => out.push(Move::Promise(ballot, from)),
                    Message::Accept { ballot, value } if ballot >= s.promised[from as usize]
                        && !s.sent.contains(&Message::Taken { ballot, from, value }) => out.push(Move::Take(ballot, from, value)),
                    _ => {}
                }
            }
        }
    }

    fn next_state(&self, last: &Voting, step: Move) -> Option<Voting> {
        let mut s = last.clone();
        match step {
            Move::Try(ballot) => { s.sent.insert(Message::Prepare { ballot }); }
            Move::Promise(ballot, from) => {
                let (seen, value) = s.accepted[from as usize];
                s.promised[from as usize] = ballot;
                s.sent.insert(Message::Promise { ballot, from, seen, value });
            }
            Move::Propose(ballot, value) => { s.sent.insert(Message::Accept { ballot, value }); }
            Move::Take(ballot, from, value) => {
                s.promised[from as usize] = ballot;
                s.accepted[from as usize] = (ballot, value);
                s.sent.insert(Message::Taken { ballot, from, value });
            }
        }
        Some(s)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("one value", |_, s: &Voting| chosen(s).len() <= 1),
            Property::sometimes("some value", |_, s: &Voting| chosen(s).len() == 1),
        ]
    }
}

fn check<M: Model + Send + Sync + 'static>(model: M, bad: &'static str)
where M::State: std::hash::Hash + Send + Sync + Clone + std::fmt::Debug + PartialEq, M::Action: Send + Sync + std::fmt::Debug + Clone + PartialEq {
    let begin = Instant::now();
    let checker = model.checker().spawn_bfs().join();
    let seconds = begin.elapsed().as_secs_f64();
    println!("{{\"states\": {}, \"s\": {}, \"broken\": {}}}",
        checker.unique_state_count(), seconds, checker.discovery(bad).is_some());
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let count: usize = words.get(2).and_then(|word| word.parse().ok()).unwrap_or(3);
    match words.get(1).map(String::as_str) {
        Some("2pc") => check(TwoPhase(count), "one decision"),
        Some("paxos") => check(Paxos(count as u8), "one value"),
        _ => { eprintln!("srbench 2pc|paxos COUNT"); std::process::exit(2) }
    }
}
