//! What a circuit keeps of a flat stream, in rows of words: by key, for joins; by element, for distinct; sums by key.
//!
//! Each takes part in a step once, and can take that back until the next step begins: `take_back(version)` leaves what
//! was there at that version, however often it is called.

use crate::hash_table::{hash, prefetch, same, Set, Slots, Word, BLOCK, NONE};
use crate::words::{fits, number, small, too_large, zeros, Data, Table, Words};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyFloat;
use std::collections::HashMap;
use std::sync::Arc;

/// What a step has done, so that it can be taken back.
enum Journal<T> {
    Filled, // it was empty before
    Added(T),
}

/// How many steps there have been, and the journal of the last, until it is no longer asked for.
struct History<T> {
    version: u64,
    last: Option<Journal<T>>,
}

impl<T> History<T> {
    fn new() -> History<T> {
        History { version: 0, last: None }
    }

    /// One more step.
    fn note(&mut self, was_empty: bool, added: T) {
        self.version += 1;
        self.last = Some(if was_empty { Journal::Filled } else { Journal::Added(added) });
    }

    /// Be as at a version, the last or the one before: what is to be taken back for that.
    fn back(&mut self, version: u64) -> Option<Journal<T>> {
        if self.version == version {
            return None;
        }
        self.version = version;
        self.last.take()
    }
}

/// From so many values on, those of a key have a table of their own.
const MANY: u32 = 16;

/// The rows of a stream by key, less those of the running step, and those.
#[pyclass(module = "syndicate._native")]
pub struct Arranged {
    pub width: usize,   // of a value
    pub keys: Set,      // beside a key: the number of its first entry, and how many it has
    entries: Vec<Word>, // a value, and in one word its weight and the number of the next
    free: u32,
    gone: usize,
    large: HashMap<u32, Slots>,
    is_lazy: bool, // a key gets its table when its values are searched
    pub arriving: Option<Arriving>,
    history: History<Arc<Data>>,
}

/// Where rows are found: their keys, and their entries.
pub struct Found {
    keys: Vec<u32>,
    entries: Vec<u32>,
}

/// Rows that arrive, and where they are found; None: there was nothing before, and they are in the tables already.
pub struct Arriving {
    pub data: Arc<Data>,
    found: Option<Found>,
}

impl Arriving {
    /// The entry of a row that arrives, if it was there before.
    #[inline]
    pub fn entry(&self, at: usize) -> u32 {
        self.found.as_ref().map_or(NONE, |found| found.entries[at])
    }
}

/// Two numbers in one word.
#[inline]
pub fn halves(word: Word) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

#[inline]
pub fn word(first: u32, second: u32) -> Word {
    u64::from(first) | u64::from(second) << 32
}

impl Arranged {
    #[inline]
    fn stride(&self) -> usize {
        self.width + 1
    }

    /// The value of an entry, its weight, and the number of the next.
    #[inline]
    pub fn read(&self, entry: u32) -> (&[Word], i64, u32) {
        let (value, last) = self.entries[entry as usize * self.stride()..][..self.stride()].split_at(self.width);
        let (next, weight) = halves(last[0]);
        (value, i64::from(weight as i32), next)
    }

    #[inline]
    pub fn value(&self, entry: u32) -> &[Word] {
        &self.entries[entry as usize * self.stride()..][..self.width]
    }

    #[inline]
    pub fn weight(&self, entry: u32) -> i64 {
        i64::from(halves(self.entries[entry as usize * self.stride() + self.width]).1 as i32)
    }

    #[inline]
    pub fn next(&self, entry: u32) -> u32 {
        halves(self.entries[entry as usize * self.stride() + self.width]).0
    }

    /// The first entry of a key.
    #[inline]
    pub fn first(&self, key: u32) -> u32 {
        if key == NONE { NONE } else { halves(self.keys.beside(key)[0]).0 }
    }

    /// Ask for the entries of the keys from here on, a block of which is soon walked: step by step, those of all keys
    /// at once, as each that is waited for alone takes as long as all of them.
    #[inline(always)]
    pub fn ahead(&self, keys: &[u32], at: usize) {
        if at % BLOCK == 0 {
            self.walk_ahead(&keys[at..keys.len().min(at + BLOCK)]);
        }
    }

