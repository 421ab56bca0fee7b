//! Monotone loops in words: the least sets that are closed under rules, and how they change.
//!
//! One call is one epoch: iteration after iteration, each node of the loop once, until nothing is left to do.  What an
//! element keeps is what `make_monotone_distinct` in `syndicate/flow/operators/elementwise.py` keeps, its derivations by
//! iteration and the iteration at which it is in the set; and as there it moves only when the derivations up to that
//! one are gone.

use crate::arrangement::{halves, word, Arranged, Weighed};
use crate::hash_table::{hash, Ahead, Set, Word, NONE};
use crate::words::{number, small, too_large, Data, Table, Words};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// After so many rows Python is asked whether it wants to go on: signals come between two calls.
const PAUSE: usize = 1 << 18;

// ------------------------------------------------------------------------------------------------------- expressions

/// What is made of a row, or asked of it.
enum Expression {
    Column(usize),
    Constant(Word),
    Sum(Box<Expression>, Box<Expression>),
    Difference(Box<Expression>, Box<Expression>),
    Product(Box<Expression>, Box<Expression>),
    Same(Box<Expression>, Box<Expression>),
    Less(Box<Expression>, Box<Expression>),
    All(Vec<Expression>),
    Any(Vec<Expression>),
    Not(Box<Expression>),
}

impl Expression {
    /// Read what `syndicate.flow.word_loop` writes: the number of a column, a constant in a list, or an operator and
    /// what it is of.
    fn read(words: &Words, written: &Bound<'_, PyAny>) -> PyResult<Expression> {
        if let Ok(constant) = written.cast_exact::<PyList>() {
            return Ok(Expression::Constant(words.word(&constant.get_item(0)?)?));
        }
        let Ok(parts) = written.cast_exact::<PyTuple>() else { return Ok(Expression::Column(written.extract()?)) };
        let operator = parts.get_item(0)?.cast_into::<PyString>()?;
        let mut read = parts.iter().skip(1).map(|part| Expression::read(words, &part)).collect::<PyResult<Vec<_>>>()?;
        match operator.to_str()? {
            "all" => return Ok(Expression::All(read)),
            "any" => return Ok(Expression::Any(read)),
            _ => (),
        }
        let last = Box::new(read.pop().ok_or_else(|| PyTypeError::new_err("an operator of nothing"))?);
        let Some(first) = read.pop().map(Box::new) else { return Ok(Expression::Not(last)) };
        match operator.to_str()? {
            "+" => Ok(Expression::Sum(first, last)),
            "-" => Ok(Expression::Difference(first, last)),
            "*" => Ok(Expression::Product(first, last)),
            "==" => Ok(Expression::Same(first, last)),
            "!=" => Ok(Expression::Not(Box::new(Expression::Same(first, last)))),
            "<" => Ok(Expression::Less(first, last)),
            ">" => Ok(Expression::Less(last, first)),
            "<=" => Ok(Expression::Not(Box::new(Expression::Less(last, first)))),
            ">=" => Ok(Expression::Not(Box::new(Expression::Less(first, last)))),
            other => Err(PyTypeError::new_err(format!("no operator {other}"))),
        }
    }

    /// The word that it makes of a row; None where that is no matter of small integers.
    #[inline]
    fn value(&self, row: &[Word]) -> Option<Word> {
        match self {
            Expression::Column(column) => row.get(*column).copied(),
            Expression::Constant(word) => Some(*word),
            Expression::Sum(one, other) => {
                small(number(one.value(row)?)?.checked_add(number(other.value(row)?)?)?)
            }
            Expression::Difference(one, other) => {
                small(number(one.value(row)?)?.checked_sub(number(other.value(row)?)?)?)
            }
            Expression::Product(one, other) => {
                small(number(one.value(row)?)?.checked_mul(number(other.value(row)?)?)?)
            }
            _ => None,
        }
    }

    /// Whether it holds of a row; None where that is no matter of small integers.
    #[inline]
    fn holds(&self, row: &[Word]) -> Option<bool> {
        match self {
            Expression::Same(one, other) => Some(one.value(row)? == other.value(row)?),
            Expression::Less(one, other) => Some(number(one.value(row)?)? < number(other.value(row)?)?),
            Expression::Not(one) => Some(!one.holds(row)?),
            Expression::All(all) => {
                for one in all {
                    if !one.holds(row)? {
                        return Some(false);
                    }
                }
                Some(true)
            }
            Expression::Any(all) => {
                for one in all {
                    if one.holds(row)? {
                        return Some(true);
                    }
                }
                Some(false)
            }
            _ => None,
        }
    }

    /// Tell of all words that are here.
    fn mark(&self, mark: &mut impl FnMut(Word)) {
        match self {
            Expression::Column(_) => (),
            Expression::Constant(word) => mark(*word),
            Expression::All(all) | Expression::Any(all) => all.iter().for_each(|one| one.mark(mark)),
            Expression::Not(one) => one.mark(mark),
            Expression::Sum(one, other)
            | Expression::Difference(one, other)
            | Expression::Product(one, other)
            | Expression::Same(one, other)
            | Expression::Less(one, other) => {
                one.mark(mark);
                other.mark(mark);
            }
        }
    }
}

/// Columns of a row, and words that are the same in each.
struct Parts {
    parts: Vec<Expression>,
}

impl Parts {
    fn read(words: &Words, written: &Bound<'_, PyAny>) -> PyResult<Parts> {
        let parts = written.try_iter()?.map(|part| Expression::read(words, &part?)).collect::<PyResult<_>>()?;
        Ok(Parts { parts })
    }

    fn is_whole(&self, width: usize) -> bool {
        let is = |(at, part): (usize, &Expression)| matches!(part, Expression::Column(column) if *column == at);
        self.parts.len() == width && self.parts.iter().enumerate().all(is)
    }

