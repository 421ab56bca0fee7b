//! How a value gets into an index: `Gate` in `syndicate/index/index.py` specifies it.

use crate::index_table::Program;
use pyo3::exceptions::PyKeyError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use crate::object_slots::{set_default, Slot};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static TABLE_NAMES: PyOnceLock<TableNames> = PyOnceLock::new();

struct TableNames {
    bag: Py<PyType>,
    add: Slot,
    remove: Slot,
    send: Slot,
}

impl TableNames {
    fn of(py: Python<'_>) -> PyResult<&TableNames> {
        TABLE_NAMES.get_or_try_init(py, || {
            let table = py.import("syndicate.index.trie")?.getattr("ConstantTable")?.cast_into::<PyType>()?;
            Ok(TableNames {
                bag: py.import("syndicate.index.bag")?.getattr("Bag")?.cast_into::<PyType>()?.unbind(),
                add: Slot::of(&table, "add")?,
                remove: Slot::of(&table, "remove")?,
                send: Slot::of(&table, "send")?,
            })
        })
    }
}

/// The values of an index by their constructors, and the tables that each of them must be shown.
#[pyclass(frozen, module = "syndicate._native")]
pub struct Gate {
    #[pyo3(get)]
    bags: Py<PyDict>,
    #[pyo3(get)]
    tables: Py<PyDict>,

    index: Py<PyAny>,
    classes: Py<PyDict>,
    added: AtomicU64,
    removed: AtomicU64,
    sent: AtomicU64,
}

/// One more; the interpreter lets nobody else count meanwhile.
#[inline]
fn one_more(count: &AtomicU64) {
    count.store(count.load(Relaxed) + 1, Relaxed);
}

#[inline]
fn head_of<'py>(form: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match form.cast_exact::<PyTuple>() {
        Ok(tuple) => tuple.as_slice().first().map_or_else(|| tuple.get_item(0), |head| Ok(head.clone())),
        Err(_) => Ok(form.py().None().into_bound(form.py())),
    }
}

impl Gate {
    /// The tables that a value of this constructor is shown; None if its further shape matters.
    #[inline]
    fn tables_of<'py>(&self, head: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let py = head.py();
        let tables = match self.tables.bind(py).get_item(head)? {
            Some(tables) => tables,
            None => self.index.bind(py).getattr(intern!(py, "otherwise"))?,
        };
        Ok(if tables.is_none() { None } else { Some(tables.cast_into::<PyTuple>()?) })
    }

    /// How many observers a message would reach: `Index.audience`.
    pub fn audience(&self, form: &Bound<'_, PyAny>) -> PyResult<i64> {
        let py = form.py();
        let Some(tables) = self.tables_of(&head_of(form)?)? else {
            return self.index.bind(py).call_method1(intern!(py, "audience"), (form,))?.extract();
        };
        let names = TableNames::of(py)?;
        let mut count = 0;
        for table in tables.iter() {
            count += match Program::of(&names.send.get(&table)?) {
                Some(program) => program.get().audience(form)?,
                None => table.call_method1(intern!(py, "audience"), (form,))?.extract()?,
            };
        }
        Ok(count)
    }
}

#[pymethods]
impl Gate {
    #[new]
    fn new(py: Python<'_>, index: Py<PyAny>, classes: Py<PyDict>) -> Gate {
        Gate {
            bags: PyDict::new(py).unbind(),
            tables: PyDict::new(py).unbind(),
            index,
            classes,
            added: AtomicU64::new(0),
            removed: AtomicU64::new(0),
            sent: AtomicU64::new(0),
        }
    }

    #[getter]
    fn counts(&self) -> (u64, u64, u64) {
        (self.added.load(Relaxed), self.removed.load(Relaxed), self.sent.load(Relaxed))
    }

    pub fn send(&self, form: Bound<'_, PyAny>) -> PyResult<()> {
        let py = form.py();
        one_more(&self.sent);
        let head = head_of(&form)?;
        let Some(tables) = self.tables_of(&head)? else {
            return self.index.bind(py).call_method1(intern!(py, "send_beyond"), (form, head)).map(|_| ());
        };
        let names = TableNames::of(py)?;
        for table in tables.iter() {
            let method = names.send.get(&table)?;
            match Program::of(&method) {
                Some(program) => program.get().sent(&form)?,
                None => method.call1((&form,)).map(|_| ())?,
            }
        }
        Ok(())
    }

    /// Count a value that was added and removed, and shown to nobody.
    pub fn passed(&self) {
        one_more(&self.added);
        one_more(&self.removed);
    }

    pub fn add(&self, form: Bound<'_, PyAny>) -> PyResult<bool> {
        let py = form.py();
        one_more(&self.added);
        let names = TableNames::of(py)?;
        let head = head_of(&form)?;
        let bags = self.bags.bind(py);
        let bag = match bags.get_item(&head)? {
            Some(bag) => bag,
            None => {
                let bag = names.bag.bind(py).call0()?;
                bags.set_item(&head, &bag)?;
                bag
            }
        };
        let bag = bag.cast_into::<PyDict>()?;
        if let Some(count) = set_default(&bag, &form, &1i64.into_pyobject(py)?.into_any())? {
            bag.set_item(&form, count.extract::<i64>()? + 1)?;
            return Ok(false);
        }
        match self.tables_of(&head)? {
            Some(tables) => {
                for table in tables.iter() {
                    let method = names.add.get(&table)?;
                    match Program::of(&method) {
                        Some(program) => program.get().add(form.clone())?,
                        None => method.call1((&form,)).map(|_| ())?,
                    }
                }
            }
            None => {
                self.index.bind(py).call_method1(intern!(py, "add_beyond"), (form, head))?;
            }
        }
        Ok(true)
    }

    pub fn remove(&self, form: Bound<'_, PyAny>) -> PyResult<bool> {
        let py = form.py();
        let names = TableNames::of(py)?;
        let head = head_of(&form)?;
        let bags = self.bags.bind(py);
        let Some(bag) = bags.get_item(&head)? else {
            return Err(PyKeyError::new_err((head.unbind(),)));
        };
        let bag = bag.cast_into::<PyDict>()?;
        let Some(count) = bag.get_item(&form)? else {
            return Err(PyKeyError::new_err((form.unbind(),)));
        };
        let count: i64 = count.extract()?;
        one_more(&self.removed);
        if count > 1 {
            bag.set_item(&form, count - 1)?;
            return Ok(false);
        }
        bag.del_item(&form)?;
        if bag.is_empty() && !self.classes.bind(py).contains(&head)? {
            bags.del_item(&head)?;
        }
        match self.tables_of(&head)? {
            Some(tables) => {
                for table in tables.iter() {
                    let method = names.remove.get(&table)?;
                    match Program::of(&method) {
                        Some(program) => program.get().remove(form.clone())?,
                        None => method.call1((&form,)).map(|_| ())?,
                    }
                }
            }
            None => {
                self.index.bind(py).call_method1(intern!(py, "remove_beyond"), (form, head))?;
            }
        }
        Ok(true)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.bags)?;
        visit.call(&self.tables)?;
        visit.call(&self.index)?;
        visit.call(&self.classes)
    }
}