    #[inline(never)]
    fn walk_ahead(&self, keys: &[u32]) {
        let (mut each, mut count) = ([NONE; BLOCK], 0);
        for first in keys.iter().map(|&key| self.first(key)).filter(|&first| first != NONE) {
            each[count] = first;
            count += 1;
        }
        for _ in 0..MANY {
            let all = std::mem::take(&mut count);
            for at in 0..all {
                let next = self.next(each[at]);
                if next != NONE {
                    prefetch(&self.entries, next as usize * self.stride());
                    each[count] = next;
                    count += 1;
                }
            }
        }
    }

    /// The number of a key, if it is there.
    pub fn number(&self, key: &[Word]) -> Option<u32> {
        self.keys.find(hash(key), key)
    }

    /// How many entries a key has.
    pub fn count(&self, key: u32) -> usize {
        halves(self.keys.beside(key)[0]).1 as usize
    }

    /// The entry of a value of a key.
    pub fn find(&self, key: u32, value: &[Word]) -> Option<u32> {
        let (mut entry, count) = halves(self.keys.beside(key)[0]);
        if count > MANY {
            if let Some(slots) = self.large.get(&key) {
                return slots.find(hash(value), |entry| same(self.value(entry), value));
            }
        }
        while entry != NONE {
            let (there, _, next) = self.read(entry);
            if same(there, value) {
                return Some(entry);
            }
            entry = next;
        }
        None
    }

    /// The keys of rows, whose entries are soon read; and how many entries these keys have.
    pub fn keys_of(&self, data: &Data) -> (Vec<u32>, usize) {
        let width = self.keys.width;
        let mut keys = Vec::with_capacity(data.len());
        let stride = self.stride();
        let mut all = 0;
        self.keys.find_all(data.len(), |at| &data.row(at)[..width], |set, number| {
            if number != NONE {
                let (first, count) = halves(set.beside(number)[0]);
                prefetch(&self.entries, first as usize * stride);
                all += count as usize;
            }
            keys.push(number);
        });
        (keys, all)
    }

    /// The places of rows; None where a weight would be too large.
    fn located(&self, data: &Data, sign: i64) -> Option<Found> {
        let (keys, _) = self.keys_of(data);
        let mut entries = Vec::with_capacity(data.len());
        for (at, &key) in keys.iter().enumerate() {
            self.ahead(&keys, at);
            let value = &data.row(at)[self.keys.width..];
            let entry = if key == NONE { None } else { self.find(key, value) };
            let old = entry.map_or(0, |entry| self.weight(entry));
            i32::try_from(old + sign * data.weights[at]).ok()?;
            entries.push(entry.unwrap_or(NONE));
        }
        Some(Found { keys, entries })
    }

    fn put(&mut self, data: &Data, found: &Found, sign: i64) {
        let at_weight = self.width;
        let mut gone = Vec::new();
        for (at, &entry) in found.entries.iter().enumerate() {
            if entry != NONE {
                let place = entry as usize * self.stride() + at_weight;
                let (next, weight) = halves(self.entries[place]);
                let sum = i64::from(weight as i32) + sign * data.weights[at];
                self.entries[place] = word(next, sum as i32 as u32);
                if sum == 0 {
                    gone.push(at);
                }
            }
        }
        for (at, &entry) in found.entries.iter().enumerate() {
            if entry == NONE {
                self.insert_row(data.row(at), found.keys[at], sign * data.weights[at]);
            }
        }
        for at in gone {
            let key = found.keys[at];
            if let Some(entry) = self.find(key, &data.row(at)[self.keys.width..]) {
                self.remove(key, entry);
            }
        }
    }

    /// Put in a row that is not there; *key* is the number of its key, if that was there.
    #[inline]
    fn insert_row(&mut self, row: &[Word], key: u32, weight: i64) {
        let (words, value) = row.split_at(self.keys.width);
        let number = match key {
            NONE => {
                let hashed = hash(words);
                self.keys.find(hashed, words).unwrap_or_else(|| {
                    let number = self.keys.insert(hashed, words);
                    self.keys.beside_mut(number)[0] = word(NONE, 0);
                    number
                })
            }
            number => number,
        };
        self.insert(number, value, weight);
    }

