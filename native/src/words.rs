//! Elements as words of 64 bits: a small integer is its own word, any other part of an element has a number.
//!
//! Two parts are the same, as `key_of` in `syndicate/flow/element.py` has it, if and only if their words are equal.

use crate::arrangement::{Arranged, Summed, Weighed};
use crate::elements::{has_constant, integer, Items, Maker, Recent, Shape};
use crate::word_loop::Fixpoint;
use crate::pipeline::Pipeline;
use crate::extremes::Ranked;
use crate::hash_table::{hash, Set, Word};
use crate::join::join;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use std::cmp::Ordering;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The integer that a word is, if it is one.
#[inline]
pub fn number(word: Word) -> Option<i64> {
    (word & 1 == 1).then_some(word as i64 >> 1)
}

/// An integer as a word, if it is small.
#[inline]
pub fn small(number: i64) -> Option<Word> {
    ((number << 1) >> 1 == number).then_some((number << 1) as Word | 1)
}

/// The word of an integer, if it is a small one.
#[inline]
fn small_integer(part: &Bound<'_, PyAny>) -> Option<Word> {
    let integer = part.cast_exact::<PyInt>().ok()?;
    let mut overflow = 0;
    // SAFETY: it is an integer.
    let number = unsafe { ffi::PyLong_AsLongLongAndOverflow(integer.as_ptr(), &mut overflow) };
    small(number).filter(|_| overflow == 0)
}

/// Put a word in its column, of those *seen* or not; false where it is there already, and another.
#[inline]
fn place(row: &mut [Word], column: usize, word: Word, seen: &mut u64) -> bool {
    let bit = 1u64 << column;
    if *seen & bit != 0 {
        return row[column] == word;
    }
    *seen |= bit;
    row[column] = word;
    true
}

/// No weight of a table is as large as this: so that sums and products of two stay within 64 bits.
pub const LARGE: i64 = 1 << 31;

/// Rows of words, one after the other, and their weights, none of which is 0.
pub struct Data {
    pub width: usize,
    pub rows: Vec<Word>,
    pub weights: Vec<i64>,
}

/// Memory that tables have left: what each step takes again from the system costs more than to fill it.
static LEFT: Mutex<Left> = Mutex::new(Left { rows: Vec::new(), weights: Vec::new() });

struct Left {
    rows: Vec<Piece<Word>>,
    weights: Vec<Piece<i64>>,
}

/// An empty piece of memory, and whether it lay there when it was looked after last.
struct Piece<T> {
    room: Vec<T>,
    is_old: bool,
}

/// Give back what tables have left and none has taken since the last call.
fn give_back() {
    fn age<T>(pieces: &mut Vec<Piece<T>>) {
        pieces.retain(|piece| !piece.is_old);
        pieces.iter_mut().for_each(|piece| piece.is_old = true);
    }
    let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    age(&mut left.rows);
    age(&mut left.weights);
}

/// So many zeros.  Of a large piece no zero is written before its page is used.
pub fn zeros(count: usize) -> Vec<Word> {
    vec![0; count]
}

/// So many pieces of memory are kept, taken for so many rows at least, and none that is larger.
const PIECES: usize = 8;
const SOME: usize = 1 << 9;
const LARGEST: usize = 1 << 20;

/// An empty piece of memory: the smallest that was left of those large enough and not much too large.
fn room<T>(left: &mut Vec<Piece<T>>, size: usize) -> Vec<T> {
    let capacities = left.iter().map(|piece| piece.room.capacity()).enumerate();
    let fitting = capacities.filter(|(_, capacity)| (size..=8 * size).contains(capacity));
    match fitting.min_by_key(|&(_, capacity)| capacity) {
        Some((at, _)) => left.swap_remove(at).room,
        None => Vec::with_capacity(size),
    }
}

fn leave<T>(left: &mut Vec<Piece<T>>, mut room: Vec<T>) {
    if (1 << 12..=LARGEST).contains(&room.capacity()) {
        room.clear();
        if left.len() == PIECES {
            left.remove(0);
        }
        left.push(Piece { room, is_old: false });
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        if let Ok(mut left) = LEFT.try_lock() {
            leave(&mut left.rows, std::mem::take(&mut self.rows));
            leave(&mut left.weights, std::mem::take(&mut self.weights));
        }
    }
}

