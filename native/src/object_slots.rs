//! Fields of Python objects by their place: a read of a slot costs two nanoseconds where an attribute costs thirty.

use pyo3::exceptions::{PySystemError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyString, PyType};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::null_mut;

/// CPython's `PyMemberDescrObject`, which `pyo3::ffi` does not have.
#[repr(C)]
struct MemberDescriptor {
    base: ffi::PyObject,
    class: *mut ffi::PyTypeObject,
    name: *mut ffi::PyObject,
    qualified_name: *mut ffi::PyObject,
    member: *mut ffi::PyMemberDef,
}

/// One slot of one class.  Where the object is of another class it is an attribute like any other.
pub struct Slot {
    class: Py<PyType>,
    name: Py<PyString>,
    offset: isize,
}

impl Slot {
    /// The slot *name* of *class*; fails if the class has something else in its place, such as a property.
    pub fn of(class: &Bound<'_, PyType>, name: &str) -> PyResult<Slot> {
        let py = class.py();
        let descriptor = class.getattr(name)?;
        let kind = py.import("types")?.getattr("MemberDescriptorType")?;
        if !descriptor.get_type().is(&kind) {
            return Err(PyTypeError::new_err(format!("{name} of {class} is no slot")));
        }
        // SAFETY: its type is that of member descriptors, whose layout this is in all supported versions.
        let member = unsafe { *(*(descriptor.as_ptr() as *const MemberDescriptor)).member };
        if member.type_code != ffi::Py_T_OBJECT_EX || member.flags & ffi::Py_READONLY != 0 {
            return Err(PyTypeError::new_err(format!("{name} of {class} holds no object")));
        }
        Ok(Slot {
            class: class.clone().unbind(),
            name: PyString::intern(py, name).unbind(),
            offset: member.offset,
        })
    }

    /// What is in it if the object is of this very class, without a reference: only until something may run; else null.
    #[inline(always)]
    fn there(&self, object: &Bound<'_, PyAny>) -> *mut ffi::PyObject {
        if !self.fits(object) {
            return null_mut();
        }
        // SAFETY: the offset is that of an object slot of this very class.
        unsafe { *((object.as_ptr() as *const u8).offset(self.offset) as *const *mut ffi::PyObject) }
    }

    /// What is in it.
    #[inline(always)]
    pub fn get<'py>(&self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let there = self.there(object);
        if there.is_null() {
            return object.getattr(self.name.bind(object.py()));
        }
        // SAFETY: it is an object.
        Ok(unsafe { Bound::from_borrowed_ptr(object.py(), there) })
    }

    /// Whether it is *other* that is in it.
    #[inline]
    pub fn has(&self, object: &Bound<'_, PyAny>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let there = self.there(object);
        Ok(if there.is_null() { self.get(object)?.is(other) } else { there == other.as_ptr() })
    }

    /// Whether nothing, that is, None, is in it.
    #[inline]
    pub fn is_none(&self, object: &Bound<'_, PyAny>) -> PyResult<bool> {
        let there = self.there(object);
        // SAFETY: None is always there.
        Ok(if there.is_null() { self.get(object)?.is_none() } else { there == unsafe { ffi::Py_None() } })
    }

    /// Store *value*, as the descriptor itself does: past a `__setattr__` that refuses.
    #[inline]
    pub fn set(&self, object: &Bound<'_, PyAny>, value: Bound<'_, PyAny>) -> PyResult<()> {
        // SAFETY: as in `get`; the old object is released last, for that may run code.
        unsafe {
            if ffi::PyObject_TypeCheck(object.as_ptr(), self.class.as_ptr() as *mut ffi::PyTypeObject) != 0 {
                let place = (object.as_ptr() as *mut u8).offset(self.offset) as *mut *mut ffi::PyObject;
                let old = *place;
                *place = value.into_ptr();
                ffi::Py_XDECREF(old);
                return Ok(());
            }
        }
        object.setattr(self.name.bind(object.py()), value)
    }

    /// An object of this slot's class whose slots are all empty, to be filled as its `__init__` does.
    pub fn allocate<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: it is a class of slots in Python, whose objects are allocated just so.
        unsafe {
            let class = self.class.as_ptr() as *mut ffi::PyTypeObject;
            Bound::from_owned_ptr_or_err(py, ffi::PyType_GenericAlloc(class, 0))
        }
    }

    /// The number in it.
    #[inline]
    pub fn number(&self, object: &Bound<'_, PyAny>) -> PyResult<i64> {
        self.get(object)?.extract()
    }

    /// Whether what is in it is true.
    #[inline]
    pub fn holds(&self, object: &Bound<'_, PyAny>) -> PyResult<bool> {
        let there = self.there(object);
        // SAFETY: all three are always there.
        let (yes, no, none) = unsafe { (ffi::Py_True(), ffi::Py_False(), ffi::Py_None()) };
        if there == yes || there == no || there == none {
            return Ok(there == yes); // which most are
        }
        self.get(object)?.is_truthy()
    }

    /// Whether *object* is of this slot's very class, and True is in it.
    #[inline(always)]
    pub fn is_true(&self, object: &Bound<'_, PyAny>) -> bool {
        // SAFETY: True is always there.
        self.there(object) == unsafe { ffi::Py_True() }
    }

    /// Store a number.
    #[inline]
    pub fn put(&self, object: &Bound<'_, PyAny>, number: i64) -> PyResult<()> {
        self.set(object, number.into_pyobject(object.py())?.into_any())
    }

    /// Store whether something is so.
    #[inline]
    pub fn flag(&self, object: &Bound<'_, PyAny>, so: bool) -> PyResult<()> {
        self.set(object, PyBool::new(object.py(), so).to_owned().into_any())
    }

    /// Add to the number in it.
    #[inline]
    pub fn add(&self, object: &Bound<'_, PyAny>, more: i64) -> PyResult<()> {
        if more == 0 {
            return Ok(());
        }
        self.put(object, self.number(object)? + more)
    }

    /// Whether *class* is this slot's.
    #[inline]
    pub fn is_of(&self, class: &Bound<'_, PyAny>) -> bool {
        class.is(&self.class)
    }

    /// Whether *object* is of this slot's very class.
    #[inline]
    pub fn fits(&self, object: &Bound<'_, PyAny>) -> bool {
        // SAFETY: an object has a type.
        unsafe { ffi::Py_TYPE(object.as_ptr()) == self.class.as_ptr() as *mut ffi::PyTypeObject }
    }
}