    /// The same rows of these columns; None where they are more than that, and beyond small integers.
    fn of(&self, data: &Arc<Data>) -> Option<Arc<Data>> {
        if self.is_whole(data.width) {
            return Some(data.clone());
        }
        let mut picked = Data::new(self.parts.len(), data.len());
        for at in 0..data.len() {
            let row = data.row(at);
            for part in &self.parts {
                picked.rows.push(part.value(row)?);
            }
        }
        picked.weights.extend_from_slice(&data.weights);
        Some(Arc::new(picked))
    }
}

// --------------------------------------------------------------------------------------------------- sets that grow

/// A derivation beside the first: when, how often, and the number of the one before it.
#[derive(Clone, Copy)]
struct Derivation {
    time: u32,
    weight: i32,
    next: u32,
}

/// What an element was before the step came to it.
struct Saved {
    number: u32,
    entered: u32,
    start: usize, // of its derivations, in the same journal
}

/// The elements of a distinct.
///
/// Beside an element: the iteration at which it is in the set, or NONE, and its further derivations, the latest first;
/// the time and the weight of the earliest derivation, 0 where there is none; and the weight that arrives, with a mark.
struct Grown {
    rows: Set,
    more: Vec<Derivation>,
    free: u32,
    present: usize,
    dead: Vec<u32>, // perhaps: neither derived nor in the set; their rows go when the next step begins
    wanted: BTreeMap<u32, Vec<u32>>,
    saved: Vec<Saved>,
    derivations: Vec<(u32, i32)>,
    saves: bool,
    step: u64,
}

impl Grown {
    fn new(width: usize) -> Grown {
        Grown {
            rows: Set::new(width, 3, 0),
            more: Vec::new(),
            free: NONE,
            present: 0,
            dead: Vec::new(),
            wanted: BTreeMap::new(),
            saved: Vec::new(),
            derivations: Vec::new(),
            saves: false,
            step: 0,
        }
    }

    /// A step begins: what the last one left behind goes.
    fn begin(&mut self, saves: bool) {
        self.saved.clear();
        self.derivations.clear();
        self.wanted.clear();
        self.step += 1;
        self.saves = saves;
        for number in std::mem::take(&mut self.dead) {
            if self.rows.beside(number)[2] & 1 == 0 && self.entered(number) == NONE && self.first(number).1 == 0 {
                self.rows.beside_mut(number)[2] = 1; // not twice
                self.rows.remove(number);
            }
        }
    }

    #[inline]
    fn entered(&self, number: u32) -> u32 {
        halves(self.rows.beside(number)[0]).0
    }

    #[inline]
    fn set_entered(&mut self, number: u32, entered: u32) {
        let place = &mut self.rows.beside_mut(number)[0];
        *place = word(entered, halves(*place).1);
    }

    #[inline]
    fn chain(&self, number: u32) -> u32 {
        halves(self.rows.beside(number)[0]).1
    }

    #[inline]
    fn set_chain(&mut self, number: u32, chain: u32) {
        let place = &mut self.rows.beside_mut(number)[0];
        *place = word(halves(*place).0, chain);
    }

    /// The earliest derivation: when, and how often.
    #[inline]
    fn first(&self, number: u32) -> (u32, i32) {
        let (time, weight) = halves(self.rows.beside(number)[1]);
        (time, weight as i32)
    }

    #[inline]
    fn set_first(&mut self, number: u32, time: u32, weight: i32) {
        self.rows.beside_mut(number)[1] = word(time, weight as u32);
    }

    fn link(&mut self, derivation: Derivation) -> u32 {
        if self.free == NONE {
            self.more.push(derivation);
            return self.more.len() as u32 - 1;
        }
        let at = self.free;
        self.free = self.more[at as usize].next;
        self.more[at as usize] = derivation;
        at
    }

    fn unlink(&mut self, at: u32) {
        self.more[at as usize].next = self.free;
        self.free = at;
    }

    /// All derivations, the earliest first.
    fn profile(&self, number: u32, into: &mut Vec<(u32, i32)>) {
        let first = self.first(number);
        if first.1 != 0 {
            into.push(first);
            let start = into.len();
            let mut at = self.chain(number);
            while at != NONE {
                let each = self.more[at as usize];
                into.push((each.time, each.weight));
                at = each.next;
            }
            into[start..].reverse();
        }
    }

    fn set_profile(&mut self, number: u32, profile: &[(u32, i32)]) {
        let mut at = self.chain(number);
        while at != NONE {
            let next = self.more[at as usize].next;
            self.unlink(at);
            at = next;
        }
        let (time, weight) = profile.first().copied().unwrap_or((0, 0));
        self.set_first(number, time, weight);
        let mut chain = NONE;
        for &(time, weight) in profile.iter().skip(1) {
            chain = self.link(Derivation { time, weight, next: chain });
        }
        self.set_chain(number, chain);
    }

    /// Add a derivation; false where its weight would be too large.
    fn add(&mut self, number: u32, time: u32, weight: i32) -> bool {
        let (first, old) = self.first(number);
        if old == 0 {
            self.set_first(number, time, weight);
            return true;
        }
        let mut chain = self.chain(number);
        if time > first && (chain == NONE || self.more[chain as usize].time < time) {
            chain = self.link(Derivation { time, weight, next: chain }); // as nearly always
            self.set_chain(number, chain);
            return true;
        }
        let latest = if time == first { Some(old) } else { self.more.get(chain as usize).filter(|each| each.time == time).map(|each| each.weight) };
        if let Some(sum) = latest.map(|old| old.checked_add(weight)) {
            match sum {
                None => return false,
                Some(0) => (),
                Some(sum) if time == first => {
                    self.set_first(number, time, sum);
                    return true;
                }
                Some(sum) => {
                    self.more[chain as usize].weight = sum;
                    return true;
                }
            }
        }
        let mut profile = Vec::new();
        self.profile(number, &mut profile);
        match profile.binary_search_by_key(&time, |each| each.0) {
            Ok(at) => {
                let Some(sum) = profile[at].1.checked_add(weight) else { return false };
                if sum == 0 {
                    profile.remove(at);
                } else {
                    profile[at].1 = sum;
                }
            }
            Err(at) => profile.insert(at, (time, weight)),
        }
        self.set_profile(number, &profile);
        true
    }

