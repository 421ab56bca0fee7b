//! The turn that runs in a thread: `Here` in `syndicate/actors/turn.py` specifies it.

use pyo3::prelude::*;
use std::cell::RefCell;

thread_local! {
    static TURN: RefCell<Option<Py<PyAny>>> = const { RefCell::new(None) };
}

/// Where the turn that runs in this thread is found.  There is one, for all threads.
#[pyclass(frozen, module = "syndicate._native")]
pub struct Here;

/// The turn that runs in this thread, if any.
#[inline]
pub fn turn(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    TURN.with_borrow(|turn| turn.as_ref().map(|turn| turn.bind(py).clone()))
}

/// Let another one be it, or none; returns the one before.
#[inline]
pub fn replace(turn: Option<Py<PyAny>>) -> Option<Py<PyAny>> {
    TURN.with_borrow_mut(|place| std::mem::replace(place, turn))
}

#[pymethods]
impl Here {
    #[new]
    fn new() -> Here {
        Here
    }

    #[getter(turn)]
    fn get_turn(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        turn(py).map(Bound::unbind)
    }

    #[setter(turn)]
    fn set_turn(&self, turn: Option<Py<PyAny>>) {
        drop(replace(turn)); // when nothing is borrowed any more: this may run code
    }
}
