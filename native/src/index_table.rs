//! The methods of a table of the index: `Table` in `syndicate/index/trie.py` specifies them.

use crate::delivery::{ActorNames, Telling, ASSERT, MESSAGE, RETRACT};
use crate::frozen::{is_leaf, thawed, untrack, Names};
use crate::object_slots::{set_default, Slot};
use pyo3::exceptions::PyKeyError;
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCFunction, PyDict, PyInt, PyTuple, PyType};

static INDEX_NAMES: PyOnceLock<IndexNames> = PyOnceLock::new();

/// What the package `syndicate.index` calls by these names.
struct IndexNames {
    missing: Py<PyAny>,
    child: Py<PyAny>,
    signs: Py<PyAny>,
    notices: Slot,
    count: Slot,
    notice_values: Slot,
    notice_captures: Slot,
    raw: Slot,
}

impl IndexNames {
    fn of(py: Python<'_>) -> PyResult<&IndexNames> {
        INDEX_NAMES.get_or_try_init(py, || {
            let path = py.import("syndicate.index.path")?;
            let trie = py.import("syndicate.index.trie")?;
            let handler = trie.getattr("Handler")?.cast_into::<PyType>()?;
            let notice = trie.getattr("Notice")?.cast_into::<PyType>()?;
            Ok(IndexNames {
                missing: path.getattr("MISSING")?.unbind(),
                child: path.getattr("child")?.unbind(),
                signs: py.import("syndicate.index.matching")?.getattr("signs")?.unbind(),
                notices: Slot::of(&handler, "notices")?,
                raw: Slot::of(&handler, "raw")?,
                count: Slot::of(&notice, "count")?,
                notice_values: Slot::of(&notice, "values")?,
                notice_captures: Slot::of(&notice, "captures")?,
            })
        })
    }
}

/// A step down into a compound: a place, or the key of a dictionary.
enum Step {
    Place(usize),
    Key(Py<PyAny>),
}

type Path = Vec<Step>;

fn paths(written: &Bound<'_, PyAny>) -> PyResult<Vec<Path>> {
    written.try_iter()?.map(|path| steps(&path?)).collect()
}

fn steps(written: &Bound<'_, PyAny>) -> PyResult<Path> {
    let mut path = Vec::new();
    for step in written.try_iter()? {
        let step = step?;
        path.push(match step.cast_exact::<PyInt>() {
            Ok(place) => Step::Place(place.extract()?),
            Err(_) => Step::Key(step.unbind()),
        });
    }
    Ok(path)
}

/// What is at a path of a form that passed the node's shape; None if there is nothing.
#[inline]
fn project<'py>(form: &Bound<'py, PyAny>, path: &Path) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = form.py();
    let mut part = form;
    let mut made; // by Python, to step on from
    for step in path {
        part = match step {
            Step::Place(place) => match part.cast_exact::<PyTuple>().map(|compound| compound.as_slice().get(place + 1)) {
                Ok(Some(part)) => part,
                _ => return Ok(None),
            },
            Step::Key(key) => {
                let names = IndexNames::of(py)?;
                made = names.child.bind(py).call1((part, key))?;
                if made.is(&names.missing) {
                    return Ok(None);
                }
                &made
            }
        };
    }
    Ok(Some(part.clone()))
}

/// What is at all of these paths, as a tuple; None if one does not exist.
#[inline]
fn parts<'py>(form: &Bound<'py, PyAny>, paths: &[Path]) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let py = form.py();
    // SAFETY: each place is filled before anybody else sees the tuple, or it is released.
    unsafe {
        let tuple = Bound::from_owned_ptr_or_err(py, ffi::PyTuple_New(paths.len() as isize))?;
        for (place, path) in paths.iter().enumerate() {
            match project(form, path)? {
                Some(part) => ffi::PyTuple_SET_ITEM(tuple.as_ptr(), place as isize, part.into_ptr()),
                None => return Ok(None),
            };
        }
        Ok(Some(tuple.cast_into_unchecked()))
    }
}

