//! Values to their frozen forms and back: `syndicate/values/value.py`, `syndicate/values/record.py`.

use crate::object_slots::{answer, Definition, Slot};
use crate::record_class::Made;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The depth from which `freeze` counts, and the length of a list: what goes beyond is left to Python.
const COUNTED: usize = 3;
const WIDE: usize = 255;
/// The record classes that are found without a look-up: more than most messages and assertions are of at a time.
const RECENT: usize = 16;
/// The first integer that has no hash of its own: 2**61 - 1.
const SMALL: i64 = (1 << 61) - 1;

static FREEZE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static THAW: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static RECORD_FREEZER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static NAMES: PyOnceLock<Names> = PyOnceLock::new();

/// What `syndicate.values.value` calls by these names.
pub struct Names {
    pub symbol: Py<PyType>,
    pub reference: Py<PyType>,
    pub tag: Py<PyType>,
    pub seq: Py<PyAny>,
    pub set: Py<PyAny>,
    pub dict: Py<PyAny>,
    pub double: Py<PyAny>,
    pub yes: Py<PyAny>,
    pub no: Py<PyAny>,
    pub minus_two: Py<PyAny>,
    pub freezers: Py<PyDict>,
    items: Py<PyAny>,
    recent: [AtomicPtr<RecordFreezer>; RECENT],
}

impl Names {
    pub fn of(py: Python<'_>) -> PyResult<&Names> {
        NAMES.get_or_try_init(py, || {
            let module = py.import("syndicate.values.value")?;
            let class = |name: &str| -> PyResult<Py<PyType>> { Ok(module.getattr(name)?.cast_into::<PyType>()?.unbind()) };
            let table = |name: &str| -> PyResult<Py<PyDict>> { Ok(module.getattr(name)?.cast_into::<PyDict>()?.unbind()) };
            Ok(Names {
                symbol: class("Symbol")?,
                reference: class("Ref")?,
                tag: class("Tag")?,
                seq: module.getattr("SEQ")?.unbind(),
                set: module.getattr("SET")?.unbind(),
                dict: module.getattr("DICT")?.unbind(),
                double: module.getattr("DOUBLE")?.unbind(),
                yes: module.getattr("TRUE")?.unbind(),
                no: module.getattr("FALSE")?.unbind(),
                minus_two: module.getattr("MINUS_TWO")?.unbind(),
                freezers: table("freezers")?,
                items: module.getattr("_freeze_items")?.unbind(),
                recent: [const { AtomicPtr::new(null_mut()) }; RECENT],
            })
        })
    }

    /// What makes the forms of *class*, if that was asked for of late: half of what it takes to look it up.
    #[inline]
    pub fn recent(&self, class: *mut ffi::PyTypeObject) -> Option<&'static RecordFreezer> {
        // SAFETY: what is there has come from `look_up`, and lasts as long as the program.
        let record = unsafe { self.recent[place_of(class)].load(Ordering::Relaxed).as_ref() };
        record.filter(|record| record.class.as_ptr() == class.cast())
    }

    /// What makes the forms of *class*, if it is a record class.
    #[inline]
    pub fn record_of(&self, class: &Bound<'_, PyType>) -> PyResult<Option<&'static RecordFreezer>> {
        let kind = class.as_type_ptr();
        if let Some(record) = self.recent(kind) {
            return Ok(Some(record));
        }
        self.look_up(class)?;
        Ok(self.recent(kind))
    }

    /// What makes the forms of *class*.
    pub fn look_up<'py>(&self, class: &Bound<'py, PyType>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let freezer = self.freezers.bind(class.py()).get_item(class)?;
        if let Some(Ok(record)) = freezer.as_ref().map(Bound::cast_exact::<RecordFreezer>) {
            self.recent[place_of(class.as_type_ptr())].store((&raw const *record.get()).cast_mut(), Ordering::Relaxed);
        }
        Ok(freezer)
    }

    /// The form of a double.
    pub fn double_of<'py>(&self, bytes: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyAny>> {
        let form = PyTuple::new(bytes.py(), [self.double.bind(bytes.py()), bytes.as_any()])?.into_any();
        // SAFETY: bytes are a leaf, and the tag lasts as long as the program.
        unsafe { untrack(&form) };
        Ok(form)
    }

    /// Whether it is one of the forms that last as long as the program.
    #[inline]
    pub fn is_constant(&self, form: &Bound<'_, PyAny>) -> bool {
        form.is(&self.yes) || form.is(&self.no) || form.is(&self.minus_two)
    }
}