    /// Remember what an element was before this step.
    #[inline]
    fn save(&mut self, number: u32) {
        if self.saves && self.rows.beside(number)[2] != self.step << 1 {
            self.rows.beside_mut(number)[2] = self.step << 1;
            self.saved.push(Saved { number, entered: self.entered(number), start: self.derivations.len() });
            let mut derivations = std::mem::take(&mut self.derivations);
            self.profile(number, &mut derivations);
            self.derivations = derivations;
        }
    }

    /// Be as before this step.
    fn take_back(&mut self) {
        let (saved, derivations) = (std::mem::take(&mut self.saved), std::mem::take(&mut self.derivations));
        let ends = saved.iter().skip(1).map(|each| each.start).chain([derivations.len()]);
        for (each, end) in saved.iter().zip(ends.collect::<Vec<_>>()) {
            self.present += usize::from(each.entered != NONE);
            self.present -= usize::from(self.entered(each.number) != NONE);
            self.set_entered(each.number, each.entered);
            self.set_profile(each.number, &derivations[each.start..end]);
            self.bury(each.number);
        }
        self.wanted.clear();
    }

    fn is_dead(&self, number: u32) -> bool {
        self.entered(number) == NONE && self.first(number).1 == 0
    }

    #[inline]
    fn bury(&mut self, number: u32) {
        if self.is_dead(number) {
            self.dead.push(number);
        }
    }

    /// Rows arrive at an iteration; what comes and what goes.  None where a weight is too large.
    fn take(&mut self, data: &Data, now: u32) -> Option<Data> {
        let wanted = self.wanted.remove(&now).unwrap_or_default();
        let mut due: HashSet<u32> = wanted.iter().copied().collect();
        let mut out = Data::new(data.width, data.len());
        let grows = due.is_empty() && data.weights.iter().all(|&weight| weight > 0);
        let mut numbers = Vec::with_capacity(if grows { 0 } else { data.len() });
        let mut fits = true;
        let mut ahead = Ahead::new(&self.rows, data.len(), |at| data.row(at));
        while let Some((block, hashes)) = ahead.next(&self.rows, |at| data.row(at)) {
            for (at, &hashed) in block.zip(&hashes) {
                let (row, weight) = (data.row(at), data.weights[at]);
                let number = self.rows.find(hashed, row).unwrap_or_else(|| {
                    let number = self.rows.insert(hashed, row);
                    self.rows.beside_mut(number)[0] = word(NONE, NONE);
                    number
                });
                if grows {
                    // Where nothing goes, a derivation after the other comes to the same as their sum.
                    match i32::try_from(weight) {
                        Ok(weight) => fits &= self.arrive(number, weight, now, false, &mut out),
                        Err(_) => fits = false,
                    }
                    continue;
                }
                let beside = self.rows.beside_mut(number);
                if beside[2] & 1 == 0 {
                    numbers.push((number, beside[2]));
                    beside[2] = 1;
                }
                let sum = (beside[2] as i64 >> 1).saturating_add(weight);
                beside[2] = (sum << 1) as Word | 1;
            }
        }
        let mut come = HashSet::new();
        for (number, mark) in numbers {
            let arrived = self.rows.beside(number)[2] as i64 >> 1;
            self.rows.beside_mut(number)[2] = mark;
            match i32::try_from(arrived) {
                Ok(0) => self.bury(number),
                Ok(weight) => {
                    let is_due = !due.is_empty() && due.contains(&number);
                    if is_due {
                        come.insert(number);
                    }
                    fits &= self.arrive(number, weight, now, is_due, &mut out);
                }
                Err(_) => fits = false,
            }
        }
        for number in wanted {
            let at = self.entered(number);
            if due.remove(&number) && !come.contains(&number) && (at == NONE || at == now) {
                self.decide(number, now, &mut out);
            }
        }
        fits.then_some(out)
    }

    #[inline]
    fn arrive(&mut self, number: u32, weight: i32, now: u32, is_due: bool, out: &mut Data) -> bool {
        self.save(number);
        let (first, times) = self.first(number);
        let at = self.entered(number);
        if times == 0 && at == NONE {
            self.set_first(number, now, weight);
            if weight > 0 {
                self.enter(number, now, out);
            }
            return true;
        }
        if times > 0 && weight > 0 && first < now && !is_due {
            return self.add(number, now, weight); // one derivation more of what is in the set
        }
        if !self.add(number, now, weight) {
            return false;
        }
        if at == NONE || at == now {
            self.decide(number, now, out);
        } else if weight < 0 && now < at {
            self.wanted.entry(at).or_default().push(number);
        }
        true
    }

    #[inline]
    fn enter(&mut self, number: u32, now: u32, out: &mut Data) {
        self.set_entered(number, now);
        self.present += 1;
        out.rows.extend_from_slice(self.rows.row(number));
        out.weights.push(1);
    }

    fn decide(&mut self, number: u32, now: u32, out: &mut Data) {
        self.save(number);
        let (time, weight) = self.first(number);
        let (mut total, mut following) = (0, NONE);
        if weight != 0 {
            let mut chain = self.chain(number);
            while chain != NONE {
                let each = self.more[chain as usize];
                if each.time > now {
                    following = each.time;
                } else {
                    total += i64::from(each.weight);
                }
                chain = each.next;
            }
            if time > now {
                following = time;
            } else {
                total += i64::from(weight);
            }
        }
        let is_in = self.entered(number) != NONE;
        if total > 0 {
            if !is_in {
                self.enter(number, now, out);
            }
            return;
        }
        if is_in {
            out.rows.extend_from_slice(self.rows.row(number));
            out.weights.push(-1);
            self.set_entered(number, NONE);
            self.present -= 1;
        }
        if following != NONE {
            self.wanted.entry(following).or_default().push(number);
        }
        self.bury(number);
    }

    /// The elements that are in the set.
    fn each(&self, mut call: impl FnMut(&[Word])) {
        for number in self.rows.numbers() {
            if self.entered(number) != NONE {
                call(self.rows.row(number));
            }
        }
    }