impl Data {
    pub fn new(width: usize, size: usize) -> Data {
        if size < SOME {
            return Data { width, rows: Vec::with_capacity(width * size), weights: Vec::with_capacity(size) };
        }
        let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
        Data { width, rows: room(&mut left.rows, width * size), weights: room(&mut left.weights, size) }
    }

    #[inline]
    pub fn row(&self, at: usize) -> &[Word] {
        &self.rows[at * self.width..][..self.width]
    }

    /// One more row, of all words of these parts.
    #[inline]
    pub fn push(&mut self, parts: [&[Word]; 3], weight: i64) {
        if let [&[first], &[second], &[third]] = parts {
            self.rows.extend([first, second, third]); // most are so, and loops are half of what a row costs
        } else {
            self.rows.extend(parts.into_iter().flatten());
        }
        self.weights.push(weight);
    }

    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Some columns of it; with each row once, unless that is known.
    pub fn picked(self: &Arc<Data>, columns: &[usize], once: bool) -> Arc<Data> {
        let is_whole = columns.iter().copied().eq(0..self.width);
        if is_whole && once {
            return self.clone();
        }
        let mut data = Data::new(columns.len(), self.len());
        if is_whole {
            data.rows.extend_from_slice(&self.rows);
        } else {
            for at in 0..self.len() {
                let row = self.row(at);
                data.rows.extend(columns.iter().map(|&column| row[column]));
            }
        }
        data.weights.extend_from_slice(&self.weights);
        Arc::new(if once { data } else { data.consolidated() })
    }

    /// Each row once, in the order in which they came first, without what cancels out.
    pub fn consolidated(self) -> Data {
        let mut set = Set::new(self.width, 0, self.len());
        let mut sums: Vec<i64> = Vec::with_capacity(self.len());
        for at in 0..self.len() {
            let row = self.row(at);
            let hashed = hash(row);
            match set.find(hashed, row) {
                Some(number) => sums[number as usize] += self.weights[at],
                None => {
                    set.insert(hashed, row);
                    sums.push(self.weights[at]);
                }
            }
        }
        let mut data = Data { width: self.width, rows: std::mem::take(&mut set.rows), weights: sums };
        if data.weights.contains(&0) {
            let mut kept = 0;
            for at in 0..data.weights.len() {
                if data.weights[at] != 0 {
                    data.rows.copy_within(at * data.width..(at + 1) * data.width, kept * data.width);
                    data.weights[kept] = data.weights[at];
                    kept += 1;
                }
            }
            data.rows.truncate(kept * data.width);
            data.weights.truncate(kept);
        }
        data
    }
}

/// What a column of gathered rows is: one of theirs, or the same in each.
pub enum Origin {
    Column(usize),
    Constant(Py<PyAny>),
}

/// Columns as they are written: numbers, and constants, each in a list.
pub fn origins(written: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<Origin>> {
    let read = |part: &Bound<'_, PyAny>| match part.cast_exact::<PyList>() {
        Ok(constant) => Ok(Origin::Constant(constant.get_item(0)?.unbind())),
        Err(_) => Ok(Origin::Column(part.extract()?)),
    };
    written.iter().map(read).collect()
}

/// Whether no weight is too large for a table.
pub fn fits(weights: &[i64]) -> bool {
    weights.iter().all(|weight| weight.abs() < LARGE)
}

/// What is ordered by itself, each apart from the others.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Number,
    Text,
    Bytes,
}

#[derive(Default)]
struct Things {
    things: Vec<Option<Py<PyAny>>>,
    free: Vec<u32>,
    shown: Vec<Weak<Data>>, // whose words must stay
    most: usize,            // of them, when it was last looked
    kept: usize,            // things that stayed when it was last swept
}

/// The words of the elements of one circuit.
#[pyclass(frozen, module = "syndicate._native")]
pub struct Words {
    key_of: Py<PyAny>,
    typed: Py<PyType>,
    plain: Vec<Py<PyType>>,
    numbers: Py<PyDict>,
    things: Mutex<Things>,
}

const FEW: usize = 4096;