/// Where a class is among those that were asked for of late.
#[inline]
fn place_of(class: *mut ffi::PyTypeObject) -> usize {
    (class as usize >> 6) % RECENT
}

/// Whether *object* is of exactly this class.
#[inline]
pub fn is_exactly(object: &Bound<'_, PyAny>, class: &Py<PyType>) -> bool {
    // SAFETY: an object has a type.
    unsafe { ffi::Py_TYPE(object.as_ptr()) == class.as_ptr() as *mut ffi::PyTypeObject }
}

pub fn freeze_kernel(specification: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let py = specification.py();
    FREEZE.get_or_init(py, || specification.unbind());
    Ok(wrap_pyfunction!(freeze, py)?.into_any())
}

pub fn thaw_kernel(specification: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let py = specification.py();
    THAW.get_or_init(py, || specification.unbind());
    Ok(wrap_pyfunction!(thaw, py)?.into_any())
}

pub fn record_kernel(specification: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let py = specification.py();
    RECORD_FREEZER.get_or_init(py, || specification.unbind());
    Ok(wrap_pyfunction!(record_freezer, py)?.into_any())
}

/// The Python function that specifies a kernel.
pub fn specified<'py>(py: Python<'py>, function: &PyOnceLock<Py<PyAny>>) -> Bound<'py, PyAny> {
    function.get(py).expect("a kernel is made of its specification").bind(py).clone()
}

// ------------------------------------------------------------------------------------------------ freeze

/// The frozen form of a value; raises NotAValue if it has none, is cyclic, too deep or too large.
#[pyfunction]
#[pyo3(signature = (value, depth = None))]
fn freeze<'py>(value: Bound<'py, PyAny>, depth: Option<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    match depth {
        None => frozen(Names::of(py)?, &value, 0),
        Some(depth) => match depth.cast_exact::<PyInt>().ok().and_then(|depth| depth.extract::<usize>().ok()) {
            Some(depth) if depth < COUNTED => frozen(Names::of(py)?, &value, depth),
            _ => specified(py, &FREEZE).call1((value, depth)),
        },
    }
}

/// Whether a part of a form leads to nothing that the collector looks for: then neither does a tuple of such.
#[inline]
pub fn is_leaf(names: &Names, part: &Bound<'_, PyAny>) -> bool {
    // SAFETY: it is an object; an untracked tuple holds leaves only.
    unsafe { ffi::PyObject_GC_IsTracked(part.as_ptr()) == 0 || is_exactly(part, &names.symbol) || names.is_constant(part) }
}

/// Take a form of leaves from the collector's list: no cycle goes through it, and it need not be looked at again.
#[inline]
pub unsafe fn untrack(form: &Bound<'_, PyAny>) {
    ffi::PyObject_GC_UnTrack(form.as_ptr().cast());
}

/// A compound, taken from the collector's list if it consists of leaves.
#[pyfunction]
#[pyo3(signature = (form, /))]
pub fn sealed(form: Bound<'_, PyTuple>) -> PyResult<Bound<'_, PyTuple>> {
    let names = Names::of(form.py())?;
    if form.iter_borrowed().all(|part| is_leaf(names, &part) || is_exactly(&part, &names.tag)) {
        // SAFETY: they are leaves, or tags, which last as long as the program.
        unsafe { untrack(form.as_any()) };
    }
    Ok(form)
}

/// The frozen form of a part at *depth*, below COUNTED or, for an atom, anywhere.
pub fn frozen<'py>(names: &Names, value: &Bound<'py, PyAny>, depth: usize) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    if value.is_exact_instance_of::<PyString>() || is_exactly(value, &names.symbol) {
        return Ok(value.clone());
    }
    if value.is_exact_instance_of::<PyInt>() {
        return integer(names, value);
    }
    if is_exactly(value, &names.reference) || value.is_exact_instance_of::<PyBytes>() {
        return Ok(value.clone());
    }
    if value.is_exact_instance_of::<PyBool>() {
        return Ok(if value.is_truthy()? { &names.yes } else { &names.no }.bind(py).clone());
    }
    if let Ok(number) = value.cast_exact::<PyFloat>() {
        let bytes = PyBytes::new(py, &number.value().to_be_bytes());
        return names.double_of(&bytes);
    }
    if depth >= COUNTED {
        return specified(py, &FREEZE).call1((value, depth));
    }
    // SAFETY: an object has a type.
    if let Some(record) = names.recent(unsafe { ffi::Py_TYPE(value.as_ptr()) }) {
        return record.freeze(names, value, depth);
    }
    let Some(freezer) = names.look_up(&value.get_type())? else {
        return specified(py, &FREEZE).call1((value, depth)); // a subclass, or no value
    };
    if let Ok(record) = freezer.cast_exact::<RecordFreezer>() {
        return record.get().freeze(names, value, depth);
    }
    if freezer.is(&names.items) {
        if let Ok(list) = value.cast_exact::<PyList>() {
            if list.len() <= WIDE {
                return sequence(names, list.iter(), list.len(), depth);
            }
        } else if let Ok(tuple) = value.cast_exact::<PyTuple>() {
            if tuple.len() <= WIDE {
                return sequence(names, tuple.iter(), tuple.len(), depth);
            }
        }
    }
    freezer.call1((value, depth))
}