    fn insert(&mut self, key: u32, value: &[Word], weight: i64) {
        let (first, count) = halves(self.keys.beside(key)[0]);
        let (at, stride) = (self.width, self.stride());
        let last = word(first, weight as i32 as u32);
        let entry = if self.free == NONE {
            self.entries.extend_from_slice(value);
            self.entries.push(last);
            (self.entries.len() / stride) as u32 - 1
        } else {
            let entry = self.free;
            self.free = self.next(entry);
            self.gone -= 1;
            let place = &mut self.entries[entry as usize * stride..][..stride];
            place[..at].copy_from_slice(value);
            place[at] = last;
            entry
        };
        self.keys.beside_mut(key)[0] = word(entry, count + 1);
        if count >= MANY {
            let entries = &self.entries;
            let hash_of = |entry: u32| hash(&entries[entry as usize * stride..][..at]);
            match self.large.get_mut(&key) {
                Some(slots) => slots.insert(hash_of(entry), entry),
                None if self.is_lazy => (),
                None => self.enlarge(key),
            }
        }
    }

    /// Give a key of many values a table of them.
    fn enlarge(&mut self, key: u32) {
        let (at, stride) = (self.width, self.stride());
        let (mut each, count) = halves(self.keys.beside(key)[0]);
        let mut slots = Slots::with_room(count as usize);
        let entries = &self.entries;
        let hash_of = |entry: u32| hash(&entries[entry as usize * stride..][..at]);
        while each != NONE {
            slots.insert(hash_of(each), each);
            each = halves(entries[each as usize * stride + at]).0;
        }
        self.large.insert(key, slots);
    }

    /// The same room for rows, with none.
    pub fn like(&self) -> Arranged {
        Arranged { is_lazy: self.is_lazy, ..Arranged::new(self.keys.width, self.width) }
    }

    /// One whose keys get tables when their values are searched: where nearly all rows are new.
    pub fn lazily(key_width: usize, width: usize) -> Arranged {
        Arranged { is_lazy: true, ..Arranged::new(key_width, width) }
    }

    /// Add rows, or with -1 take them out again; *is_new*: none of them is there, nor comes twice.  False, and nothing
    /// is changed, where a weight would be too large.
    pub fn add(&mut self, data: &Data, sign: i64, is_new: bool) -> bool {
        let (keys, _) = self.keys_of(data);
        if is_new {
            if data.weights.iter().any(|&weight| i32::try_from(weight).is_err()) {
                return false;
            }
            for (at, &key) in keys.iter().enumerate() {
                self.insert_row(data.row(at), key, data.weights[at]);
            }
            return true;
        }
        if self.is_lazy {
            for &key in &keys {
                if key != NONE && halves(self.keys.beside(key)[0]).1 > MANY && !self.large.contains_key(&key) {
                    self.enlarge(key);
                }
            }
        }
        let Some(found) = self.located(data, sign) else { return false };
        self.put(data, &found, sign);
        true
    }

    /// Rows arrive, keys first, none of them twice.
    pub fn arrive(&mut self, data: Arc<Data>) -> PyResult<()> {
        self.discard();
        let found = if self.keys.len() > 0 {
            Some(self.located(&data, 1).ok_or_else(too_large)?)
        } else if data.weights.iter().all(|&weight| i32::try_from(weight).is_ok()) {
            self.fill(&data);
            None
        } else {
            return Err(too_large());
        };
        self.arriving = Some(Arriving { data, found });
        Ok(())
    }