impl Words {
    fn things(&self) -> MutexGuard<'_, Things> {
        self.things.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The word of a part of an element; raises what `key_of` raises.
    #[inline]
    pub fn word(&self, part: &Bound<'_, PyAny>) -> PyResult<Word> {
        match small_integer(part) {
            Some(word) => Ok(word),
            None => self.other(part),
        }
    }

    fn other(&self, part: &Bound<'_, PyAny>) -> PyResult<Word> {
        let kind = part.get_type();
        let is_named_by_itself = part.is_exact_instance_of::<PyInt>()
            || part.is_exact_instance_of::<PyString>()
            || part.is_exact_instance_of::<PyBytes>()
            || part.is_none();
        if is_named_by_itself {
            return self.number(part, part);
        }
        if let Ok(float) = part.cast_exact::<PyFloat>() {
            if float.value().fract() != 0.0 && float.value().is_finite() {
                return self.number(part, part);
            }
        } else if self.plain.iter().any(|class| kind.is(class)) {
            return self.number(part, part);
        }
        let key = self.key_of.bind(part.py()).call1((part,))?;
        self.number(&key, part)
    }

    fn number(&self, key: &Bound<'_, PyAny>, thing: &Bound<'_, PyAny>) -> PyResult<Word> {
        let py = key.py();
        let numbers = self.numbers.bind(py);
        if let Some(number) = numbers.get_item(key)? {
            return Ok(number.extract::<u64>()? << 1);
        }
        let number = {
            let mut things = self.things();
            match things.free.pop() {
                Some(number) => {
                    things.things[number as usize] = Some(thing.clone().unbind());
                    number
                }
                None => {
                    things.things.push(Some(thing.clone().unbind()));
                    things.things.len() as u32 - 1
                }
            }
        };
        numbers.set_item(key, number)?; // what raises here leaves a thing without a name, which is swept
        Ok(u64::from(number) << 1)
    }