extern "C" {
    // CPython's, in all versions, which `pyo3::ffi` does not have.
    fn PyMethod_Function(method: *mut ffi::PyObject) -> *mut ffi::PyObject;
    fn PyMethod_Self(method: *mut ffi::PyObject) -> *mut ffi::PyObject;
    fn PyMethod_New(function: *mut ffi::PyObject, owner: *mut ffi::PyObject) -> *mut ffi::PyObject;
}

static BOUND: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// What *method* is bound to, if it is a bound method.
#[inline]
pub fn owner_of<'py>(method: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = method.py();
    let class = BOUND.get_or_try_init(py, || Ok::<_, PyErr>(py.import("types")?.getattr("MethodType")?.unbind()))?;
    // SAFETY: its type is that of bound methods, which have an owner.
    Ok(method.get_type().is(class).then(|| unsafe { Bound::from_borrowed_ptr(py, PyMethod_Self(method.as_ptr())) }))
}

/// What *method* is bound to, if it is this function.
#[inline]
pub fn bound_to<'py>(method: &Bound<'py, PyAny>, function: &Py<PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    // SAFETY: what has an owner is a bound method.
    Ok(owner_of(method)?.filter(|_| unsafe { PyMethod_Function(method.as_ptr()) } == function.as_ptr()))
}

/// A method of *owner*'s class, which is this function, bound to it.
#[inline]
pub fn bind<'py>(function: &Py<PyAny>, owner: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: both are objects, and what is returned is owned, or null with an exception.
    unsafe { Bound::from_owned_ptr_or_err(owner.py(), PyMethod_New(function.as_ptr(), owner.as_ptr())) }
}

/// What CPython knows a function in Rust by.
pub struct Definition(pub ffi::PyMethodDef);
// SAFETY: nobody changes it, and what it points to is static.
unsafe impl Sync for Definition {}

/// What such a function returns: a new reference, or null with an exception.
#[inline]
pub fn answer(py: Python<'_>, run: impl FnOnce() -> PyResult<()>) -> *mut ffi::PyObject {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => return py.None().into_ptr(),
        Ok(Err(error)) => error.restore(py),
        Err(_) => PySystemError::new_err("a native kernel panicked").restore(py),
    }
    null_mut()
}

