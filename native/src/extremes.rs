//! The least or the greatest of each group, kept up to date: `_make_grouped` in `syndicate/flow/operators/groups.py`, of
//! `min` and `max`.
//!
//! All values of a group are kept with their weights, since what goes may make an older one the best again.  What comes
//! is compared with the best alone.  When the best goes, a small group is searched, and a large one has a heap.

use crate::arrangement::Arranged;
use crate::hash_table::{hash, Set, Word, NONE};
use crate::words::{too_large, Data, Kind, Table, Words};
use pyo3::prelude::*;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

/// No word: neither a small integer nor the number of a thing.
const NOTHING: Word = 1 << 40;

/// Groups of more values than this have a heap once they are searched: `LARGE_GROUP` of the specification.
const LARGE_GROUP: usize = 64;

/// Which of two measures is the better one.
struct Ranks<'a, 'py> {
    words: &'a Words,
    py: Python<'py>,
    least: bool,
}

impl Ranks<'_, '_> {
    /// Whether a measure comes before another.
    #[inline]
    fn is_better(&self, one: Word, other: Word) -> PyResult<bool> {
        let order = self.words.order(self.py, one, other)?;
        Ok(order == if self.least { Ordering::Less } else { Ordering::Greater })
    }

    /// The better one of two, of which one may be missing.
    #[inline]
    fn best(&self, one: Word, other: Word) -> PyResult<Word> {
        if one == NOTHING || (other != NOTHING && self.is_better(other, one)?) { Ok(other) } else { Ok(one) }
    }
}

/// The values of a large group, the best first; among them such as have gone, which are left out when they come first.
#[derive(Default)]
struct Heap {
    rows: Vec<Word>,
    len: usize,
}

impl Heap {
    fn row(&self, at: usize, width: usize) -> &[Word] {
        &self.rows[at * width..][..width]
    }

    fn swap(&mut self, one: usize, other: usize, width: usize) {
        let (low, high) = (one.min(other), one.max(other));
        let (front, back) = self.rows.split_at_mut(high * width);
        front[low * width..][..width].swap_with_slice(&mut back[..width]);
    }

    fn push(&mut self, row: &[Word], measure: &Measure, ranks: &Ranks<'_, '_>) -> PyResult<()> {
        let width = row.len();
        self.rows.extend_from_slice(row);
        let mut at = self.len;
        self.len += 1;
        while at > 0 {
            let above = (at - 1) / 2;
            if !ranks.is_better(measure.of_row(self.row(at, width)), measure.of_row(self.row(above, width)))? {
                break;
            }
            self.swap(at, above, width);
            at = above;
        }
        Ok(())
    }

    /// Leave out the first.
    fn pop(&mut self, width: usize, measure: &Measure, ranks: &Ranks<'_, '_>) -> PyResult<()> {
        self.len -= 1;
        if self.len > 0 {
            self.swap(0, self.len, width);
        }
        self.rows.truncate(self.len * width);
        let mut at = 0;
        loop {
            let mut best = at;
            for below in [2 * at + 1, 2 * at + 2] {
                if below < self.len
                    && ranks.is_better(measure.of_row(self.row(below, width)), measure.of_row(self.row(best, width)))?
                {
                    best = below;
                }
            }
            if best == at {
                return Ok(());
            }
            self.swap(at, best, width);
            at = best;
        }
    }
}

/// The column of a row, its key first, by which values are ranked.
#[derive(Clone, Copy)]
struct Measure(usize);

impl Measure {
    #[inline]
    fn of_row(self, row: &[Word]) -> Word {
        row[self.0]
    }

    #[inline]
    fn of(self, key: &[Word], value: &[Word]) -> Word {
        if self.0 < key.len() { key[self.0] } else { value[self.0 - key.len()] }
    }
}

/// Groups, and the best measure of each.
#[pyclass(module = "syndicate._native")]
pub struct Ranked {
    rows: Arranged,
    bests: Set, // beside a key: the best measure, if a value is there
    heaps: HashMap<Box<[Word]>, Heap>,
    measure: Measure,
    least: bool,
    kind: Option<Kind>, // of all measures
    before: Set,        // beside the keys of the last step: the best before, the best that came, whether the best went
}

impl Ranked {
    /// Tell of all words that are here.
    pub fn mark(&self, mark: &mut impl FnMut(Word)) {
        self.rows.mark(mark);
        for heap in self.heaps.values() {
            heap.rows.iter().for_each(|&word| mark(word));
        }
    }