    /// Be of these rows, none of them twice, where there is nothing: those of a key lie one after the other, so that who
    /// walks them waits for memory once.
    fn fill(&mut self, data: &Data) {
        let (width, stride, count) = (self.keys.width, self.stride(), data.len());
        self.clear();
        let keys = &mut self.keys;
        let mut numbers: Vec<u32> = Vec::with_capacity(count);
        let mut hashes = [0; BLOCK];
        for start in (0..count).step_by(BLOCK) {
            let block = start..count.min(start + BLOCK);
            keys.ahead(block.clone(), |at| &data.row(at)[..width], &mut hashes);
            for (at, &hashed) in block.zip(&hashes) {
                let key = &data.row(at)[..width];
                let number = keys.find(hashed, key).unwrap_or_else(|| keys.insert(hashed, key));
                keys.beside_mut(number)[0] += 1;
                numbers.push(number);
            }
        }
        keys.fit();
        let (mut end, mut many) = (0, Vec::new());
        for number in 0..keys.end() as u32 {
            let beside = &mut keys.beside_mut(number)[0];
            let held = *beside as u32;
            end += held;
            *beside = word(end, 0);
            if held > MANY {
                many.push(number);
            }
        }
        self.entries = zeros(count * stride);
        for (at, &number) in numbers.iter().enumerate() {
            if let Some(&number) = numbers.get(at + BLOCK) {
                prefetch(&keys.rows, number as usize * keys.stride);
            }
            let (next, held) = halves(keys.beside(number)[0]);
            let entry = &mut self.entries[(next as usize - 1) * stride..][..stride];
            let (value, last) = entry.split_at_mut(stride - 1);
            for (to, &from) in value.iter_mut().zip(&data.row(at)[width..]) {
                *to = from;
            }
            last[0] = word(if held == 0 { NONE } else { next }, data.weights[at] as i32 as u32);
            keys.beside_mut(number)[0] = word(next - 1, held + 1);
        }
        if !self.is_lazy {
            for number in many {
                self.enlarge(number);
            }
        }
    }

    /// Whether all that is in the tables arrives in this step.
    pub fn is_first(&self) -> bool {
        self.arriving.as_ref().is_some_and(|arriving| arriving.found.is_none())
    }

    /// Rows arrive; the weight that each has had, and the one that it will have.  None where one would be too large.
    pub fn receive(&mut self, data: Arc<Data>) -> Option<Vec<(i64, i64)>> {
        let found = self.located(&data, 1)?;
        let weights = found.entries.iter().zip(&data.weights).map(|(&entry, &weight)| {
            let old = if entry == NONE { 0 } else { self.weight(entry) };
            (old, old + weight)
        });
        let weights = weights.collect();
        self.arriving = Some(Arriving { data, found: Some(found) });
        Some(weights)
    }

    pub fn arriving_rows(&self) -> Option<&Data> {
        self.arriving.as_ref().map(|arriving| &*arriving.data)
    }

    /// Whether there is nothing, less what arrives.
    pub fn is_empty(&self) -> bool {
        self.keys.len() == 0 || self.is_first()
    }

    /// How many rows there are, less those that arrive.
    pub fn len(&self) -> usize {
        if self.is_first() { 0 } else { self.entries.len() / self.stride() - self.gone }
    }

    /// All rows, keys first, less those that arrive.
    pub fn all(&self) -> Data {
        let mut data = Data::new(self.keys.width + self.width, self.len());
        if self.is_first() {
            return data;
        }
        self.each(|key, value, weight| {
            data.rows.extend_from_slice(key);
            data.rows.extend_from_slice(value);
            data.weights.push(weight);
        });
        data
    }

    /// Take an entry out: what is in the first one moves into its place, and that one is free.
    fn remove(&mut self, key: u32, entry: u32) {
        let (first, count) = halves(self.keys.beside(key)[0]);
        let (at, stride) = (self.width, self.stride());
        if count > MANY {
            if let Some(slots) = self.large.get_mut(&key) {
                let entries = &self.entries;
                let hash_of = |entry: u32| hash(&entries[entry as usize * stride..][..at]);
                slots.remove(hash_of(entry), entry);
                if first != entry {
                    slots.remove(hash_of(first), first);
                    slots.insert(hash_of(first), entry);
                }
            }
            if count == MANY + 1 {
                self.large.remove(&key);
            }
        }
        let second = self.next(first);
        if first != entry {
            let (start, place) = (first as usize * stride, entry as usize * stride);
            self.entries.copy_within(start..start + at, place);
            let (_, weight) = halves(self.entries[start + at]);
            let (next, _) = halves(self.entries[place + at]);
            self.entries[place + at] = word(next, weight);
        }
        self.entries[first as usize * stride + at] = word(self.free, 0);
        self.free = first;
        self.gone += 1;
        if count == 1 {
            self.keys.remove(key);
        } else {
            self.keys.beside_mut(key)[0] = word(second, count - 1);
        }
    }