    fn has(&self, row: &[Word]) -> bool {
        self.rows.find(hash(row), row).is_some_and(|number| self.entered(number) != NONE)
    }

    /// What this step has changed of the set; *old* is what it was, where it was computed again.
    fn changes(&self, old: Option<&Grown>) -> Data {
        let mut out = Data::new(self.rows.width, if self.saves { self.saved.len() } else { self.present });
        let mut tell = |row: &[Word], weight| {
            out.rows.extend_from_slice(row);
            out.weights.push(weight);
        };
        if self.saves {
            for each in &self.saved {
                let is_in = self.entered(each.number) != NONE;
                if is_in != (each.entered != NONE) {
                    tell(self.rows.row(each.number), if is_in { 1 } else { -1 });
                }
            }
            return out;
        }
        self.each(|row| {
            if !old.is_some_and(|old| old.has(row)) {
                tell(row, 1);
            }
        });
        if let Some(old) = old {
            old.each(|row| {
                if !self.has(row) {
                    tell(row, -1);
                }
            });
        }
        out
    }

    /// Give memory back; between steps.
    fn give_back(&mut self) {
        self.begin(false);
        self.saved = Vec::new();
        self.derivations = Vec::new();
        if self.rows.is_sparse() {
            let mut fresh = Grown::new(self.rows.width);
            for number in self.rows.numbers() {
                let row = self.rows.row(number);
                let place = fresh.rows.insert(hash(row), row);
                fresh.rows.beside_mut(place)[0] = word(NONE, NONE);
                let mut profile = Vec::new();
                self.profile(number, &mut profile);
                fresh.set_profile(place, &profile);
                fresh.set_entered(place, self.entered(number));
            }
            (fresh.present, fresh.step) = (self.present, self.step);
            *self = fresh;
        }
    }
}

// ------------------------------------------------------------------------------------------------------------ a loop

/// A side of a join: an import, by key, or what the loop keeps of a node.
#[derive(Clone, Copy)]
enum Side {
    Flat(usize),
    Kept(usize),
}

enum Step {
    Import(usize, Parts),
    Flat(usize), // the rows that an import brings by key
    Feedback(usize),
    Filter(usize, Option<Expression>),
    Make(usize, Option<Parts>),
    Plus([(usize, Parts); 2]),
    Index { of: usize, parts: Parts, once: bool, kept: usize },
    Join { sides: [(Side, usize); 2], parts: Parts, widths: [usize; 3] },
    Distinct { of: usize, parts: Parts, kept: usize },
}

/// The past of what the loop keeps, for the case that a step is taken back.
enum Past {
    Nothing,
    Empty,
    Whole(Vec<Option<Grown>>, Vec<Option<Arranged>>),
    Changes(Vec<(usize, Data)>), // of the arrangements; the sets have their own
}

/// Where a step is.
struct Running {
    now: u32,
    at: usize,
    out: Vec<Option<Arc<Data>>>,
    fed: Vec<(usize, Arc<Data>)>,
    later: Vec<BTreeMap<u32, Data>>, // by step: what a join has put aside
    arrived: Vec<Option<Arranged>>,  // what each import brings, by key
    imports: Vec<Option<Arc<Data>>>,
    work: usize,
    paused: usize,
    budget: usize,
    rounds: usize,
    limit: usize,
}

/// What Python is to do next.
const DONE: i64 = -1;
const PAUSED: i64 = -2;
const BEYOND: i64 = -3;
const ENDLESS: i64 = -4;

/// A monotone loop.
#[pyclass(module = "syndicate._native")]
pub struct Fixpoint {
    steps: Vec<Step>,
    sets: Vec<Option<Grown>>,
    indices: Vec<Option<Arranged>>,
    totals: Vec<Option<Weighed>>, // of what each import that is not by key has brought
    brought: Vec<Option<Arc<Data>>>,
    past: Past,
    version: u64,
    work: usize,
    running: Option<Running>,
}

/// An iteration as a word: an odd one, which stands for nothing.
#[inline]
fn time_word(now: u32) -> Word {
    Word::from(now) << 1 | 1
}

impl Fixpoint {
    pub fn new() -> Fixpoint {
        Fixpoint {
            steps: Vec::new(),
            sets: Vec::new(),
            indices: Vec::new(),
            totals: Vec::new(),
            brought: Vec::new(),
            past: Past::Nothing,
            version: 0,
            work: 0,
            running: None,
        }
    }

