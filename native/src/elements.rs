//! Elements, made of the words of rows: what they look like, and how they are made.

use crate::hash_table::Word;
use crate::words::{number, Data, Words};
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyInt, PyList, PyTuple};
use std::sync::Arc;

/// How an element is made of the words of a row.
pub enum Maker {
    Column(usize),
    Constant(Py<PyAny>),
    Tuple(Vec<Maker>),
}

/// What elements look like: nested tuples of columns, written as their numbers, and of constants, each in a list.
#[pyclass(frozen, module = "syndicate._native")]
pub struct Shape {
    pub maker: Maker,
    pub columns: Vec<usize>,
}

#[pymethods]
impl Shape {
    #[new]
    pub fn new(written: Bound<'_, PyAny>) -> PyResult<Shape> {
        let mut columns = Vec::new();
        let maker = read_maker(&written, &mut columns)?;
        Ok(Shape { maker, columns })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit_maker(&self.maker, &visit)
    }
}

fn visit_maker(maker: &Maker, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
    match maker {
        Maker::Column(_) => Ok(()),
        Maker::Constant(constant) => visit.call(constant),
        Maker::Tuple(parts) => parts.iter().try_for_each(|part| visit_maker(part, visit)),
    }
}

fn read_maker(written: &Bound<'_, PyAny>, columns: &mut Vec<usize>) -> PyResult<Maker> {
    if let Ok(parts) = written.cast_exact::<PyTuple>() {
        return Ok(Maker::Tuple(parts.iter().map(|part| read_maker(&part, columns)).collect::<PyResult<_>>()?));
    }
    if let Ok(constant) = written.cast_exact::<PyList>() {
        return Ok(Maker::Constant(constant.get_item(0)?.unbind()));
    }
    let column: usize = written.extract()?;
    if !columns.contains(&column) {
        columns.push(column);
    }
    Ok(Maker::Column(column))
}

/// The first integers, which are made once: they recur.
static INTEGERS: PyOnceLock<Vec<Py<PyAny>>> = PyOnceLock::new();

fn integers(py: Python<'_>) -> &[Py<PyAny>] {
    INTEGERS.get_or_init(py, || (0..1i64 << 13).map(|number| PyInt::new(py, number).into_any().unbind()).collect())
}

pub fn has_constant(maker: &Maker) -> bool {
    match maker {
        Maker::Column(_) => false,
        Maker::Constant(_) => true,
        Maker::Tuple(parts) => parts.iter().any(has_constant),
    }
}

/// An integer, a new reference.
#[inline]
pub fn integer(py: Python<'_>, number: i64) -> PyResult<Py<PyAny>> {
    match integers(py).get(number as usize) {
        Some(integer) => Ok(integer.clone_ref(py)),
        // SAFETY: a new integer, or null with an exception.
        None => unsafe {
            let new = match number.try_into() {
                Ok(number) => ffi::PyLong_FromLong(number), // which CPython makes in half the time
                Err(_) => ffi::PyLong_FromLongLong(number),
            };
            Bound::from_owned_ptr_or_err(py, new)
        }
        .map(Bound::unbind),
    }
}

/// What the words of the last row are, column by column, all in its element: in rows of a join most of them recur.
pub struct Recent(Vec<(Word, *mut ffi::PyObject)>);

// SAFETY: it is used by who has the interpreter's lock.
unsafe impl Send for Recent {}
unsafe impl Sync for Recent {}

/// The word of nothing.
const NOTHING: Word = Word::MAX - 1;

impl Recent {
    /// Of so many columns.
    pub fn new(columns: usize) -> Recent {
        Recent(vec![(NOTHING, std::ptr::null_mut()); columns])
    }

    /// A new reference to the element that a row makes.
    ///
    /// # Safety
    /// The element made before, if any, must be there still; there was no error.
    #[inline]
    pub unsafe fn made(&mut self, py: Python<'_>, maker: &Maker, row: &[Word], words: &Words) -> PyResult<Py<PyAny>> {
        match maker {
            Maker::Column(column) => Ok(Py::from_owned_ptr(py, self.part(py, *column, row, words)?)),
            Maker::Constant(constant) => Ok(constant.clone_ref(py)),
            Maker::Tuple(parts) => Ok(self.tuple(py, parts, row, words, None)?.0),
        }
    }

    /// The same, in the place of a flat element if one is given that nobody else has; and whether it is flat.
    ///
    /// # Safety
    /// As above; the element made before is not the one whose place is taken.
    #[inline]
    unsafe fn made_in(
        &mut self,
        py: Python<'_>,
        maker: &Maker,
        row: &[Word],
        words: &Words,
        place: Option<Py<PyAny>>,
    ) -> PyResult<(Py<PyAny>, bool)> {
        let Maker::Tuple(parts) = maker else { return Ok((self.made(py, maker, row, words)?, false)) };
        self.tuple(py, parts, row, words, place.filter(|tuple| ffi::Py_REFCNT(tuple.as_ptr()) == 1))
    }