    fn clear(&mut self) {
        *self = Arranged {
            arriving: self.arriving.take(),
            history: History { version: self.history.version, last: None },
            ..self.like()
        };
    }

    /// All entries, in any order.
    fn each(&self, mut call: impl FnMut(&[Word], &[Word], i64)) {
        for number in self.keys.numbers() {
            let mut entry = self.first(number);
            while entry != NONE {
                call(self.keys.row(number), self.value(entry), self.weight(entry));
                entry = self.next(entry);
            }
        }
    }

    /// Make it again where most of its space is empty.
    fn compact(&mut self) {
        let all = self.entries.len() / self.stride();
        if self.keys.is_sparse() || (all > 1024 && self.gone * 4 > all * 3) {
            let mut fresh = self.like();
            fresh.entries.reserve_exact((all - self.gone) * self.stride());
            for number in self.keys.numbers() {
                let key = fresh.keys.insert(hash(self.keys.row(number)), self.keys.row(number));
                fresh.keys.beside_mut(key)[0] = word(NONE, 0);
                let mut entry = self.first(number);
                while entry != NONE {
                    fresh.insert(key, self.value(entry), self.weight(entry));
                    entry = self.next(entry);
                }
            }
            std::mem::swap(&mut fresh.history, &mut self.history);
            *self = fresh;
        }
    }
}

#[pymethods]
impl Arranged {
    /// Of keys of so many words, and values of so many.
    #[new]
    pub fn new(key_width: usize, width: usize) -> Arranged {
        Arranged {
            width,
            keys: Set::new(key_width, 1, 0),
            entries: Vec::new(),
            free: NONE,
            gone: 0,
            large: HashMap::new(),
            is_lazy: false,
            arriving: None,
            history: History::new(),
        }
    }

    /// A table arrives, whose keys and values these columns are.
    #[pyo3(name = "arrive")]
    fn arrive_table(&mut self, table: &Table, columns: Vec<usize>) -> PyResult<()> {
        self.arrive(table.picked(&columns))
    }

    /// What has arrived is of the past now.  To be taken back: what is noted to be called with this version first.
    pub fn commit(&mut self) {
        if let Some(Arriving { data, found }) = self.arriving.take() {
            let Some(found) = found else { return self.history.note(true, data) };
            let was_empty = self.keys.len() == 0;
            self.put(&data, &found, 1);
            self.history.note(was_empty, data);
        }
    }

    /// Forget what arrives.
    pub fn discard(&mut self) {
        let is_first = self.is_first();
        self.arriving = None;
        if is_first {
            self.clear();
        }
    }

    #[getter]
    pub fn version(&self) -> u64 {
        self.history.version
    }

    /// Be as at a version, the last or the one before.
    pub fn take_back(&mut self, version: u64) {
        match self.history.back(version) {
            None => (),
            Some(Journal::Filled) => self.clear(),
            Some(Journal::Added(data)) => {
                if let Some(found) = self.located(&data, -1) {
                    self.put(&data, &found, -1);
                }
            }
        }
    }

    /// Give memory back; between steps.
    pub fn give_back(&mut self) {
        self.history.last = None;
        self.compact();
    }

    fn __len__(&self) -> usize {
        self.len()
    }

    /// All rows as a table, less those that arrive; keys first.
    pub fn rows(&self, shape: Py<PyAny>) -> Table {
        Table::of(self.all(), shape, true)
    }
}

impl Arranged {
    /// Tell of all words that are here.
    pub fn mark(&self, mark: &mut impl FnMut(Word)) {
        mark_rows(&self.keys, mark);
        for entry in self.entries.chunks_exact(self.stride()) {
            entry[..self.width].iter().for_each(|&word| mark(word));
        }
    }
}