    /// Take an element apart; false if it does not look so.
    fn take_apart(&self, maker: &Maker, element: &Bound<'_, PyAny>, row: &mut [Word], seen: &mut u64) -> PyResult<bool> {
        match maker {
            Maker::Column(column) => {
                if element.is_none() {
                    return Ok(false); // a function that only rearranges may yet ask for it: see `Leaf`
                }
                Ok(place(row, *column, self.word(element)?, seen))
            }
            Maker::Constant(constant) => Ok(self.word(constant.bind(element.py()))? == self.word(element)?),
            Maker::Tuple(makers) => {
                let Ok(parts) = element.cast_exact::<PyTuple>() else { return Ok(false) };
                if parts.len() != makers.len() {
                    return Ok(false);
                }
                for (maker, part) in makers.iter().zip(parts.iter_borrowed()) {
                    if let (Maker::Column(column), Some(word)) = (maker, small_integer(&part)) {
                        if !place(row, *column, word, seen) {
                            return Ok(false);
                        }
                        continue; // most parts are so
                    }
                    if !self.take_apart(maker, &part, row, seen)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }

    /// A new reference to what a word is.  Nothing is locked when it is used: to make an object may run code.
    #[inline]
    pub fn part(&self, py: Python<'_>, word: Word) -> PyResult<Py<PyAny>> {
        if let Some(number) = number(word) {
            return integer(py, number);
        }
        match self.things().things.get((word >> 1) as usize) {
            Some(Some(thing)) => Ok(thing.clone_ref(py)),
            _ => Err(PyTypeError::new_err("a word of no element")),
        }
    }

    /// What a word is, as far as the order of values goes; None for what Python orders.
    pub fn kind(&self, py: Python<'_>, word: Word) -> Option<Kind> {
        if word & 1 == 1 {
            return Some(Kind::Number);
        }
        let things = self.things();
        let thing = things.things.get((word >> 1) as usize)?.as_ref()?.bind(py);
        if thing.is_exact_instance_of::<PyString>() {
            Some(Kind::Text)
        } else if thing.is_exact_instance_of::<PyBytes>() {
            Some(Kind::Bytes)
        } else {
            let is_number = thing.is_exact_instance_of::<PyFloat>() || thing.is_exact_instance_of::<PyInt>();
            is_number.then_some(Kind::Number)
        }
    }

    /// The order of two words of one kind: `natural_order` in `syndicate/flow/comparison.py`.
    #[inline]
    pub fn order(&self, py: Python<'_>, one: Word, other: Word) -> PyResult<Ordering> {
        if one & other & 1 == 1 { Ok((one as i64).cmp(&(other as i64))) } else { self.order_of_things(py, one, other) }
    }

    fn order_of_things(&self, py: Python<'_>, one: Word, other: Word) -> PyResult<Ordering> {
        if one == other {
            return Ok(Ordering::Equal);
        }
        let (one, other) = (self.part(py, one)?.into_bound(py), self.part(py, other)?.into_bound(py));
        let place = |thing: &Bound<'_, PyAny>| match thing.cast_exact::<PyFloat>() {
            Ok(float) if float.value().is_nan() => (1, 0), // above all numbers
            Ok(float) => (0, 1 + i32::from(float.value().is_sign_positive())),
            Err(_) => (0, 3),
        };
        let (place, others) = (place(&one), place(&other));
        if place.0 + others.0 > 0 {
            return Ok(place.cmp(&others));
        }
        Ok(one.compare(&other)?.then(place.1.cmp(&others.1)))
    }

    /// Whether words are all integers and texts.
    fn are_plain(&self, py: Python<'_>, words: &[Word]) -> bool {
        let things = self.things();
        words.iter().all(|&word| {
            let thing = || things.things.get((word >> 1) as usize)?.as_ref();
            word & 1 == 1 || thing().is_some_and(|thing| thing.bind(py).is_exact_instance_of::<PyString>())
        })
    }

    /// Rows with such columns, one part after the other.
    pub fn gather(&self, py: Python<'_>, parts: &[(&Data, &[Origin])]) -> PyResult<Data> {
        let width = parts.first().map_or(0, |(_, columns)| columns.len());
        let mut data = Data::new(width, parts.iter().map(|(part, _)| part.len()).sum());
        let mut row = vec![0; width];
        for (part, columns) in parts {
            if columns.len() != width {
                return Err(PyTypeError::new_err("tables of different widths"));
            }
            let mut moved = Vec::with_capacity(width);
            for (to, origin) in columns.iter().enumerate() {
                match origin {
                    Origin::Column(from) => moved.push((to, *from)),
                    Origin::Constant(constant) => row[to] = self.word(constant.bind(py))?,
                }
            }
            for at in 0..part.len() {
                let there = part.row(at);
                for &(to, from) in &moved {
                    row[to] = there[from];
                }
                data.rows.extend_from_slice(&row);
            }
            data.weights.extend_from_slice(&part.weights);
        }
        Ok(data)
    }

    fn natural<'py>(&self, key: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = key.py();
        if key.get_type().is(&self.typed) { key.getattr(intern!(py, "value")) } else { Ok(key) }
    }
}

#[pymethods]
impl Words {
    /// What elements look like: see `Shape`.
    fn shape(&self, written: Bound<'_, PyAny>) -> PyResult<Shape> {
        Shape::new(written)
    }

    /// The rows of a stream by key.
    fn arranged(&self, key_width: usize, width: usize) -> Arranged {
        Arranged::new(key_width, width)
    }

    /// The weights of elements.
    fn weighed(&self, width: usize) -> Weighed {
        Weighed::new(width)
    }

    /// Sums by key.
    fn summed(&self, width: usize, form: &str) -> PyResult<Summed> {
        Summed::new(width, form)
    }

    /// The least or the greatest by key.
    fn ranked(&self, key_width: usize, width: usize, measure: usize, least: bool) -> Ranked {
        Ranked::new(key_width, width, measure, least)
    }

    /// A monotone loop.
    fn fixpoint(&self) -> Fixpoint {
        Fixpoint::new()
    }

    /// What a loop does, in place of what it did: see `Fixpoint`.
    fn program(&self, mut fixpoint: PyRefMut<'_, Fixpoint>, steps: Bound<'_, PyAny>) -> PyResult<()> {
        fixpoint.read(self, &steps)
    }