    /// Read the steps of the loop, whose numbers they are; sets and arrangements that there are already stay.
    pub fn read(&mut self, words: &Words, written: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut steps = Vec::new();
        for one in written.try_iter()? {
            let one = one?.cast_into::<PyTuple>()?;
            let number = |at: usize| -> PyResult<usize> { one.get_item(at)?.extract() };
            let parts = |at: usize| -> PyResult<Parts> { Parts::read(words, &one.get_item(at)?) };
            let name = one.get_item(0)?.cast_into::<PyString>()?;
            steps.push(match name.to_str()? {
                "import" => {
                    let (at, parts) = (number(1)?, parts(2)?);
                    let total = place(&mut self.totals, at);
                    total.get_or_insert_with(|| Weighed::new(parts.parts.len()));
                    place(&mut self.brought, at);
                    Step::Import(at, parts)
                }
                "flat" => Step::Flat(number(1)?),
                "feedback" => Step::Feedback(number(1)?),
                "filter" => Step::Filter(number(1)?, optional(&one.get_item(2)?, |x| Expression::read(words, x))?),
                "make" => Step::Make(number(1)?, optional(&one.get_item(2)?, |x| Parts::read(words, x))?),
                "plus" => Step::Plus([(number(1)?, parts(2)?), (number(3)?, parts(4)?)]),
                "index" => {
                    let (parts, kept, width) = (parts(2)?, number(4)?, number(5)?);
                    let index = place(&mut self.indices, kept);
                    index.get_or_insert_with(|| Arranged::lazily(width, parts.parts.len() - width + 1));
                    Step::Index { of: number(1)?, parts, once: one.get_item(3)?.extract()?, kept }
                }
                "join" => {
                    let side = |at: usize| -> PyResult<(Side, usize)> {
                        let (is_flat, side, step): (bool, usize, usize) = one.get_item(at)?.extract()?;
                        Ok((if is_flat { Side::Flat(side) } else { Side::Kept(side) }, step))
                    };
                    let widths: (usize, usize, usize) = one.get_item(4)?.extract()?;
                    let widths = [widths.0, widths.1, widths.2];
                    Step::Join { sides: [side(1)?, side(2)?], parts: parts(3)?, widths }
                }
                "distinct" => {
                    let (parts, kept) = (parts(2)?, number(3)?);
                    place(&mut self.sets, kept).get_or_insert_with(|| Grown::new(parts.parts.len()));
                    Step::Distinct { of: number(1)?, parts, kept }
                }
                other => return Err(PyTypeError::new_err(format!("no step is called {other}"))),
            });
        }
        let wrong = steps.iter().any(|step| match step {
            Step::Import(..) | Step::Flat(_) => false,
            Step::Feedback(of) | Step::Filter(of, _) | Step::Make(of, _) => *of >= steps.len(),
            Step::Index { of, .. } | Step::Distinct { of, .. } => *of >= steps.len(),
            Step::Plus(sides) => sides.iter().any(|side| side.0 >= steps.len()),
            Step::Join { sides, .. } => sides.iter().any(|side| side.1 >= steps.len()),
        });
        if wrong {
            return Err(PyTypeError::new_err("a step reads a step that is not there"));
        }
        self.steps = steps;
        Ok(())
    }

    /// Tell of all words that are here.
    pub fn mark(&self, mark: &mut impl FnMut(Word)) {
        let tell = |parts: &Parts, mark: &mut _| parts.parts.iter().for_each(|part| part.mark(mark));
        for step in &self.steps {
            match step {
                Step::Flat(_) | Step::Feedback(_) | Step::Filter(_, None) | Step::Make(_, None) => (),
                Step::Filter(_, Some(test)) => test.mark(mark),
                Step::Import(_, parts) | Step::Make(_, Some(parts)) => tell(parts, mark),
                Step::Index { parts, .. } | Step::Join { parts, .. } | Step::Distinct { parts, .. } => tell(parts, mark),
                Step::Plus(sides) => sides.iter().for_each(|side| tell(&side.1, mark)),
            }
        }
        self.sets.iter().flatten().for_each(|set| set.rows.numbers().into_iter().for_each(|n| {
            set.rows.row(n).iter().for_each(|&word| mark(word));
        }));
        self.indices.iter().flatten().for_each(|index| index.mark(mark));
        self.totals.iter().flatten().for_each(|total| total.mark(mark));
    }

    fn is_empty(&self) -> bool {
        self.sets.iter().flatten().all(|set| set.rows.len() == 0) && self.indices.iter().flatten().all(Arranged::is_empty)
    }