fn mark_rows(set: &Set, mark: &mut impl FnMut(Word)) {
    if set.stride > 0 {
        for row in set.rows.chunks_exact(set.stride) {
            row[..set.width].iter().for_each(|&word| mark(word));
        }
    }
}

/// The weights of elements.
#[pyclass(module = "syndicate._native")]
pub struct Weighed {
    rows: Set, // beside an element: its weight
    history: History<Arc<Data>>,
}

impl Weighed {
    /// Add rows, each of which comes once, or with -1 take them out again.
    pub fn add(&mut self, data: &Data, sign: i64) {
        let mut numbers = Vec::with_capacity(data.len());
        self.rows.find_all(data.len(), |at| data.row(at), |_, number| numbers.push(number));
        for (at, number) in numbers.into_iter().enumerate() {
            self.put(data.row(at), sign * data.weights[at], number);
        }
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// All elements and their weights.
    pub fn all(&self) -> Data {
        let mut data = Data::new(self.rows.width, self.rows.len());
        for number in self.rows.numbers() {
            data.rows.extend_from_slice(self.rows.row(number));
            data.weights.push(self.rows.beside(number)[0] as i64);
        }
        data
    }

    /// Tell of all words that are here.
    pub fn mark(&self, mark: &mut impl FnMut(Word)) {
        mark_rows(&self.rows, mark);
    }

    /// Add elements, each of which comes once; what comes and what goes.
    pub fn change(&mut self, data: Arc<Data>) -> PyResult<Data> {
        if !fits(&data.weights) {
            return Err(too_large());
        }
        let mut out = Data::new(data.width, data.len());
        let was_empty = self.rows.len() == 0;
        let mut numbers = Vec::with_capacity(data.len());
        self.rows.find_all(data.len(), |at| data.row(at), |_, number| numbers.push(number));
        for (at, number) in numbers.into_iter().enumerate() {
            let (old, new) = self.put(data.row(at), data.weights[at], number);
            if (old > 0) != (new > 0) {
                out.rows.extend_from_slice(data.row(at));
                out.weights.push(if new > 0 { 1 } else { -1 });
            }
        }
        self.history.note(was_empty, data);
        Ok(out)
    }

    /// Add to the weight of an element whose number is given; what it was, and what it is.
    fn put(&mut self, row: &[Word], weight: i64, number: u32) -> (i64, i64) {
        if number == NONE {
            let number = self.rows.insert(hash(row), row);
            self.rows.beside_mut(number)[0] = weight as Word;
            return (0, weight);
        }
        let old = self.rows.beside(number)[0] as i64;
        let new = old + weight;
        if new == 0 {
            self.rows.remove(number);
        } else {
            self.rows.beside_mut(number)[0] = new as Word;
        }
        (old, new)
    }
}

#[pymethods]
impl Weighed {
    #[new]
    pub fn new(width: usize) -> Weighed {
        Weighed { rows: Set::new(width, 1, 0), history: History::new() }
    }

    /// Add a table, of which these columns are the elements; what comes and what goes.
    fn step(&mut self, table: &Table, columns: Vec<usize>, shape: Py<PyAny>) -> PyResult<Table> {
        Ok(Table::of(self.change(table.picked(&columns))?, shape, true))
    }

    #[getter]
    pub fn version(&self) -> u64 {
        self.history.version
    }

    /// Be as at a version, the last or the one before.
    pub fn take_back(&mut self, version: u64) {
        match self.history.back(version) {
            None => (),
            Some(Journal::Filled) => self.rows = Set::new(self.rows.width, 1, 0),
            Some(Journal::Added(data)) => self.add(&data, -1),
        }
    }

    /// Give memory back; between steps.
    pub fn give_back(&mut self) {
        self.history.last = None;
        if self.rows.is_sparse() {
            self.rows = self.rows.compacted();
        }
    }

    fn __len__(&self) -> usize {
        self.len()
    }

