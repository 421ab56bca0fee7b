//! What crosses a connection, references among it: `relay.session.membrane.crossed` and `relay.session.backlog.weight`.

use crate::frozen::{is_exactly, specified, Names};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple, PyType};

/// Levels that are looked at here, more than a packet has: each takes a piece of the stack.
const LEVELS: usize = 160;
/// What a value weighs at least: `relay.session.backlog`.
const NODE: i64 = 16;

static CROSSED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static COMPOUND: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static WEIGHT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static WIRE_REF: PyOnceLock<Py<PyType>> = PyOnceLock::new();

pub fn crossed_kernel(specification: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let py = specification.py();
    CROSSED.get_or_init(py, || specification.unbind());
    Ok(wrap_pyfunction!(crossed, py)?.into_any())
}

pub fn weight_kernel(specification: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let py = specification.py();
    WEIGHT.get_or_init(py, || specification.unbind());
    Ok(wrap_pyfunction!(weight, py)?.into_any())
}

// ------------------------------------------------------------------------------------------------ across

/// A form with what *cross* says in place of each part that is a *kind*; the same object if there is none.
#[pyfunction]
#[pyo3(signature = (form, kind, cross, /))]
fn crossed<'py>(
    form: Bound<'py, PyAny>,
    kind: Bound<'py, PyType>,
    cross: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let crossing = Crossing { names: Names::of(form.py())?, kind: kind.unbind(), cross };
    crossing.part(&form, 0)
}

struct Crossing<'a, 'py> {
    names: &'a Names,
    kind: Py<PyType>,
    cross: Bound<'py, PyAny>,
}

impl<'py> Crossing<'_, 'py> {
    fn part(&self, form: &Bound<'py, PyAny>, depth: usize) -> PyResult<Bound<'py, PyAny>> {
        if is_exactly(form, &self.kind) {
            return self.cross.call1((form,));
        }
        let py = form.py();
        // SAFETY: it is an object.  A tuple that is not tracked has only parts that lead nowhere.
        let leads = unsafe { ffi::PyObject_GC_IsTracked(form.as_ptr()) != 0 };
        let Ok(parts) = form.cast_exact::<PyTuple>() else { return Ok(form.clone()) };
        if !leads {
            return Ok(form.clone());
        }
        if depth >= LEVELS {
            return specified(py, &CROSSED).call1((form, &self.kind, &self.cross));
        }
        let mut others: Option<Vec<Bound<'py, PyAny>>> = None;
        for (place, part) in parts.iter_borrowed().enumerate() {
            let other = self.part(&part, depth + 1)?;
            match &mut others {
                Some(others) => others.push(other),
                None if other.is(&part) => (),
                None => {
                    let mut changed: Vec<_> = parts.iter_borrowed().take(place).map(|part| part.to_owned()).collect();
                    changed.push(other);
                    others = Some(changed);
                }
            }
        }
        let Some(others) = others else { return Ok(form.clone()) };
        let head = parts.get_borrowed_item(0)?;
        if head.is(&self.names.set) || head.is(&self.names.dict) {
            let compound = COMPOUND.get_or_try_init(py, || -> PyResult<_> {
                Ok(py.import("relay.session.membrane")?.getattr("compound")?.unbind())
            })?;
            return compound.bind(py).call1((PyList::new(py, others)?,));
        }
        Ok(PyTuple::new(py, others)?.into_any())
    }
}

// ------------------------------------------------------------------------------------------------ weights

/// Bytes, about and rather too many, of a value on the wire.
#[pyfunction]
#[pyo3(signature = (form, /))]
fn weight(form: Bound<'_, PyAny>) -> PyResult<i64> {
    weigh(Names::of(form.py())?, &form, 0)
}

/// The same of a part at some depth.
pub fn weigh(names: &Names, form: &Bound<'_, PyAny>, depth: usize) -> PyResult<i64> {
    let py = form.py();
    if let Ok(items) = form.cast_exact::<PyTuple>() {
        if depth >= LEVELS {
            return specified(py, &WEIGHT).call1((form,))?.extract();
        }
        let mut total = NODE * (1 + items.len() as i64);
        for item in items.iter_borrowed() {
            total += weigh(names, &item, depth + 1)? - NODE;
        }
        return Ok(total);
    }
    Ok(NODE
        + if form.is_exact_instance_of::<PyString>() || form.is_exact_instance_of::<PyBytes>() {
            form.len()? as i64
        } else if is_exactly(form, &names.symbol) {
            form.getattr(intern!(py, "name"))?.len()? as i64
        } else if is_exactly(form, wire_ref(py)?) {
            let caveats = form.getattr(intern!(py, "caveats"))?;
            if caveats.is_empty()? { 0 } else { weigh(names, &caveats, depth + 1)? }
        } else {
            0
        })
}

fn wire_ref(py: Python<'_>) -> PyResult<&Py<PyType>> {
    WIRE_REF.get_or_try_init(py, || {
        Ok(py.import("relay.protocol.packets")?.getattr("WireRef")?.cast_into::<PyType>()?.unbind())
    })
}