    /// What two sides give together because of what arrives at either: rows of key, left value, right value.
    fn join(
        &self,
        left: PyRef<'_, Arranged>,
        right: PyRef<'_, Arranged>,
        shape: Py<PyAny>,
        whole: bool,
    ) -> PyResult<Table> {
        Ok(Table::of(join(&left, &right)?, shape, whole))
    }

    /// Tables one after the other, of each such columns.
    fn gathered(
        &self,
        py: Python<'_>,
        parts: Vec<(Bound<'_, Table>, Vec<Bound<'_, PyAny>>)>,
        shape: Py<PyAny>,
    ) -> PyResult<Table> {
        let columns = parts.iter().map(|(_, written)| origins(written.clone())).collect::<PyResult<Vec<_>>>()?;
        let read: Vec<(&Data, &[Origin])> =
            parts.iter().zip(&columns).map(|((table, _), columns)| (&*table.get().data, &columns[..])).collect();
        Ok(Table::of(self.gather(py, &read)?, shape, false))
    }

    /// A step of a circuit in one call, whose batches have so many places.
    fn pipeline(words: Py<Self>, places: usize) -> Pipeline {
        Pipeline::new(words, places)
    }

    /// Give back the memory that no step needs, and forget the things of words that none of these has, if there are many
    /// new ones.
    fn sweep(&self, py: Python<'_>, keepers: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
        give_back();
        let size = {
            let things = self.things();
            if things.things.len() - things.free.len() < 2 * things.kept + FEW {
                return Ok(());
            }
            things.things.len()
        };
        let mut marked = vec![false; size];
        let mut mark = |word: Word| {
            if word & 1 == 0 {
                if let Some(place) = marked.get_mut((word >> 1) as usize) {
                    *place = true;
                }
            }
        };
        for keeper in keepers {
            if let Ok(arranged) = keeper.cast::<Arranged>() {
                arranged.try_borrow()?.mark(&mut mark);
            } else if let Ok(weighed) = keeper.cast::<Weighed>() {
                weighed.try_borrow()?.mark(&mut mark);
            } else if let Ok(ranked) = keeper.cast::<Ranked>() {
                ranked.try_borrow()?.mark(&mut mark);
            } else if let Ok(fixpoint) = keeper.cast::<Fixpoint>() {
                fixpoint.try_borrow()?.mark(&mut mark);
            } else {
                keeper.cast::<Summed>()?.try_borrow()?.mark(&mut mark);
            }
        }
        let mut things = self.things();
        things.shown.retain(|data| data.strong_count() > 0);
        for data in things.shown.iter().filter_map(Weak::upgrade) {
            data.rows.iter().for_each(|&word| mark(word));
        }
        drop(things);
        let numbers = self.numbers.bind(py);
        let mut names = Vec::new();
        for (name, number) in numbers.iter() {
            if !marked.get(number.extract::<usize>()?).copied().unwrap_or(true) {
                names.push(name);
            }
        }
        for name in &names {
            numbers.del_item(name)?;
        }
        let mut gone = Vec::new();
        let mut things = self.things();
        for (number, &marked) in marked.iter().enumerate() {
            if !marked {
                if let Some(thing) = things.things[number].take() {
                    gone.push(thing);
                    things.free.push(number as u32);
                }
            }
        }
        things.kept = things.things.len() - things.free.len();
        drop(things);
        drop(gone); // when nothing is locked any more: this may run code
        Ok(())
    }