    /// All elements and their weights.
    fn rows(&self, shape: Py<PyAny>) -> Table {
        Table::of(self.all(), shape, true)
    }
}

/// What is given out of a key.
#[derive(Clone, Copy)]
enum Form {
    Count,
    Sum,
    Mean,
}

/// Integers of less are floats exactly.
const EXACT: u64 = 1 << 53;

impl Form {
    /// The word of what is given out for a sum of weights, which is not 0, and one of values; None if words are not
    /// enough.
    fn word(self, number: i64, whole: i64, words: &Bound<'_, Words>) -> PyResult<Option<Word>> {
        match self {
            Form::Count => Ok(small(number)),
            Form::Sum => Ok(small(whole)),
            Form::Mean if number.unsigned_abs() >= EXACT || whole.unsigned_abs() >= EXACT => Ok(None),
            Form::Mean => {
                let sign = number.signum(); // of the mean of nothing, none
                let mean = (whole * sign) as f64 / (number * sign) as f64;
                words.get().word(PyFloat::new(words.py(), mean).as_any()).map(Some)
            }
        }
    }
}

/// By key, the sum of the weights and, where it is asked for, of the values.
#[pyclass(module = "syndicate._native")]
pub struct Summed {
    keys: Set, // beside a key: the sum of its weights, that of its values
    form: Form,
    history: History<Set>,
}

impl Summed {
    /// Tell of all words that are here.
    pub fn mark(&self, mark: &mut impl FnMut(Word)) {
        mark_rows(&self.keys, mark);
    }

    /// Add to the sums of a key whose number is given.
    fn put(&mut self, key: &[Word], number: i64, whole: i64, place: u32) {
        let at = if place == NONE { self.keys.insert(hash(key), key) } else { place };
        let beside = self.keys.beside_mut(at);
        beside[0] = (beside[0] as i64).wrapping_add(number) as Word;
        beside[1] = (beside[1] as i64).wrapping_add(whole) as Word;
        if beside[0] == 0 && beside[1] == 0 {
            self.keys.remove(at);
        }
    }

    /// Add rows; the old ones of key and sum out, the new ones in.  None, and nothing is changed, where integers of 64
    /// bits are not enough.
    pub fn change(
        &mut self,
        words: &Bound<'_, Words>,
        data: &Data,
        keys: &[usize],
        value: Option<usize>,
    ) -> PyResult<Option<Data>> {
        let Some(added) = self.added(data, keys, value) else { return Ok(None) };
        let mut out = Data::new(keys.len() + 1, 2 * added.len());
        let mut numbers = Vec::with_capacity(added.len());
        self.keys.find_all(added.len(), |at| added.row(at as u32), |_, number| numbers.push(number));
        for at in 0..added.len() as u32 {
            let (key, more) = (added.row(at), added.beside(at));
            let old = match numbers[at as usize] {
                NONE => [0, 0],
                number => {
                    let beside = self.keys.beside(number);
                    [beside[0] as i64, beside[1] as i64]
                }
            };
            let (Some(number), Some(whole)) =
                (old[0].checked_add(more[0] as i64), old[1].checked_add(more[1] as i64))
            else {
                return Ok(None);
            };
            let result = |number, whole| match number {
                0 => Ok(Some(0)), // no row
                _ => self.form.word(number, whole, words),
            };
            let (Some(gone), Some(come)) = (result(old[0], old[1])?, result(number, whole)?) else { return Ok(None) };
            if gone == come && (old[0] != 0) == (number != 0) {
                continue;
            }
            for (there, word, weight) in [(old[0], gone, -1), (number, come, 1)] {
                if there != 0 {
                    out.rows.extend_from_slice(key);
                    out.rows.push(word);
                    out.weights.push(weight);
                }
            }
        }
        let was_empty = self.keys.len() == 0;
        if was_empty {
            self.keys = added;
            let empty = (0..self.keys.len() as u32).filter(|&at| self.keys.beside(at) == [0, 0]);
            for number in empty.collect::<Vec<_>>() {
                self.keys.remove(number);
            }
            self.history.note(true, Set::new(keys.len(), 2, 0));
        } else {
            for at in 0..added.len() as u32 {
                let more = added.beside(at);
                self.put(added.row(at), more[0] as i64, more[1] as i64, numbers[at as usize]);
            }
            self.history.note(false, added);
        }
        Ok(Some(out))
    }