/// Take captures that lead nowhere from the collector's list, as a form that does: whether they are such, and atoms.
#[inline]
fn untrack_atoms(names: &Names, captures: &Bound<'_, PyTuple>) -> bool {
    let atoms = captures.iter_borrowed().all(|part| !part.is_exact_instance_of::<PyTuple>() && is_leaf(names, &part));
    if atoms {
        // SAFETY: all its parts are leaves.
        unsafe { untrack(captures.as_any()) };
    }
    atoms
}

/// The captured values: the very tuple if all of them are their own frozen forms.
#[inline]
fn values_of<'py>(captures: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyTuple>> {
    let py = captures.py();
    if captures.iter_borrowed().all(|part| !part.is_exact_instance_of::<PyTuple>()) {
        return Ok(captures.clone());
    }
    let names = Names::of(py)?;
    let values = captures.iter_borrowed().map(|part| thawed(names, &part, 0)).collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, values)
}

/// What atoms of a class are known by: see `signs`.
struct Class {
    plain: Option<Py<PyAny>>,
    tag: Option<Py<PyAny>>,
}

impl Class {
    fn of(name: &Bound<'_, PyAny>) -> PyResult<Class> {
        let (plain, tag) = IndexNames::of(name.py())?.signs.bind(name.py()).call1((name,))?.extract()?;
        Ok(Class { plain, tag })
    }

    /// Whether a form is an atom of it: `is_of_class`.
    #[inline]
    fn has(&self, form: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(match form.cast_exact::<PyTuple>() {
            Ok(compound) => match &self.tag {
                Some(tag) => compound.as_slice().first().is_some_and(|head| head.is(tag)),
                None => false,
            },
            Err(_) => self.plain.as_ref().is_some_and(|plain| form.get_type().is(plain)),
        })
    }
}

/// What a table does with values: see `Table` and `interpret`.
#[pyclass(frozen, module = "syndicate._native")]
pub struct Program {
    places: Vec<Path>,
    checks: Vec<(Path, Option<Class>)>,
    captures: Vec<Path>,
    values: Option<Py<PyDict>>, // None: nothing is kept
    handlers: Py<PyDict>,
    notice: Py<PyAny>,
    tell: Py<PyAny>,
    telling: Option<Py<Telling>>,
}

/// A function that makes a table's `add`, `remove`, `send`, `fill` and `recall`.
#[pyfunction]
pub fn factory<'py>(
    places: Bound<'py, PyAny>,
    checks: Bound<'py, PyAny>,
    captures: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = places.py();
    Ok(Bound::new(py, Factory { places: places.unbind(), checks: checks.unbind(), captures: captures.unbind() })?.into_any())
}

#[pyclass(frozen, module = "syndicate._native")]
struct Factory {
    places: Py<PyAny>,
    checks: Py<PyAny>,
    captures: Py<PyAny>,
}

#[pymethods]
impl Factory {
    fn __call__<'py>(
        &self,
        table: Bound<'py, PyAny>,
        notice: Bound<'py, PyAny>,
        tell: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let py = table.py();
        let mut checks = Vec::new();
        for check in self.checks.bind(py).try_iter()? {
            let (path, kind): (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>) = check?.extract()?;
            checks.push((steps(&path)?, kind.map(|name| Class::of(&name)).transpose()?));
        }
        let program = Program {
            places: paths(self.places.bind(py))?,
            checks,
            captures: paths(self.captures.bind(py))?,
            values: table.getattr("values")?.extract()?,
            handlers: table.getattr("handlers")?.cast_into::<PyDict>()?.unbind(),
            notice: notice.unbind(),
            telling: Telling::of(&tell),
            tell: tell.unbind(),
        };
        let program = Bound::new(py, program)?;
        let methods = ["add", "remove", "send", "fill", "recall"].map(|name| program.getattr(name));
        PyTuple::new(py, methods.into_iter().collect::<PyResult<Vec<_>>>()?)
    }
}