    /// The one kind of all measures, with those of some rows; an error if they are of several.
    fn kind_with(&self, data: &Data, words: &Words, py: Python<'_>) -> PyResult<Option<Kind>> {
        let mut kind = if self.rows.is_empty() { None } else { self.kind };
        for at in 0..data.len() {
            let found = words.kind(py, self.measure.of_row(data.row(at))).ok_or_else(too_large)?;
            if *kind.get_or_insert(found) != found {
                return Err(too_large());
            }
        }
        Ok(kind)
    }

    /// The keys of rows; beside each the best so far, the best of what comes, and 1 if the best goes.
    fn touched(&self, data: &Data, weights: &[(i64, i64)], ranks: &Ranks<'_, '_>) -> PyResult<Set> {
        let width = self.bests.width;
        let mut touched = Set::new(width, 3, data.len());
        let mut numbers = Vec::with_capacity(data.len());
        for at in 0..data.len() {
            let key = &data.row(at)[..width];
            let hashed = hash(key);
            numbers.push(touched.find(hashed, key).unwrap_or_else(|| touched.insert(hashed, key)));
        }
        let mut bests = Vec::with_capacity(touched.len());
        let best = |set: &Set, number| bests.push(if number == NONE { NOTHING } else { set.beside(number)[0] });
        self.bests.find_all(touched.len(), |at| touched.row(at as u32), best);
        for (at, best) in bests.into_iter().enumerate() {
            touched.beside_mut(at as u32).copy_from_slice(&[best, NOTHING, 0]);
        }
        for (at, number) in numbers.into_iter().enumerate() {
            let measure = self.measure.of_row(data.row(at));
            let beside = touched.beside_mut(number);
            match weights[at] {
                (..=0, 1..) => beside[1] = ranks.best(beside[1], measure)?,
                (1.., ..=0) if beside[0] == measure => beside[2] = 1,
                _ => (),
            }
        }
        Ok(touched)
    }

    /// The best of a group, in which everything may be looked at.
    fn searched(&mut self, key: &[Word], ranks: &Ranks<'_, '_>) -> PyResult<Word> {
        let (rows, measure) = (&self.rows, self.measure);
        let Some(number) = rows.number(key) else {
            self.heaps.remove(key);
            return Ok(NOTHING);
        };
        let count = rows.count(number);
        if count <= LARGE_GROUP / 4 || (count <= LARGE_GROUP && !self.heaps.contains_key(key)) {
            self.heaps.remove(key);
            let mut best = NOTHING;
            let mut entry = rows.first(number);
            while entry != NONE {
                if rows.weight(entry) > 0 {
                    best = ranks.best(best, measure.of(key, rows.value(entry)))?;
                }
                entry = rows.next(entry);
            }
            return Ok(best);
        }
        let width = key.len() + rows.width;
        if self.heaps.get(key).is_some_and(|heap| heap.len > 2 * count + LARGE_GROUP) {
            self.heaps.remove(key);
        }
        if !self.heaps.contains_key(key) {
            let mut heap = Heap::default();
            let mut row = key.to_vec();
            let mut entry = rows.first(number);
            while entry != NONE {
                if rows.weight(entry) > 0 {
                    row.truncate(key.len());
                    row.extend_from_slice(rows.value(entry));
                    heap.push(&row, &measure, ranks)?;
                }
                entry = rows.next(entry);
            }
            self.heaps.insert(key.into(), heap);
        }
        let Some(heap) = self.heaps.get_mut(key) else { return Ok(NOTHING) };
        while heap.len > 0 {
            let first = heap.row(0, width);
            if rows.find(number, &first[key.len()..]).is_some_and(|entry| rows.weight(entry) > 0) {
                return Ok(measure.of_row(first));
            }
            heap.pop(width, &measure, ranks)?;
        }
        Ok(NOTHING)
    }