    /// Run on; what Python is to do next, and with which table.
    fn run(&mut self, flats: &[Option<PyRef<'_, Arranged>>]) -> PyResult<(i64, Option<Arc<Data>>)> {
        let Some(mut running) = self.running.take() else { return Ok((DONE, None)) };
        loop {
            while running.at < self.steps.len() {
                let at = running.at;
                let (out, asked) = self.step(&mut running, at, flats).ok_or_else(too_large)?;
                if let Some(asked) = asked {
                    self.running = Some(running);
                    return Ok((at as i64, Some(asked)));
                }
                running.put(out);
            }
            running.fed.clear();
            for (at, step) in self.steps.iter().enumerate() {
                match step {
                    Step::Feedback(of) => {
                        if let Some(data) = &running.out[*of] {
                            running.fed.push((at, data.clone()));
                        }
                    }
                    Step::Index { kept, once, .. } => {
                        if let (Some(data), Some(index)) = (&running.out[at], &mut self.indices[*kept]) {
                            let mut timed = Data::new(data.width + 1, data.len());
                            for at in 0..data.len() {
                                timed.rows.extend_from_slice(data.row(at));
                                timed.rows.push(time_word(running.now));
                                timed.weights.push(data.weights[at]);
                            }
                            let is_new = *once && data.weights.iter().all(|&weight| weight > 0);
                            if !index.add(&timed, 1, is_new) {
                                return Err(too_large());
                            }
                            if let Past::Changes(changes) = &mut self.past {
                                changes.push((*kept, timed));
                            }
                        }
                    }
                    _ => (),
                }
            }
            running.out.iter_mut().for_each(|out| *out = None);
            running.at = 0;
            if running.work > running.budget {
                return Ok((BEYOND, None));
            }
            let next = if running.fed.is_empty() {
                let aside = running.later.iter().filter_map(|later| later.keys().next());
                let wanted = self.sets.iter().flatten().filter_map(|set| set.wanted.keys().next());
                match aside.chain(wanted).min() {
                    Some(&next) => next,
                    None => {
                        self.work = running.work;
                        return Ok((DONE, None));
                    }
                }
            } else {
                running.now + 1
            };
            running.now = next;
            running.rounds += 1;
            if running.rounds >= running.limit || next >= 1 << 30 {
                return Ok((ENDLESS, None));
            }
            if running.work - running.paused > PAUSE {
                running.paused = running.work;
                self.running = Some(running);
                return Ok((PAUSED, None));
            }
        }
    }

    /// What a node gives in this iteration, or what a function is to be asked of; None where integers are too large.
    #[allow(clippy::type_complexity)]
    fn step(
        &mut self,
        running: &mut Running,
        at: usize,
        flats: &[Option<PyRef<'_, Arranged>>],
    ) -> Option<(Option<Arc<Data>>, Option<Arc<Data>>)> {
        let given = |of: usize| running.out[of].clone();
        let now = running.now;
        let out = match &self.steps[at] {
            Step::Import(import, _) => running.imports.get_mut(*import).and_then(Option::take),
            Step::Flat(flat) if now == 0 => {
                flats.get(*flat).and_then(Option::as_ref).and_then(|flat| flat.arriving_rows()).map(|rows| Arc::new(copied(rows)))
            }
            Step::Flat(_) => None,
            Step::Feedback(_) => {
                running.fed.iter().position(|fed| fed.0 == at).map(|place| running.fed.swap_remove(place).1)
            }
            Step::Filter(of, test) => match given(*of) {
                None => None,
                Some(data) => {
                    let kept: Option<Vec<bool>> = match test {
                        Some(test) => (0..data.len()).map(|at| test.holds(data.row(at))).collect(),
                        None => None,
                    };
                    let Some(kept) = kept else { return Some((None, Some(data))) };
                    let mut out = Data::new(data.width, data.len());
                    for at in (0..data.len()).filter(|&at| kept[at]) {
                        out.rows.extend_from_slice(data.row(at));
                        out.weights.push(data.weights[at]);
                    }
                    Some(Arc::new(out))
                }
            },
            Step::Make(of, parts) => match given(*of) {
                None => None,
                Some(data) => match parts.as_ref().and_then(|parts| parts.of(&data)) {
                    None => return Some((None, Some(data))),
                    made => made,
                },
            },
            Step::Plus([(one, parts), (other, others)]) => match (given(*one), given(*other)) {
                (None, None) => None,
                (Some(data), None) => Some(parts.of(&data)?),
                (None, Some(data)) => Some(others.of(&data)?),
                (Some(data), Some(more)) => {
                    let (data, more) = (parts.of(&data)?, others.of(&more)?);
                    let mut out = Data::new(data.width, data.len() + more.len());
                    for each in [data, more] {
                        out.rows.extend_from_slice(&each.rows);
                        out.weights.extend_from_slice(&each.weights);
                    }
                    Some(Arc::new(out))
                }
            },
            Step::Index { of, parts, once, .. } => match given(*of) {
                None => None,
                Some(data) => {
                    let picked = parts.of(&data)?;
                    Some(if *once { picked } else { Arc::new(copied(&picked).consolidated()) })
                }
            },
            Step::Join { sides, parts, widths } => {
                let mut aside = std::mem::take(&mut running.later[at]);
                let out = aside.remove(&now).unwrap_or_else(|| Data::new(parts.parts.len(), 0));
                let mut meeting = Meeting { parts, now, out, aside, is_large: false };
                self.meet(running, sides, widths, flats, &mut meeting);
                running.later[at] = meeting.aside;
                if meeting.is_large {
                    return None;
                }
                Some(Arc::new(meeting.out))
            }
            Step::Distinct { of, parts, kept } => {
                let data = match given(*of) {
                    Some(data) => parts.of(&data)?,
                    None => Arc::new(Data::new(parts.parts.len(), 0)),
                };
                let set = self.sets.get_mut(*kept)?.as_mut()?;
                if data.len() > 0 || set.wanted.contains_key(&now) { Some(Arc::new(set.take(&data, now)?)) } else { None }
            }
        };
        Some((out.filter(|data| data.len() > 0), None))
    }

    /// What two sides of a join give because of what arrives at either.
    fn meet(
        &self,
        running: &Running,
        sides: &[(Side, usize); 2],
        widths: &[usize; 3],
        flats: &[Option<PyRef<'_, Arranged>>],
        meeting: &mut Meeting<'_>,
    ) {
        let [left, right] = *sides;
        let [a, b] = [&running.out[left.1], &running.out[right.1]];
        for (data, other, is_left) in [(a, right.0, true), (b, left.0, false)] {
            let Some(data) = data else { continue };
            match other {
                Side::Flat(at) => {
                    let past = flats.get(at).and_then(Option::as_ref);
                    if let Some(past) = past.filter(|past| !past.is_empty()) {
                        meeting.with(data, past, widths, is_left, false);
                    }
                    if let Some(arrived) = &running.arrived[at] {
                        meeting.with(data, arrived, widths, is_left, false);
                    }
                }
                Side::Kept(at) => {
                    if let Some(kept) = self.indices.get(at).and_then(Option::as_ref).filter(|kept| !kept.is_empty()) {
                        meeting.with(data, kept, widths, is_left, true);
                    }
                }
            }
        }
        if let (Some(a), Some(b), Side::Kept(_), Side::Kept(_)) = (a, b, left.0, right.0) {
            let mut arrived = Arranged::lazily(widths[0], widths[2]);
            arrived.add(b, 1, true);
            meeting.with(a, &arrived, widths, true, false);
        }
    }
}

/// Rows of a join that meet, now or later.
struct Meeting<'a> {
    parts: &'a Parts,
    now: u32,
    out: Data,
    aside: BTreeMap<u32, Data>,
    is_large: bool,
}

impl Meeting<'_> {
    /// Rows of one side with what the other has of their keys; *timed*: its values end with a time.
    fn with(&mut self, data: &Data, other: &Arranged, widths: &[usize; 3], is_left: bool, timed: bool) {
        let key_width = widths[0];
        let (keys, all) = other.keys_of(data);
        let width = self.parts.parts.len();
        if self.out.len() == 0 {
            self.out = Data::new(width, all);
        }
        let (mine, others) = if is_left { (widths[1], widths[2]) } else { (widths[2], widths[1]) };
        let first = if is_left { key_width + mine } else { key_width }; // column of the other side
        let last = first + others;
        let sources: Vec<Source> = (self.parts.parts.iter())
            .map(|part| match part {
                Expression::Column(column) if (first..last).contains(column) => Source::Other(column - first),
                Expression::Column(column) if is_left || *column < key_width => Source::Mine(*column),
                Expression::Column(column) => Source::Mine(column - others),
                Expression::Constant(word) => Source::Constant(*word),
                _ => Source::Constant(0), // what is computed is made of the result
            })
            .collect();
        for (at, &key) in keys.iter().enumerate() {
            other.ahead(&keys, at);
            let mut entry = other.first(key);
            let row = data.row(at);
            while entry != NONE {
                let value = other.value(entry);
                let weight = data.weights[at].saturating_mul(other.weight(entry));
                self.is_large |= i32::try_from(weight).is_err();
                let time = if timed { (value[others] >> 1) as u32 } else { 0 };
                let out = if time > self.now {
                    self.aside.entry(time).or_insert_with(|| Data::new(width, 0))
                } else {
                    &mut self.out
                };
                out.rows.extend(sources.iter().map(|source| match source {
                    Source::Mine(column) => row[*column],
                    Source::Other(column) => value[*column],
                    Source::Constant(word) => *word,
                }));
                out.weights.push(weight);
                entry = other.next(entry);
            }
        }
    }
}

/// Where a word of a joined row comes from.
enum Source {
    Mine(usize),
    Other(usize),
    Constant(Word),
}

impl Running {
    fn put(&mut self, out: Option<Arc<Data>>) {
        self.work += out.as_ref().map_or(0, |data| data.len());
        self.out[self.at] = out;
        self.at += 1;
    }
}

fn copied(data: &Data) -> Data {
    let mut copy = Data::new(data.width, data.len());
    copy.rows.extend_from_slice(&data.rows);
    copy.weights.extend_from_slice(&data.weights);
    copy
}

/// The place of a number in a list that grows.
fn place<T>(list: &mut Vec<Option<T>>, at: usize) -> &mut Option<T> {
    if list.len() <= at {
        list.resize_with(at + 1, || None);
    }
    &mut list[at]
}

fn optional<T>(written: &Bound<'_, PyAny>, read: impl Fn(&Bound<'_, PyAny>) -> PyResult<T>) -> PyResult<Option<T>> {
    if written.is_none() { Ok(None) } else { read(written).map(Some) }
}