impl Program {
    /// The program whose method `send` this is.
    #[inline]
    pub fn of<'a, 'py>(method: &'a Bound<'py, PyAny>) -> Option<Bound<'py, Program>> {
        method.cast_exact::<PyCFunction>().ok()?;
        // SAFETY: it is a built-in function; what it is bound to is borrowed from it, or null.
        unsafe {
            let owner = ffi::PyCFunction_GetSelf(method.as_ptr());
            if owner.is_null() {
                return None;
            }
            Bound::from_borrowed_ptr(method.py(), owner).cast_into_exact::<Program>().ok()
        }
    }

    /// The constants of a value, bare if there is one place; None if a place or a check fails.
    #[inline]
    fn key<'py>(&self, form: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        for (path, kind) in &self.checks {
            let Some(part) = project(form, path)? else { return Ok(None) };
            if let Some(class) = kind {
                if !class.has(&part)? {
                    return Ok(None);
                }
            }
        }
        if let [place] = &self.places[..] {
            return project(form, place);
        }
        Ok(parts(form, &self.places)?.map(Bound::into_any))
    }

    #[inline]
    fn handler<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.handlers.bind(py).get_item(key)
    }

    #[inline]
    fn tell<'py>(
        &self,
        kind: &Py<PyAny>,
        handler: Bound<'py, PyAny>,
        captures: &Bound<'py, PyTuple>,
        values: Option<Bound<'py, PyTuple>>,
        notice: Option<Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let py = handler.py();
        match &self.telling {
            Some(telling) => telling.get().tell(kind, &handler, captures, values, notice),
            None => self.tell.bind(py).call1((kind, handler, captures, values, notice)).map(|_| ()),
        }
    }

    #[inline]
    pub fn sent<'py>(&self, form: &Bound<'py, PyAny>) -> PyResult<()> {
        let py = form.py();
        let Some(key) = self.key(form)? else { return Ok(()) };
        let Some(handler) = self.handler(py, &key)? else { return Ok(()) };
        let Some(captures) = parts(form, &self.captures)? else { return Ok(()) };
        let values = if self.is_raw(&handler)? { None } else { Some(values_of(&captures)?) };
        self.tell(MESSAGE.of(py), handler, &captures, values, None)
    }

    /// How many observers a message would reach: `ConstantTable.audience`.
    pub fn audience(&self, form: &Bound<'_, PyAny>) -> PyResult<i64> {
        let py = form.py();
        let Some(key) = self.key(form)? else { return Ok(0) };
        let Some(handler) = self.handler(py, &key)? else { return Ok(0) };
        let observers = ActorNames::of(py)?.observers.get(&handler)?;
        Ok(match observers.cast_exact::<PyDict>() {
            Ok(several) => several.len() as i64,
            Err(_) => i64::from(!observers.is_none()),
        })
    }

    /// Whether nobody wants the values of captures.
    #[inline]
    fn is_raw(&self, handler: &Bound<'_, PyAny>) -> PyResult<bool> {
        IndexNames::of(handler.py())?.raw.holds(handler)
    }

    fn keep<'py>(&self, key: &Bound<'py, PyAny>, form: &Bound<'py, PyAny>) -> PyResult<()> {
        let py = form.py();
        let Some(values) = &self.values else { return Ok(()) };
        let values = values.bind(py);
        match values.get_item(key)? {
            None => values.set_item(key, form),
            Some(there) => match there.cast_exact::<PyDict>() {
                Ok(several) => several.set_item(form, py.None()),
                Err(_) => {
                    let several = PyDict::new(py);
                    several.set_item(there, py.None())?;
                    several.set_item(form, py.None())?;
                    values.set_item(key, several)
                }
            },
        }
    }

    fn drop_value<'py>(&self, key: &Bound<'py, PyAny>, form: &Bound<'py, PyAny>) -> PyResult<()> {
        let Some(values) = &self.values else { return Ok(()) };
        let values = values.bind(form.py());
        if let Some(there) = values.get_item(key)? {
            if let Ok(several) = there.cast_exact::<PyDict>() {
                if several.len() > 1 {
                    return several.del_item(form);
                }
            }
        }
        values.del_item(key)
    }

    /// The values of a notice, made once, unless nobody wants them.
    #[inline]
    fn values_for<'py>(
        &self,
        names: &IndexNames,
        handler: &Bound<'py, PyAny>,
        captures: &Bound<'py, PyTuple>,
        notice: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        if self.is_raw(handler)? {
            return Ok(None);
        }
        let there = names.notice_values.get(notice)?;
        if !there.is_none() {
            return Ok(Some(there.cast_into::<PyTuple>()?));
        }
        let values = values_of(captures)?;
        names.notice_values.set(notice, values.clone().into_any())?;
        Ok(Some(values))
    }

    /// Count one more of these captures; the notice if it is the first.
    fn counted<'py>(
        &self,
        names: &IndexNames,
        notices: &Bound<'py, PyDict>,
        captures: &Bound<'py, PyTuple>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = captures.py();
        let notice = if names.count.is_of(self.notice.bind(py)) {
            let notice = names.count.allocate(py)?;
            names.notice_captures.set(&notice, captures.clone().into_any())?;
            names.count.set(&notice, 1i64.into_pyobject(py)?.into_any())?;
            if untrack_atoms(Names::of(py)?, captures) {
                names.notice_values.set(&notice, captures.clone().into_any())?;
                // SAFETY: it holds these captures, which are their own values, and a number: leaves.
                unsafe { untrack(&notice) };
            } else {
                names.notice_values.set(&notice, py.None().into_bound(py))?;
            }
            notice
        } else {
            self.notice.bind(py).call1((captures,))?
        };
        match set_default(notices, captures, &notice)? {
            None => Ok(Some(notice)),
            Some(there) => {
                let count: i64 = names.count.get(&there)?.extract()?;
                names.count.set(&there, (count + 1).into_pyobject(py)?.into_any())?;
                Ok(None)
            }
        }
    }
}