    /// Add rows, keys first; old bests out, new ones in.  Raises what `step` raises.
    pub fn change(&mut self, words: &Bound<'_, Words>, data: Arc<Data>) -> PyResult<Data> {
        let (py, words) = (words.py(), words.get());
        let ranks = Ranks { words, py, least: self.least };
        let kind = self.kind_with(&data, words, py)?;
        let weights = self.rows.receive(data).ok_or_else(too_large)?;
        let Some(data) = self.rows.arriving_rows() else { return Err(too_large()) };
        let touched = match self.touched(data, &weights, &ranks) {
            Ok(touched) => touched,
            Err(error) => {
                self.rows.discard();
                return Err(error);
            }
        };
        if !self.heaps.is_empty() {
            for (at, _) in weights.iter().enumerate().filter(|(_, weights)| matches!(weights, (..=0, 1..))) {
                let row = data.row(at);
                if let Some(heap) = self.heaps.get_mut(&row[..self.bests.width]) {
                    heap.push(row, &self.measure, &ranks)?;
                }
            }
        }
        self.before = touched;
        self.kind = kind;
        self.rows.commit();
        let before = std::mem::take(&mut self.before);
        let mut out = Data::new(self.bests.width + 1, 2 * before.len());
        let mut each = || {
            for at in 0..before.len() as u32 {
                let (key, &[old, come, is_gone]) = (before.row(at), before.beside(at)) else { continue };
                let new = if is_gone == 0 {
                    ranks.best(old, come)?
                } else if come != NOTHING && !ranks.is_better(old, come)? {
                    come
                } else {
                    self.searched(key, &ranks)?
                };
                if new != old {
                    self.set_best(key, new);
                    for (word, weight) in [(old, -1), (new, 1)] {
                        if word != NOTHING {
                            out.rows.extend_from_slice(key);
                            out.rows.push(word);
                            out.weights.push(weight);
                        }
                    }
                }
            }
            Ok(())
        };
        let done: PyResult<()> = each();
        self.before = before;
        done.map(|()| out)
    }

    fn set_best(&mut self, key: &[Word], best: Word) {
        let hashed = hash(key);
        let number = self.bests.find(hashed, key);
        match (number, best) {
            (Some(number), NOTHING) => self.bests.remove(number),
            (None, NOTHING) => (),
            (Some(number), _) => self.bests.beside_mut(number)[0] = best,
            (None, _) => {
                let number = self.bests.insert(hashed, key);
                self.bests.beside_mut(number)[0] = best;
            }
        }
    }
}

#[pymethods]
impl Ranked {
    /// Of keys of so many words and values of so many; a column of both is that by which they are ranked.
    #[new]
    pub fn new(key_width: usize, width: usize, measure: usize, least: bool) -> Ranked {
        Ranked {
            rows: Arranged::new(key_width, width),
            bests: Set::new(key_width, 1, 0),
            heaps: HashMap::new(),
            measure: Measure(measure),
            least,
            kind: None,
            before: Set::new(key_width, 3, 0),
        }
    }

    /// Add a table, whose keys and values these columns are; old bests out, new ones in.  Raises `OverflowError`, and
    /// changes nothing, where a weight is too large, or measures are not all numbers, all texts, or all bytes.
    fn step(
        &mut self,
        words: Bound<'_, Words>,
        table: &Table,
        columns: Vec<usize>,
        shape: Py<PyAny>,
    ) -> PyResult<Table> {
        Ok(Table::of(self.change(&words, table.picked(&columns))?, shape, true))
    }

    #[getter]
    pub fn version(&self) -> u64 {
        self.rows.version()
    }

    /// Be as at a version, the last or the one before.
    pub fn take_back(&mut self, version: u64) {
        if self.rows.version() != version {
            self.rows.take_back(version);
            let before = std::mem::take(&mut self.before);
            for at in 0..before.len() as u32 {
                self.heaps.remove(before.row(at));
                self.set_best(before.row(at), before.beside(at)[0]);
            }
            self.before = Set::new(self.bests.width, 3, 0);
        }
    }

    /// Give memory back; between steps.
    fn give_back(&mut self) {
        self.before = Set::new(self.bests.width, 3, 0);
        self.rows.give_back();
        if self.bests.is_sparse() {
            self.bests = self.bests.compacted();
        }
        let rows = &self.rows;
        self.heaps.retain(|key, _| rows.number(key).is_some_and(|number| rows.count(number) > LARGE_GROUP / 4));
    }

    fn __len__(&self) -> usize {
        self.rows.len()
    }

    /// All rows as a table; keys first.
    fn rows(&self, shape: Py<PyAny>) -> Table {
        self.rows.rows(shape)
    }

    /// The best of each group in which a value is there.
    fn bests(&self, shape: Py<PyAny>) -> Table {
        let mut data = Data::new(self.bests.width + 1, self.bests.len());
        for number in self.bests.numbers() {
            data.rows.extend_from_slice(self.bests.row(number));
            data.rows.push(self.bests.beside(number)[0]);
            data.weights.push(1);
        }
        Table::of(data, shape, true)
    }
}