#[inline]
fn integer<'py>(names: &Names, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    let mut overflow = 0;
    // SAFETY: it is an int, for which this raises nothing.
    let number = unsafe { ffi::PyLong_AsLongLongAndOverflow(value.as_ptr(), &mut overflow) };
    if overflow == 0 && (-1..SMALL).contains(&number) || overflow == 0 && -SMALL < number && number < -2 {
        return Ok(value.clone());
    }
    if overflow == 0 && number == -2 {
        return Ok(names.minus_two.bind(py).clone());
    }
    specified(py, &FREEZE).call1((value, 0))
}

fn sequence<'py>(
    names: &Names,
    items: impl Iterator<Item = Bound<'py, PyAny>>,
    length: usize,
    depth: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let mut forms = Vec::with_capacity(length + 1);
    let mut py = None;
    let mut leaves = true;
    for item in items {
        py = Some(item.py());
        let form = frozen(names, &item, depth + 1)?;
        leaves = leaves && is_leaf(names, &form);
        forms.push(form);
    }
    // SAFETY: this runs with the interpreter attached, as its caller does.
    let py = py.unwrap_or_else(|| unsafe { Python::assume_attached() });
    forms.insert(0, names.seq.bind(py).clone());
    let form = PyTuple::new(py, forms)?.into_any();
    if leaves {
        // SAFETY: all its parts are leaves, and SEQ lasts as long as the program.
        unsafe { untrack(&form) };
    }
    Ok(form)
}

/// What makes the frozen forms of one record class's instances, as the function that the specification makes does.
#[pyclass(frozen, module = "syndicate._native")]
pub struct RecordFreezer {
    class: Py<PyType>,
    label: Py<PyAny>,
    pub fields: Vec<Slot>,
    specification: Py<PyAny>,
    pub made: Made,
}

impl RecordFreezer {
    #[inline]
    pub fn freeze<'py>(&self, names: &Names, record: &Bound<'py, PyAny>, depth: usize) -> PyResult<Bound<'py, PyAny>> {
        let py = record.py();
        // SAFETY: a tuple of this length, of which each place is filled before anybody else sees it; where that fails
        // it is released, and its empty places with it.
        unsafe {
            let form = Bound::from_owned_ptr_or_err(py, ffi::PyTuple_New(self.fields.len() as isize + 1))?;
            let mut leaves = true;
            ffi::PyTuple_SET_ITEM(form.as_ptr(), 0, self.label.clone_ref(py).into_ptr());
            for (place, slot) in self.fields.iter().enumerate() {
                let part = slot.get(record)?;
                if part.is_none() {
                    return self.specification.bind(py).call1((record, depth)); // which says what is wrong
                }
                let part = frozen(names, &part, depth + 1)?;
                leaves = leaves && is_leaf(names, &part);
                ffi::PyTuple_SET_ITEM(form.as_ptr(), place as isize + 1, part.into_ptr());
            }
            if leaves {
                untrack(&form);
            }
            Ok(form)
        }
    }
}

#[pymethods]
impl RecordFreezer {
    fn __call__<'py>(&self, record: Bound<'py, PyAny>, depth: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = record.py();
        match depth.cast_exact::<PyInt>().ok().and_then(|depth| depth.extract::<usize>().ok()) {
            Some(depth) if depth < COUNTED => self.freeze(Names::of(py)?, &record, depth),
            _ => self.specification.bind(py).call1((record, depth)),
        }
    }
}