#[pymethods]
impl Fixpoint {
    /// Begin a step: what imports bring, those by key, how many rows it may take and how many iterations; *again* if
    /// all is to be computed from nothing.  What Python is to do next, see `go_on`.
    fn begin(
        &mut self,
        py: Python<'_>,
        imports: Vec<Option<PyRef<'_, Table>>>,
        flats: Vec<Option<PyRef<'_, Arranged>>>,
        again: bool,
        budget: usize,
        limit: usize,
    ) -> PyResult<(i64, Option<Table>)> {
        self.version += 1;
        let was_empty = self.is_empty();
        for set in self.sets.iter_mut().flatten() {
            set.begin(!was_empty && !again);
        }
        self.past = Past::Nothing;
        self.brought.iter_mut().for_each(|brought| *brought = None);
        let mut given: Vec<Option<Arc<Data>>> = Vec::new();
        for step in &self.steps {
            let Step::Import(at, parts) = step else { continue };
            let Some(Some(table)) = imports.get(*at) else { continue };
            let data = parts.of(&table.data).ok_or_else(too_large)?;
            let data = if table.once && parts.is_whole(table.data.width) {
                data
            } else {
                Arc::new(copied(&data).consolidated())
            };
            *place(&mut given, *at) = Some(data);
        }
        if data_too_large(&given) {
            return Err(too_large());
        }
        for (at, data) in given.iter().enumerate() {
            if let (Some(data), Some(total)) = (data, &mut self.totals[at]) {
                total.add(data, 1);
                self.brought[at] = Some(data.clone());
            }
        }
        if again {
            let sets = self.sets.iter().map(|set| set.as_ref().map(|set| Grown::new(set.rows.width))).collect();
            let indices = self.indices.iter().map(|index| index.as_ref().map(Arranged::like)).collect();
            self.past =
                Past::Whole(std::mem::replace(&mut self.sets, sets), std::mem::replace(&mut self.indices, indices));
            given = self.totals.iter().map(|total| total.as_ref().map(|total| Arc::new(total.all()))).collect();
        } else {
            self.past = if was_empty { Past::Empty } else { Past::Changes(Vec::new()) };
        }
        let arrived = flats.iter().map(|flat| {
            let rows = flat.as_ref()?.arriving_rows().filter(|rows| rows.len() > 0)?;
            let mut arrived = flat.as_ref()?.like();
            arrived.add(rows, 1, true);
            Some(arrived)
        });
        self.running = Some(Running {
            now: 0,
            at: 0,
            out: self.steps.iter().map(|_| None).collect(),
            fed: Vec::new(),
            later: self.steps.iter().map(|_| BTreeMap::new()).collect(),
            arrived: arrived.collect(),
            imports: given,
            work: 0,
            paused: 0,
            budget,
            rounds: 0,
            limit,
        });
        let (next, data) = self.run(&flats)?;
        Ok((next, data.map(|data| Table::of(copied(&data), py.None(), false))))
    }

    /// Go on, with what a function has made of the rows it was asked of.  What comes next: the number of a step whose
    /// function is to be asked of a table, or -1 at the end, -2 after a pause, -3 where it takes too many rows and -4
    /// where it takes too many iterations.
    fn go_on(
        &mut self,
        py: Python<'_>,
        flats: Vec<Option<PyRef<'_, Arranged>>>,
        answer: Option<PyRef<'_, Table>>,
    ) -> PyResult<(i64, Option<Table>)> {
        if let (Some(running), Some(answer)) = (&mut self.running, answer) {
            running.put((answer.data.len() > 0).then(|| answer.data.clone()));
        }
        let (next, data) = self.run(&flats)?;
        Ok((next, data.map(|data| Table::of(copied(&data), py.None(), false))))
    }

    /// What this step has changed of a set.
    fn changes(&self, set: usize, shape: Py<PyAny>) -> Option<Table> {
        let now = self.sets.get(set)?.as_ref()?;
        let old = match &self.past {
            Past::Whole(sets, _) => sets.get(set).and_then(Option::as_ref),
            _ => None,
        };
        Some(Table::of(now.changes(old), shape, true))
    }

    /// How many elements its sets have.
    fn size(&self) -> usize {
        self.sets.iter().flatten().map(|set| set.present).sum()
    }