    /// A tuple, and whether it is flat: what holds nothing that the collector follows is no work of it.  Tuples of tuples
    /// it untracks by itself.
    #[inline]
    unsafe fn tuple(
        &mut self,
        py: Python<'_>,
        parts: &[Maker],
        row: &[Word],
        words: &Words,
        place: Option<Py<PyAny>>,
    ) -> PyResult<(Py<PyAny>, bool)> {
        let is_new = place.is_none();
        let tuple = match place {
            Some(tuple) => tuple,
            None => Bound::from_owned_ptr_or_err(py, ffi::PyTuple_New(parts.len() as isize))?.unbind(),
        };
        let mut is_flat = !parts.is_empty();
        for (at, part) in parts.iter().enumerate() {
            let item = match part {
                Maker::Column(column) => self.part(py, *column, row, words)?,
                other => self.made(py, other, row, words)?.into_ptr(),
            };
            is_flat &= ffi::PyLong_CheckExact(item) != 0 || ffi::PyUnicode_CheckExact(item) != 0;
            // Nobody else sees the tuple, and what was in a flat one runs no code when it goes.
            let old = ffi::PyTuple_GET_ITEM(tuple.as_ptr(), at as isize);
            ffi::PyTuple_SET_ITEM(tuple.as_ptr(), at as isize, item);
            ffi::Py_XDECREF(old);
        }
        match (is_new, is_flat) {
            (true, true) => ffi::PyObject_GC_UnTrack(tuple.as_ptr().cast()),
            (false, false) => ffi::PyObject_GC_Track(tuple.as_ptr().cast()),
            _ => (),
        }
        Ok((tuple, is_flat))
    }

    #[inline]
    unsafe fn part(
        &mut self,
        py: Python<'_>,
        column: usize,
        row: &[Word],
        words: &Words,
    ) -> PyResult<*mut ffi::PyObject> {
        let (word, place) = (row[column], &mut self.0[column]);
        if place.0 == word {
            ffi::Py_INCREF(place.1);
        } else {
            let part = match number(word) {
                Some(number) => integer(py, number)?, // with nothing to be looked up
                None => words.part(py, word)?,
            };
            *place = (word, part.into_ptr());
        }
        Ok(place.1)
    }
}

/// Elements and weights, each made when it is asked for: what nobody keeps is then made where the last one was, which
/// is near, and there are never enough of it for the collector to look.
#[pyclass(module = "syndicate._native")]
pub struct Items {
    words: Py<Words>,
    shape: Py<Shape>,
    data: Arc<Data>,
    at: usize,
    recent: Recent,
    pair: Option<Py<PyTuple>>, // the last one; given out again where nobody else has it
    last: Option<Py<PyAny>>,   // its element, if that is flat
    spare: Option<Py<PyAny>>,  // the element before: who walks over them has let it go when the next one is asked for
    again: bool,               // nothing must be given out again where a tuple keeps its hash: since CPython 3.14
}

impl Items {
    pub fn new(py: Python<'_>, words: Py<Words>, shape: Py<Shape>, data: Arc<Data>) -> Items {
        let recent = Recent::new(data.width);
        let again = py.version_info() < (3, 14);
        Items { words, shape, data, at: 0, recent, pair: None, last: None, spare: None, again }
    }

    /// The pair of an element and a weight.
    ///
    /// # Safety
    /// The element is of the row `at`.
    #[inline]
    unsafe fn paired(&mut self, py: Python<'_>, element: Py<PyAny>, is_flat: bool) -> PyResult<Py<PyTuple>> {
        let weight = self.data.weights[self.at];
        if let Some(pair) = self.pair.take() {
            let tuple = pair.as_ptr();
            if self.again && ffi::Py_REFCNT(tuple) == 1 {
                // Nobody sees it meanwhile; what is released is so last, for that may run code.
                let old = ffi::PyTuple_GET_ITEM(tuple, 0);
                let mut others = std::ptr::null_mut();
                if self.at == 0 || self.data.weights[self.at - 1] != weight {
                    let number = integer(py, weight)?.into_ptr();
                    others = ffi::PyTuple_GET_ITEM(tuple, 1);
                    ffi::PyTuple_SET_ITEM(tuple, 1, number);
                }
                ffi::PyTuple_SET_ITEM(tuple, 0, element.into_ptr());
                if !is_flat && ffi::PyObject_GC_IsTracked(tuple) == 0 {
                    ffi::PyObject_GC_Track(tuple.cast()); // as `zip` does: what is in it now may lie on a cycle
                }
                self.pair = Some(pair.clone_ref(py));
                ffi::Py_DECREF(old);
                ffi::Py_XDECREF(others);
                return Ok(pair);
            }
        }
        let number = integer(py, weight)?;
        let tuple = Bound::from_owned_ptr_or_err(py, ffi::PyTuple_New(2))?;
        ffi::PyTuple_SET_ITEM(tuple.as_ptr(), 0, element.into_ptr());
        ffi::PyTuple_SET_ITEM(tuple.as_ptr(), 1, number.into_ptr());
        let pair = tuple.cast_into_unchecked::<PyTuple>().unbind();
        self.pair = Some(pair.clone_ref(py));
        Ok(pair)
    }

    /// Let go what was given out.
    fn end(&mut self) {
        self.pair = None;
        self.last = None;
        self.spare = None;
    }
}

#[pymethods]
impl Items {
    fn __iter__(items: PyRef<'_, Self>) -> PyRef<'_, Self> {
        items
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyTuple>>> {
        if self.at >= self.data.len() {
            self.end();
            return Ok(None);
        }
        let place = self.spare.take();
        // SAFETY: the last element is there, if there was one, and is not the one before; after an error there is no next.
        let pair = unsafe {
            let row = self.data.row(self.at);
            let made = self.recent.made_in(py, &self.shape.get().maker, row, self.words.get(), place);
            made.and_then(|(element, is_flat)| {
                self.spare = self.last.take();
                if is_flat && self.again {
                    self.last = Some(element.clone_ref(py));
                }
                self.paired(py, element, is_flat)
            })
        };
        self.at = if pair.is_ok() { self.at + 1 } else { self.data.len() };
        pair.map(Some)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.words)?;
        visit.call(&self.shape)?;
        visit.call(&self.last)?;
        visit.call(&self.spare)?;
        visit.call(&self.pair)
    }

    fn __clear__(&mut self) {
        self.at = self.data.len();
        self.end();
    }
}