/// A function from an instance to its frozen form.
#[pyfunction]
fn record_freezer<'py>(
    class: Bound<'py, PyType>,
    label: Bound<'py, PyAny>,
    names: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    let specification = specified(py, &RECORD_FREEZER).call1((&class, &label, &names))?;
    let mut fields = Vec::new();
    for name in names.try_iter()? {
        match Slot::of(&class, name?.cast::<PyString>()?.to_str()?) {
            Ok(slot) => fields.push(slot),
            Err(error) if error.is_instance_of::<PyTypeError>(py) => return Ok(specification),
            Err(error) => return Err(error),
        }
    }
    let (label, specification) = (label.unbind(), specification.unbind());
    let freezer = RecordFreezer { class: class.unbind(), label, fields, specification, made: Made::new() };
    let freezer = Bound::new(py, freezer)?.into_any();
    std::mem::forget(freezer.clone()); // it lasts, as its class does, which values are made of
    Ok(freezer)
}

// ------------------------------------------------------------------------------------------------ making records

/// Stores the fields of new instances of one record class.
#[pyclass(frozen, module = "syndicate._native")]
struct RecordStore {
    fields: Vec<Slot>,
}

static STORE: Definition = Definition(ffi::PyMethodDef {
    ml_name: c"store".as_ptr(),
    ml_meth: ffi::PyMethodDefPointer { PyCFunctionFast: store },
    ml_flags: ffi::METH_FASTCALL,
    ml_doc: c"Store all fields of an instance.".as_ptr(),
});

/// The generated `__init__` calls it with an instance and a value for each field: their number is right.
unsafe extern "C" fn store(
    owner: *mut ffi::PyObject,
    arguments: *mut *mut ffi::PyObject,
    count: isize,
) -> *mut ffi::PyObject {
    let py = Python::assume_attached();
    answer(py, || {
        let store = Bound::from_borrowed_ptr(py, owner).cast_into_exact::<RecordStore>()?;
        let fields = &store.get().fields;
        if count != fields.len() as isize + 1 {
            return Err(PyTypeError::new_err("store() takes an instance and a value for each field"));
        }
        let record = Bound::from_borrowed_ptr(py, *arguments);
        for (place, slot) in fields.iter().enumerate() {
            slot.set(&record, Bound::from_borrowed_ptr(py, *arguments.add(place + 1)))?;
        }
        Ok(())
    })
}

/// A function that stores all fields of an instance at once.
#[pyfunction]
pub fn store_of<'py>(class: Bound<'py, PyType>, names: Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = class.py();
    let mut fields = Vec::new();
    for name in names.try_iter()? {
        match Slot::of(&class, name?.cast::<PyString>()?.to_str()?) {
            Ok(slot) => fields.push(slot),
            Err(_) => return Ok(None),
        }
    }
    let store = Bound::new(py, RecordStore { fields })?;
    // SAFETY: the definition is static, and the function owns what it is bound to.
    unsafe {
        let function = ffi::PyCFunction_NewEx((&raw const STORE.0).cast_mut(), store.as_ptr(), std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(py, function).map(Some)
    }
}

// ------------------------------------------------------------------------------------------------ thaw

/// The value of a frozen form.
#[pyfunction]
fn thaw(form: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    thawed(Names::of(form.py())?, &form, 0)
}

/// The value of a part at *depth*; what is nested deeper than a few levels, and what is no sequence, thaws in Python.
pub fn thawed<'py>(names: &Names, form: &Bound<'py, PyAny>, depth: usize) -> PyResult<Bound<'py, PyAny>> {
    let py = form.py();
    let Ok(tuple) = form.cast_exact::<PyTuple>() else {
        return Ok(form.clone());
    };
    if tuple.is_empty() || depth > COUNTED || !tuple.get_borrowed_item(0)?.is(&names.seq) {
        return specified(py, &THAW).call1((form,));
    }
    let mut items = Vec::with_capacity(tuple.len() - 1);
    for part in tuple.iter_borrowed().skip(1) {
        items.push(thawed(names, &part, depth + 1)?);
    }
    Ok(PyTuple::new(py, items)?.into_any())
}
