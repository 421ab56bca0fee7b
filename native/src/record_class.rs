//! Instances of record classes, made where the class is called: `make_at_once` in `syndicate/values/record.py`.
//!
//! A call of a class looks up its `__init__`, puts the arguments together again for it and runs it: of the instructions
//! that this takes one in four stores something.

use crate::frozen::{Names, RecordFreezer};
use pyo3::exceptions::PySystemError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

/// What a call of a record class stands for: its own `__init__`, and the version of the class that was known to have it.
pub struct Made {
    init: PyOnceLock<Py<PyAny>>,
    version: AtomicU32,
}

impl Made {
    pub fn new() -> Made {
        Made { init: PyOnceLock::new(), version: AtomicU32::new(0) }
    }

    /// Whether to call the class is still to store what it is called with.  CPython gives a class another version, or
    /// none, which is zero, when an attribute of it or of a base is changed.
    #[inline]
    fn holds(&self, class: &Bound<'_, PyType>) -> PyResult<bool> {
        let version = version_of(class);
        if version != 0 && version == self.version.load(Ordering::Relaxed) {
            return Ok(true);
        }
        self.is_unchanged(class)
    }

    #[cold]
    fn is_unchanged(&self, class: &Bound<'_, PyType>) -> PyResult<bool> {
        let py = class.py();
        let init = class.getattr(intern!(py, "__init__"))?;
        let kind = class.as_type_ptr();
        // SAFETY: both are classes.
        let plain = unsafe {
            (*kind).tp_new == (*&raw const ffi::PyBaseObject_Type).tp_new
                && ffi::PyType_HasFeature(kind, ffi::Py_TPFLAGS_IS_ABSTRACT) == 0
        };
        let so = plain && self.init.get(py).is_some_and(|known| init.is(known));
        if so {
            self.version.store(version_of(class), Ordering::Relaxed);
        }
        Ok(so)
    }
}

fn version_of(class: &Bound<'_, PyType>) -> u32 {
    // SAFETY: it is a class.
    unsafe { (*class.as_type_ptr()).tp_version_tag }
}

/// Let calls of a record class with a value for each field store them, and do no more.
#[pyfunction]
pub fn make_at_once(class: Bound<'_, PyType>) -> PyResult<()> {
    let py = class.py();
    let Some(freezer) = Names::of(py)?.freezers.bind(py).get_item(&class)? else { return Ok(()) };
    let Ok(record) = freezer.cast_exact::<RecordFreezer>() else { return Ok(()) };
    let init = class.getattr(intern!(py, "__init__"))?.unbind();
    if record.get().made.init.set(py, init).is_ok() {
        // SAFETY: it is a class of Python's; its subclasses do not inherit this.
        unsafe { (*class.as_type_ptr()).tp_vectorcall = Some(call) };
    }
    Ok(())
}

/// The new instance; `None` if the class is to be called as all classes are.
#[inline]
unsafe fn made<'py>(
    class: &Bound<'py, PyType>,
    arguments: *const *mut ffi::PyObject,
    count: usize,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = class.py();
    let Some(record) = Names::of(py)?.record_of(class)? else { return Ok(None) };
    if count != record.fields.len() || !record.made.holds(class)? {
        return Ok(None);
    }
    let kind = class.as_type_ptr();
    let Some(alloc) = (*kind).tp_alloc else { return Ok(None) };
    let instance = Bound::from_owned_ptr_or_err(py, alloc(kind, 0))?;
    for (place, slot) in record.fields.iter().enumerate() {
        slot.set(&instance, Bound::from_borrowed_ptr(py, *arguments.add(place)))?;
    }
    Ok(Some(instance))
}

/// Call a class as all classes are called.
unsafe fn call_usually(
    class: &Bound<'_, PyType>,
    arguments: *const *mut ffi::PyObject,
    count: usize,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let py = class.py();
    let own = |at: usize| Bound::from_borrowed_ptr(py, *arguments.add(at));
    let outcome = || -> PyResult<*mut ffi::PyObject> {
        let positional = pyo3::types::PyTuple::new(py, (0..count).map(own))?;
        let mut keywords = None;
        if !names.is_null() {
            let table = pyo3::types::PyDict::new(py);
            for (at, name) in Bound::from_borrowed_ptr(py, names).try_iter()?.enumerate() {
                table.set_item(name?, own(count + at))?;
            }
            keywords = Some(table);
        }
        let Some(function) = (*ffi::Py_TYPE(class.as_ptr())).tp_call else {
            return Err(PySystemError::new_err("a class that cannot be called"));
        };
        Ok(function(class.as_ptr(), positional.as_ptr(), keywords.map_or(null_mut(), |table| table.as_ptr())))
    };
    outcome().unwrap_or_else(|error| {
        error.restore(py);
        null_mut()
    })
}

/// What CPython calls for a call of the class.
unsafe extern "C" fn call(
    class: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: usize,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let py = Python::assume_attached();
    let outcome = std::panic::catch_unwind(|| {
        let class = Bound::from_borrowed_ptr(py, class).cast_into_unchecked::<PyType>();
        let count = ffi::PyVectorcall_NARGS(count) as usize;
        if names.is_null() {
            match made(&class, arguments, count) {
                Ok(Some(instance)) => return instance.into_ptr(),
                Ok(None) => (),
                Err(error) => {
                    error.restore(py);
                    return null_mut();
                }
            }
        }
        call_usually(&class, arguments, count, names)
    });
    outcome.unwrap_or_else(|_| {
        PySystemError::new_err("a native kernel panicked").restore(py);
        null_mut()
    })
}