/// Take a key out of a dictionary; false if it is not there.  No `PyErr` is made of that, which takes time, and could not
/// be dropped in a function of C's, which is not counted as attached.
#[inline]
pub fn take_out(dictionary: &Bound<'_, PyDict>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
    // SAFETY: a dictionary, and an object.
    unsafe {
        if ffi::PyDict_DelItem(dictionary.as_ptr(), key.as_ptr()) == 0 {
            return Ok(true);
        }
        if ffi::PyErr_ExceptionMatches(ffi::PyExc_KeyError) == 0 {
            return Err(PyErr::fetch(dictionary.py()));
        }
        ffi::PyErr_Clear();
        Ok(false)
    }
}

/// A method of a built-in class, called past what CPython does for a call.
pub struct BuiltinMethod {
    method: Py<PyAny>,
    class: *mut ffi::PyTypeObject,
    function: Option<ffi::PyCFunction>, // none if it takes something else
}

// SAFETY: the class and the function last as long as the method.
unsafe impl Send for BuiltinMethod {}
unsafe impl Sync for BuiltinMethod {}

impl BuiltinMethod {
    /// That of this name, which takes an argument, or (`METH_NOARGS`) none.
    fn of(class: &Bound<'_, PyType>, name: &str, flags: i32) -> PyResult<BuiltinMethod> {
        let method = class.getattr(name)?;
        // SAFETY: its type is that of methods of built-in classes, whose layout this is.
        let function = unsafe {
            if ffi::Py_TYPE(method.as_ptr()) == &raw mut ffi::PyMethodDescr_Type {
                let definition = *(*method.as_ptr().cast::<ffi::PyMethodDescrObject>()).d_method;
                (definition.ml_flags == flags).then(|| definition.ml_meth.PyCFunction)
            } else {
                None
            }
        };
        Ok(BuiltinMethod { method: method.unbind(), class: class.as_type_ptr(), function })
    }

    pub fn without(class: &Bound<'_, PyType>, name: &str) -> PyResult<BuiltinMethod> {
        BuiltinMethod::of(class, name, ffi::METH_NOARGS)
    }

    pub fn with(class: &Bound<'_, PyType>, name: &str) -> PyResult<BuiltinMethod> {
        BuiltinMethod::of(class, name, ffi::METH_O)
    }

    /// Call one that takes no argument.
    #[inline]
    pub fn call0<'py>(&self, owner: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match self.fits(owner) {
            // SAFETY: the owner is of the class, and what is returned is owned, or null with an exception.
            Some(function) => unsafe {
                Bound::from_owned_ptr_or_err(owner.py(), function(owner.as_ptr(), null_mut()))
            },
            None => self.method.bind(owner.py()).call1((owner,)),
        }
    }

    /// Call one that takes an argument.
    #[inline]
    pub fn call1<'py>(&self, owner: &Bound<'py, PyAny>, argument: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match self.fits(owner) {
            // SAFETY: as above.
            Some(function) => unsafe {
                Bound::from_owned_ptr_or_err(owner.py(), function(owner.as_ptr(), argument.as_ptr()))
            },
            None => self.method.bind(owner.py()).call1((owner, argument)),
        }
    }

    #[inline]
    fn fits(&self, owner: &Bound<'_, PyAny>) -> Option<ffi::PyCFunction> {
        // SAFETY: an object has a type.
        self.function.filter(|_| unsafe { ffi::Py_TYPE(owner.as_ptr()) } == self.class)
    }
}

/// A struct of some slots of one class, each by the name that it has there.
macro_rules! slots_of {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $attribute:literal),* $(,)? }) => {
        $(#[$doc])*
        pub struct $name {
            $(pub $field: $crate::object_slots::Slot),*
        }

        impl $name {
            pub fn of(class: &pyo3::Bound<'_, pyo3::types::PyType>) -> pyo3::PyResult<$name> {
                Ok($name { $($field: $crate::object_slots::Slot::of(class, $attribute)?),* })
            }
        }
    };
}
pub(crate) use slots_of;

/// Put *value* under *key* if nothing is there; return what is there otherwise.  One look, where two would hash twice.
#[inline]
pub fn set_default<'py>(
    dictionary: &Bound<'py, PyDict>,
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let size = dictionary.len();
    // SAFETY: what is returned is borrowed from the dictionary, or null with an exception.
    let there = unsafe {
        Bound::from_borrowed_ptr_or_err(
            dictionary.py(),
            ffi::PyDict_SetDefault(dictionary.as_ptr(), key.as_ptr(), value.as_ptr()),
        )?
    };
    Ok(if dictionary.len() > size { None } else { Some(there) })
}