    /// How many rows an import has brought.
    fn extent(&self, import: usize) -> usize {
        self.totals.get(import).and_then(Option::as_ref).map_or(0, Weighed::len)
    }

    #[getter]
    fn version(&self) -> u64 {
        self.version
    }

    /// Be as at a version, the last or the one before.
    fn take_back(&mut self, version: u64) {
        self.running = None;
        if self.version == version {
            return;
        }
        for (brought, total) in self.brought.iter_mut().zip(&mut self.totals) {
            if let (Some(data), Some(total)) = (brought.take(), total) {
                total.add(&data, -1);
            }
        }
        match std::mem::replace(&mut self.past, Past::Nothing) {
            Past::Nothing => (),
            Past::Empty => {
                for set in self.sets.iter_mut().flatten() {
                    *set = Grown::new(set.rows.width);
                }
                for index in self.indices.iter_mut().flatten() {
                    *index = index.like();
                }
            }
            Past::Whole(sets, indices) => (self.sets, self.indices) = (sets, indices),
            Past::Changes(changes) => {
                for (at, data) in changes.into_iter().rev() {
                    if let Some(index) = &mut self.indices[at] {
                        index.add(&data, -1, false);
                    }
                }
                self.sets.iter_mut().flatten().for_each(Grown::take_back);
            }
        }
        self.version = version;
    }

    /// Give memory back; between steps.
    fn give_back(&mut self) {
        self.past = Past::Nothing;
        self.running = None;
        self.brought.iter_mut().for_each(|brought| *brought = None);
        self.sets.iter_mut().flatten().for_each(Grown::give_back);
        self.indices.iter_mut().flatten().for_each(Arranged::give_back);
        self.totals.iter_mut().flatten().for_each(Weighed::give_back);
    }

    fn __len__(&self) -> usize {
        let indices: usize = self.indices.iter().flatten().map(Arranged::len).sum();
        self.size() + indices + self.totals.iter().flatten().map(Weighed::len).sum::<usize>()
    }

    /// The elements of a set, with their derivations and the iterations at which they are in it, -1 if they are not.
    #[allow(clippy::type_complexity)]
    fn set(&self, set: usize, shape: Py<PyAny>) -> Option<(Table, Vec<Vec<i64>>, Vec<i64>)> {
        let set = self.sets.get(set)?.as_ref()?;
        let mut data = Data::new(set.rows.width, set.rows.len());
        let (mut profiles, mut entered) = (Vec::new(), Vec::new());
        for number in set.rows.numbers().into_iter().filter(|&number| !set.is_dead(number)) {
            let mut profile = Vec::new();
            set.profile(number, &mut profile);
            data.rows.extend_from_slice(set.rows.row(number));
            data.weights.push(1);
            profiles.push(profile.iter().flat_map(|&(time, weight)| [i64::from(time), i64::from(weight)]).collect());
            entered.push(if set.entered(number) == NONE { -1 } else { i64::from(set.entered(number)) });
        }
        Some((Table::of(data, shape, true), profiles, entered))
    }

    /// Begin with such as `set` gives.
    fn load_set(&mut self, set: usize, table: &Table, profiles: Vec<Vec<i64>>, entered: Vec<i64>) -> PyResult<()> {
        let Some(Some(set)) = self.sets.get_mut(set) else { return Ok(()) };
        if table.data.width != set.rows.width {
            return Err(PyTypeError::new_err("elements of another width"));
        }
        for (at, (profile, entered)) in profiles.iter().zip(entered).enumerate() {
            let row = table.data.row(at);
            let number = set.rows.insert(hash(row), row);
            set.rows.beside_mut(number)[0] = word(NONE, NONE);
            let mut pairs = Vec::new();
            for pair in profile.chunks_exact(2) {
                pairs.push((u32::try_from(pair[0])?, i32::try_from(pair[1])?));
            }
            set.set_profile(number, &pairs);
            if entered >= 0 {
                set.set_entered(number, u32::try_from(entered)?);
                set.present += 1;
            }
        }
        Ok(())
    }

    /// The rows of an arrangement, and their iterations.
    fn index(&self, index: usize, shape: Py<PyAny>) -> Option<(Table, Vec<u32>)> {
        let index = self.indices.get(index)?.as_ref()?;
        let all = index.all();
        let width = all.width - 1;
        let mut data = Data::new(width, all.len());
        let mut times = Vec::with_capacity(all.len());
        for at in 0..all.len() {
            data.rows.extend_from_slice(&all.row(at)[..width]);
            times.push((all.row(at)[width] >> 1) as u32);
        }
        data.weights.extend_from_slice(&all.weights);
        Some((Table::of(data, shape, false), times))
    }

    /// Begin with such as `index` gives.
    fn load_index(&mut self, index: usize, table: &Table, times: Vec<u32>) -> PyResult<()> {
        let Some(Some(index)) = self.indices.get_mut(index) else { return Ok(()) };
        let mut timed = Data::new(table.data.width + 1, table.data.len());
        for (at, time) in times.into_iter().enumerate().take(table.data.len()) {
            timed.rows.extend_from_slice(table.data.row(at));
            timed.rows.push(time_word(time));
            timed.weights.push(table.data.weights[at]);
        }
        if index.add(&timed, 1, true) { Ok(()) } else { Err(too_large()) }
    }

    /// All that an import has brought.
    fn total(&self, import: usize, shape: Py<PyAny>) -> Option<Table> {
        Some(Table::of(self.totals.get(import)?.as_ref()?.all(), shape, true))
    }

    /// Begin with such as `total` gives.
    fn load_total(&mut self, import: usize, table: &Table) {
        if let Some(Some(total)) = self.totals.get_mut(import) {
            total.add(&table.data, 1);
        }
    }

    /// How many rows the nodes gave in the step that has ended.
    #[getter]
    fn work(&self) -> usize {
        self.work
    }
}

fn data_too_large(given: &[Option<Arc<Data>>]) -> bool {
    given.iter().flatten().any(|data| !crate::words::fits(&data.weights))
}