    /// Pairs of elements and weights, in a batch or a list, as a table of this shape, *row* its columns; None where an
    /// element looks otherwise, or a weight is no small integer.
    fn table(&self, batch: Bound<'_, PyAny>, shape: &Shape, row: Py<PyAny>) -> PyResult<Option<Table>> {
        let py = batch.py();
        let width = shape.columns.len();
        if width > 64 {
            return Ok(None);
        }
        let mut data = Data::new(width, batch.len()?);
        let mut words = vec![0; width];
        let mut add = |key: Bound<'_, PyAny>, weight: Bound<'_, PyAny>| -> PyResult<bool> {
            let Ok(weight) = weight.cast_exact::<PyInt>() else { return Ok(false) };
            let mut overflow = 0;
            // SAFETY: it is an integer.
            let weight = unsafe { ffi::PyLong_AsLongLongAndOverflow(weight.as_ptr(), &mut overflow) };
            if overflow != 0 || weight.unsigned_abs() >= LARGE as u64 {
                return Ok(false);
            }
            if !self.take_apart(&shape.maker, &self.natural(key)?, &mut words, &mut 0)? {
                return Ok(false);
            }
            if weight != 0 {
                for &word in &words {
                    data.rows.push(word); // of so few words, a call to copy them would be too much
                }
                data.weights.push(weight);
            }
            Ok(true)
        };
        if let Ok(batch) = batch.cast::<PyDict>() {
            let (size, mut place, mut key, mut weight) = (batch.len(), 0, null_mut(), null_mut());
            // SAFETY: what is read is held while code of the user may run; whoever changes the dictionary is noticed.
            while unsafe { ffi::PyDict_Next(batch.as_ptr(), &mut place, &mut key, &mut weight) } != 0 {
                let pair = unsafe { (Bound::from_borrowed_ptr(py, key), Bound::from_borrowed_ptr(py, weight)) };
                if !add(pair.0, pair.1)? || batch.len() != size {
                    return Ok(None);
                }
            }
        } else {
            for pair in batch.cast::<PyList>()?.iter() {
                let pair = pair.cast_into::<PyTuple>()?;
                if !add(pair.get_item(0)?, pair.get_item(1)?)? {
                    return Ok(None);
                }
            }
        }
        Ok(Some(Table::of(data, row.clone_ref(py), true)))
    }

    /// What the elements of some rows of a table are, in a list.
    fn elements<'py>(
        &self,
        py: Python<'py>,
        table: &Table,
        shape: &Shape,
        start: usize,
        stop: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let data = &table.data;
        let stop = stop.min(data.len());
        let mut recent = Recent::new(data.width);
        // SAFETY: a new list, each place of which is filled once before anybody else sees it; it holds what is made.
        unsafe {
            let list = Bound::from_owned_ptr_or_err(py, ffi::PyList_New(stop.saturating_sub(start) as isize))?;
            for at in start..stop {
                let element = recent.made(py, &shape.maker, data.row(at), self)?;
                ffi::PyList_SET_ITEM(list.as_ptr(), (at - start) as isize, element.into_ptr());
            }
            Ok(list.cast_into_unchecked())
        }
    }

    /// Elements and weights of a table, one after the other.
    fn items(words: Py<Self>, py: Python<'_>, table: &Table, shape: Py<Shape>) -> Items {
        Items::new(py, words, shape, table.data.clone())
    }

    /// A table in which no row recurs as a canonical batch; None where an element may be no key by itself.
    fn batch<'py>(&self, py: Python<'py>, table: &Table, shape: &Shape) -> PyResult<Option<Bound<'py, PyDict>>> {
        let data = &table.data;
        if !table.once || has_constant(&shape.maker) || !self.are_plain(py, &data.rows) {
            return Ok(None);
        }
        let batch = PyDict::new(py);
        let (mut recent, mut last) = (Recent::new(data.width), None);
        let one = PyInt::new(py, 1);
        for at in 0..data.len() {
            // SAFETY: the last element is there until this one is.
            let element = unsafe { recent.made(py, &shape.maker, data.row(at), self)? };
            match data.weights[at] {
                1 => batch.set_item(&element, &one)?,
                weight => batch.set_item(&element, weight)?,
            }
            last = Some(element);
        }
        drop(last);
        Ok(Some(batch))
    }

    /// The words of a table must stay while anybody has it.
    pub fn show(&self, table: &Table) {
        let mut things = self.things();
        if things.shown.len() >= 64 && things.shown.len() > 2 * things.most {
            things.shown.retain(|data| data.strong_count() > 0);
            things.most = things.shown.len();
        }
        things.shown.push(Arc::downgrade(&table.data));
    }

    fn __len__(&self) -> usize {
        let things = self.things();
        things.things.len() - things.free.len()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.key_of)?;
        visit.call(&self.numbers)?;
        if let Ok(things) = self.things.try_lock() {
            things.things.iter().try_for_each(|thing| visit.call(thing))?;
        }
        Ok(())
    }

    fn __clear__(&self, py: Python<'_>) {
        self.numbers.bind(py).clear();
        let gone = std::mem::take(&mut *self.things());
        drop(gone); // when nothing is locked any more: this may run code
    }
}