    /// By key what a table adds; None where a value is no small integer, or a sum too large.
    fn added(&self, data: &Data, keys: &[usize], value: Option<usize>) -> Option<Set> {
        let mut added = Set::new(keys.len(), 2, data.len());
        let mut key = vec![0; keys.len()];
        for at in 0..data.len() {
            let row = data.row(at);
            for (place, &column) in key.iter_mut().zip(keys) {
                *place = row[column];
            }
            let weight = data.weights[at];
            let more = match value {
                None => 0,
                Some(column) => number(row[column])?.checked_mul(weight)?,
            };
            let hashed = hash(&key);
            let number = added.find(hashed, &key).unwrap_or_else(|| added.insert(hashed, &key));
            let beside = added.beside_mut(number);
            beside[0] = (beside[0] as i64).checked_add(weight)? as Word;
            beside[1] = (beside[1] as i64).checked_add(more)? as Word;
        }
        Some(added)
    }
}

#[pymethods]
impl Summed {
    /// Of keys of so many words; *form*: whether the sum of the weights, that of the values, or their mean is given out.
    #[new]
    pub fn new(width: usize, form: &str) -> PyResult<Summed> {
        let form = match form {
            "count" => Form::Count,
            "sum" => Form::Sum,
            "avg" => Form::Mean,
            other => return Err(PyTypeError::new_err(format!("no sums for {other}"))),
        };
        Ok(Summed { keys: Set::new(width, 2, 0), form, history: History::new() })
    }

    /// Add a table; the old rows of key and sum out, the new ones in.  None, and nothing is changed, where integers of
    /// 64 bits are not enough.
    fn step(
        &mut self,
        words: Bound<'_, Words>,
        table: &Table,
        keys: Vec<usize>,
        value: Option<usize>,
        shape: Py<PyAny>,
    ) -> PyResult<Option<Table>> {
        let change = self.change(&words, &table.data, &keys, value)?;
        Ok(change.map(|data| Table::of(data, shape, true)))
    }

    #[getter]
    pub fn version(&self) -> u64 {
        self.history.version
    }

    /// Be as at a version, the last or the one before.
    pub fn take_back(&mut self, version: u64) {
        match self.history.back(version) {
            None => (),
            Some(Journal::Filled) => self.keys = Set::new(self.keys.width, 2, 0),
            Some(Journal::Added(added)) => {
                for at in 0..added.len() as u32 {
                    let more = added.beside(at);
                    let (number, whole) = ((more[0] as i64).wrapping_neg(), (more[1] as i64).wrapping_neg());
                    let place = self.keys.find(hash(added.row(at)), added.row(at)).unwrap_or(NONE);
                    self.put(added.row(at), number, whole, place);
                }
            }
        }
    }

    /// Give memory back; between steps.
    pub fn give_back(&mut self) {
        self.history.last = None;
        if self.keys.is_sparse() {
            self.keys = self.keys.compacted();
        }
    }

    fn __len__(&self) -> usize {
        self.keys.len()
    }

    /// Begin with such rows as `rows` gives; false where a sum is no small integer.
    fn load(&mut self, table: &Table) -> bool {
        let (width, data) = (self.keys.width, &table.data);
        for at in 0..data.len() {
            let (key, sums) = data.row(at).split_at(width);
            if sums.len() != 2 || sums.iter().any(|sum| sum & 1 == 0) {
                return false;
            }
            let place = self.keys.find(hash(key), key).unwrap_or(NONE);
            self.put(key, sums[0] as i64 >> 1, sums[1] as i64 >> 1, place);
        }
        true
    }

    /// All keys, each with the sum of its weights and that of its values; None if one is too large for a word.
    fn rows(&self, shape: Py<PyAny>) -> Option<Table> {
        let mut data = Data::new(self.keys.width + 2, self.keys.len());
        for number in self.keys.numbers() {
            data.rows.extend_from_slice(self.keys.row(number));
            for &sum in self.keys.beside(number) {
                data.rows.push(small(sum as i64)?);
            }
            data.weights.push(1);
        }
        Some(Table::of(data, shape, true))
    }
}