#[pymethods]
impl Program {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.values)?;
        visit.call(&self.handlers)?;
        visit.call(&self.telling)?;
        visit.call(&self.tell)
    }

    fn send(&self, form: Bound<'_, PyAny>) -> PyResult<()> {
        self.sent(&form)
    }

    pub fn add(&self, form: Bound<'_, PyAny>) -> PyResult<()> {
        let py = form.py();
        let Some(key) = self.key(&form)? else { return Ok(()) };
        self.keep(&key, &form)?;
        let Some(handler) = self.handler(py, &key)? else { return Ok(()) };
        let Some(captures) = parts(&form, &self.captures)? else { return Ok(()) };
        let names = IndexNames::of(py)?;
        let mut notices = names.notices.get(&handler)?;
        if notices.is_none() {
            notices = PyDict::new(py).into_any();
            names.notices.set(&handler, notices.clone())?;
        }
        if let Some(notice) = self.counted(names, notices.cast::<PyDict>()?, &captures)? {
            let values = self.values_for(names, &handler, &captures, &notice)?;
            self.tell(ASSERT.of(py), handler, &captures, values, Some(notice))?;
        }
        Ok(())
    }

    pub fn remove(&self, form: Bound<'_, PyAny>) -> PyResult<()> {
        let py = form.py();
        let Some(key) = self.key(&form)? else { return Ok(()) };
        self.drop_value(&key, &form)?;
        let Some(handler) = self.handler(py, &key)? else { return Ok(()) };
        let Some(captures) = parts(&form, &self.captures)? else { return Ok(()) };
        let names = IndexNames::of(py)?;
        let notices = names.notices.get(&handler)?.cast_into::<PyDict>()?;
        let Some(notice) = notices.get_item(&captures)? else {
            return Err(PyKeyError::new_err((captures.unbind(),)));
        };
        let count: i64 = names.count.get(&notice)?.extract()?;
        if count > 1 {
            return names.count.set(&notice, (count - 1).into_pyobject(py)?.into_any());
        }
        notices.del_item(names.notice_captures.get(&notice)?)?; // the very key, which need not be compared
        let values = self.values_for(names, &handler, &captures, &notice)?;
        self.tell(RETRACT.of(py), handler, &captures, values, Some(notice))
    }

    fn fill(&self, forms: Bound<'_, PyAny>) -> PyResult<()> {
        for form in forms.try_iter()? {
            let form = form?;
            if let Some(key) = self.key(&form)? {
                self.keep(&key, &form)?;
            }
        }
        Ok(())
    }

    fn recall<'py>(&self, notices: Bound<'py, PyDict>, forms: Bound<'py, PyAny>) -> PyResult<()> {
        let names = IndexNames::of(forms.py())?;
        for form in forms.try_iter()? {
            let form = form?;
            if self.key(&form)?.is_none() {
                continue;
            }
            if let Some(captures) = parts(&form, &self.captures)? {
                self.counted(names, &notices, &captures)?;
            }
        }
        Ok(())
    }
}