/// A batch of a stream: rows of words, and what its elements are made of them.
#[pyclass(frozen, module = "syndicate._native")]
pub struct Table {
    pub data: Arc<Data>,
    #[pyo3(get)]
    shape: Py<PyAny>,
    /// Whether no element recurs.
    #[pyo3(get)]
    pub once: bool,
    memo: Mutex<Option<Py<PyAny>>>,
}

impl Table {
    pub fn of(data: Data, shape: Py<PyAny>, once: bool) -> Table {
        Table::sharing(Arc::new(data), shape, once)
    }

    /// Of rows that others have, too.
    pub fn sharing(data: Arc<Data>, shape: Py<PyAny>, once: bool) -> Table {
        Table { data, shape, once, memo: Mutex::default() }
    }

    /// Some columns, each row once.
    pub fn picked(&self, columns: &[usize]) -> Arc<Data> {
        self.data.picked(columns, self.once && columns.len() >= self.data.width)
    }
}

#[pymethods]
impl Table {
    fn __len__(&self) -> usize {
        self.data.len()
    }

    /// Other elements of the same rows; *whole* if they tell all columns.
    fn shaped(&self, shape: Py<PyAny>, whole: bool) -> Table {
        Table::sharing(self.data.clone(), shape, self.once && whole)
    }

    /// How many columns there are, used in the shape or not.
    #[getter]
    fn width(&self) -> usize {
        self.data.width
    }

    /// What its owner has made of it, if anything.
    #[getter]
    fn memo(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.memo.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|memo| memo.clone_ref(py))
    }

    #[setter]
    fn set_memo(&self, memo: Option<Py<PyAny>>) {
        let old = std::mem::replace(&mut *self.memo.lock().unwrap_or_else(PoisonError::into_inner), memo);
        drop(old);
    }

    /// Those rows for which a byte is not 0.
    fn taken(&self, py: Python<'_>, which: &[u8]) -> Table {
        let mut data = Data::new(self.data.width, which.len());
        for (at, _) in which.iter().enumerate().take(self.data.len()).filter(|(_, &is)| is != 0) {
            data.rows.extend_from_slice(self.data.row(at));
            data.weights.push(self.data.weights[at]);
        }
        Table::of(data, self.shape.clone_ref(py), self.once)
    }

    /// The weights of some rows.
    fn weights(&self, start: usize, stop: usize) -> &[i64] {
        self.data.weights.get(start..stop.min(self.data.len())).unwrap_or_default()
    }

    /// Whether some weight is below 0.
    fn is_mixed(&self) -> bool {
        self.data.weights.iter().any(|&weight| weight < 0)
    }

    /// How many weights are below 0.
    fn gone(&self) -> usize {
        self.data.weights.iter().filter(|&&weight| weight < 0).count()
    }

    /// The same with opposite weights.
    fn negated(&self, py: Python<'_>) -> Table {
        let data = Data {
            width: self.data.width,
            rows: self.data.rows.clone(),
            weights: self.data.weights.iter().map(|weight| -weight).collect(),
        };
        Table::of(data, self.shape.clone_ref(py), self.once)
    }

    /// Some columns in this order, each row once.
    fn consolidated(&self, columns: Vec<usize>, shape: Py<PyAny>) -> Table {
        Table::sharing(self.picked(&columns), shape, true)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.shape)?;
        match self.memo.try_lock() {
            Ok(memo) => visit.call(&*memo),
            Err(_) => Ok(()),
        }
    }
}

/// The words of a circuit: a function of what names elements (`key_of`), the class of typed keys, and plain classes.
#[pyfunction]
fn words(key_of: Py<PyAny>, typed: Py<PyType>, plain: Vec<Py<PyType>>, py: Python<'_>) -> Words {
    Words { key_of, typed, plain, numbers: PyDict::new(py).unbind(), things: Mutex::default() }
}

pub fn words_kernel(specification: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    Ok(wrap_pyfunction!(words, specification.py())?.into_any())
}

/// The error that lets a node take rows, where Python's integers have no end.
pub fn too_large() -> PyErr {
    PyOverflowError::new_err("a weight or a sum of 64 bits and more")
}
