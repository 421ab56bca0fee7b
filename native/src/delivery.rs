//! Events that are sent: what a dataspace notifies its observers of, the verb `send`, and the loop of a turn.
//!
//! Their specifications are in `syndicate/actors`: `Telling` in `dataspace.py`, `send` in `verbs.py`, `deliver` in
//! `actor.py`.

use crate::frozen::{frozen, is_exactly, is_leaf, thawed, untrack, Names};
use crate::index::Gate;
use crate::current_turn;
use crate::session_bytes::note_message;
use crate::poller::Arrival;
use crate::object_slots::{take_out, Slot};
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCFunction, PyDict, PyList, PyTuple, PyType};
use std::ptr::null_mut;

/// The number of a kind of event, as `syndicate/index/event.py` has them, and as a Python object.
pub struct Kind(i64, PyOnceLock<Py<PyAny>>);

pub static MESSAGE: Kind = Kind(0, PyOnceLock::new());
pub static ASSERT: Kind = Kind(1, PyOnceLock::new());
pub static RETRACT: Kind = Kind(2, PyOnceLock::new());
pub static SYNC: Kind = Kind(3, PyOnceLock::new());
pub static ENTER: Kind = Kind(4, PyOnceLock::new());

impl Kind {
    pub fn of(&self, py: Python<'_>) -> &Py<PyAny> {
        let number = self.0;
        self.1.get_or_init(py, || number.into_pyobject(py).expect("a small integer").into_any().unbind())
    }

    #[inline]
    pub fn is(&self, other: &Kind) -> bool {
        self.0 == other.0
    }
}

static SEND: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static ACTOR_NAMES: PyOnceLock<ActorNames> = PyOnceLock::new();

/// The slots of what `syndicate.actors` calls by these names.
pub struct ActorNames {
    pub foreign: Py<PyAny>,
    refuse: Py<PyAny>,
    pub pending: Slot,
    pub turn_facet: Slot,
    pub turn_system: Slot,
    pub facet: Slot,
    pub entity: Slot,
    pub raw: Slot,
    pub actor: Slot,
    pub alive: Slot,
    pub system: Slot,
    pub observers: Slot,
    groups: Slot,
    on_message: Slot,
    on_asserted: Slot,
    pub gate: Slot,
    interest: Py<PyAny>,
    form: Slot,
    pub brief: Slot,
    passing: Slot,
    bulk_handle: Py<PyType>,
}

impl ActorNames {
    pub fn of(py: Python<'_>) -> PyResult<&ActorNames> {
        ACTOR_NAMES.get_or_try_init(py, || {
            let class = |module: &str, name: &str| -> PyResult<Bound<'_, PyType>> {
                Ok(py.import(module)?.getattr(name)?.cast_into::<PyType>()?)
            };
            let reference = class("syndicate.values.value", "Ref")?;
            let turn = class("syndicate.actors.turn", "Turn")?;
            let facet = class("syndicate.actors.facet", "Facet")?;
            let actor = class("syndicate.actors.actor", "Actor")?;
            let handler = class("syndicate.index.trie", "Handler")?;
            let module = py.import("syndicate.actors.turn")?;
            Ok(ActorNames {
                foreign: module.getattr("foreign")?.unbind(),
                refuse: py.import("syndicate.actors.actor")?.getattr("refuse")?.unbind(),
                pending: Slot::of(&turn, "pending")?,
                turn_facet: Slot::of(&turn, "facet")?,
                turn_system: Slot::of(&turn, "system")?,
                facet: Slot::of(&reference, "facet")?,
                entity: Slot::of(&reference, "entity")?,
                raw: Slot::of(&reference, "raw")?,
                actor: Slot::of(&facet, "actor")?,
                alive: Slot::of(&facet, "alive")?,
                system: Slot::of(&actor, "system")?,
                observers: Slot::of(&handler, "observers")?,
                groups: Slot::of(&handler, "_groups")?,
                on_message: Slot::of(&class("syndicate.actors.during", "OnMessage")?, "fn")?,
                on_asserted: Slot::of(&class("syndicate.actors.during", "OnAsserted")?, "fn")?,
                gate: Slot::of(&class("syndicate.actors.dataspace", "Dataspace")?, "gate")?,
                interest: py.import("syndicate.index.interest")?.getattr("INTEREST")?.unbind(),
                form: Slot::of(&class("syndicate.actors.turn", "Handle")?, "form")?,
                brief: Slot::of(&class("syndicate.actors.turn", "Handle")?, "brief")?,
                passing: Slot::of(&class("syndicate.actors.dataspace", "Dataspace")?, "passing")?,
                bulk_handle: class("syndicate.actors.bulk", "BulkHandle")?.unbind(),
            })
        })
    }
}

/// The event of one reference or of several.
#[inline]
pub fn event<'py>(
    kind: &Py<PyAny>,
    target: Bound<'py, PyAny>,
    value: Bound<'py, PyAny>,
    handle: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = target.py();
    // SAFETY: all four places are filled with what is owned.
    unsafe {
        let tuple = Bound::from_owned_ptr_or_err(py, ffi::PyTuple_New(4))?;
        ffi::PyTuple_SET_ITEM(tuple.as_ptr(), 0, kind.clone_ref(py).into_ptr());
        ffi::PyTuple_SET_ITEM(tuple.as_ptr(), 1, target.into_ptr());
        ffi::PyTuple_SET_ITEM(tuple.as_ptr(), 2, value.into_ptr());
        let handle = handle.map_or_else(|| py.None().into_ptr(), Bound::into_ptr);
        ffi::PyTuple_SET_ITEM(tuple.as_ptr(), 3, handle);
        Ok(tuple)
    }
}

/// What is under the first key of a dictionary, if that is *key* itself.
#[inline]
fn only<'py>(dictionary: &Bound<'py, PyDict>, key: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let (mut at, mut first, mut value) = (0, null_mut(), null_mut());
    // SAFETY: what it says is borrowed from the dictionary, and nothing runs meanwhile.
    unsafe {
        let found = ffi::PyDict_Next(dictionary.as_ptr(), &mut at, &mut first, &mut value) != 0;
        (found && first == key.as_ptr()).then(|| Bound::from_borrowed_ptr(dictionary.py(), value))
    }
}

/// The events that are noted for an actor.
#[inline]
pub fn noted<'py>(pending: &Bound<'py, PyAny>, actor: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyList>>> {
    let pending = pending.cast::<PyDict>()?;
    let events = match pending.len() {
        0 => None,
        1 => only(pending, actor), // and no hash is asked for
        _ => pending.get_item(actor)?,
    };
    Ok(events.map(|events| events.cast_into::<PyList>()).transpose()?)
}

#[inline]
pub fn open<'py>(pending: &Bound<'py, PyAny>, actor: &Bound<'py, PyAny>, event: Bound<'py, PyAny>) -> PyResult<()> {
    // SAFETY: its one place is filled with what is owned.
    let batch = unsafe {
        let batch = Bound::from_owned_ptr_or_err(event.py(), ffi::PyList_New(1))?;
        ffi::PyList_SET_ITEM(batch.as_ptr(), 0, event.into_ptr());
        batch
    };
    pending.cast::<PyDict>()?.set_item(actor, batch)
}

// ------------------------------------------------------------------------------------------------ what observers are notified of

/// Notes what the index found, for all observers of a handler.
#[pyclass(frozen, module = "syndicate._native")]
pub struct Telling {
    turn: Py<PyAny>,
}

impl Telling {
    /// What the method `tell` is bound to, if this is one.
    pub fn of(method: &Bound<'_, PyAny>) -> Option<Py<Telling>> {
        method.cast_exact::<PyCFunction>().ok()?;
        // SAFETY: it is a built-in function; what it is bound to is borrowed from it, or null.
        unsafe {
            let owner = ffi::PyCFunction_GetSelf(method.as_ptr());
            if owner.is_null() {
                return None;
            }
            Bound::from_borrowed_ptr(method.py(), owner).cast_into_exact::<Telling>().ok().map(Bound::unbind)
        }
    }

    #[inline]
    pub fn tell<'py>(
        &self,
        kind: &Py<PyAny>,
        handler: &Bound<'py, PyAny>,
        captures: &Bound<'py, PyTuple>,
        values: Option<Bound<'py, PyTuple>>,
        notice: Option<Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let py = handler.py();
        let values = values.map_or_else(|| py.None().into_bound(py), Bound::into_any); // nobody looks, who is raw
        let (names, actors) = (Names::of(py)?, ActorNames::of(py)?);
        let pending = actors.pending.get(self.turn.bind(py))?;
        let observers = actors.observers.get(handler)?;
        let raw = |captures: &Bound<'py, PyTuple>| -> PyResult<Bound<'py, PyAny>> {
            let head = std::iter::once(names.seq.bind(py).clone());
            let leaves = captures.iter_borrowed().all(|part| is_leaf(names, &part));
            let form = PyTuple::new(py, head.chain(captures.iter()).collect::<Vec<_>>())?.into_any();
            if leaves {
                // SAFETY: all its parts are leaves, and SEQ lasts as long as the program.
                unsafe { untrack(&form) };
            }
            Ok(form)
        };
        if actors.facet.fits(&observers) {
            let value = if actors.raw.holds(&observers)? { raw(captures)? } else { values };
            let actor = actors.actor.get(&actors.facet.get(&observers)?)?;
            let event = event(kind, observers, value, notice)?;
            return match noted(&pending, &actor)? {
                Some(events) => events.append(event),
                None => open(&pending, &actor, event),
            };
        }
        let mut groups = actors.groups.get(handler)?;
        if groups.is_none() {
            groups = handler.getattr(intern!(py, "groups"))?;
        }
        for (actor, audiences) in groups.cast::<PyDict>()?.iter() {
            for audience in audiences.cast::<PyList>()?.iter() {
                let is_raw = match audience.cast_exact::<PyTuple>() {
                    Ok(several) => actors.raw.holds(&several.get_item(0)?)?,
                    Err(_) => actors.raw.holds(&audience)?,
                };
                let value = if is_raw { raw(captures)? } else { values.clone() };
                let event = event(kind, audience, value, notice.clone())?;
                match noted(&pending, &actor)? {
                    Some(events) => events.append(event)?,
                    None => open(&pending, &actor, event)?,
                }
            }
        }
        Ok(())
    }
}

#[pymethods]
impl Telling {
    #[new]
    fn new(turn: Py<PyAny>) -> Telling {
        Telling { turn }
    }

    #[pyo3(name = "tell")]
    fn tell_from_python<'py>(
        &self,
        kind: Bound<'py, PyAny>,
        handler: Bound<'py, PyAny>,
        captures: Bound<'py, PyTuple>,
        values: Option<Bound<'py, PyTuple>>,
        notice: Option<Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        self.tell(&kind.unbind(), &handler, &captures, values, notice)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.turn)
    }
}

// ------------------------------------------------------------------------------------------------ the verb send

pub fn send_kernel(specification: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let py = specification.py();
    SEND.get_or_init(py, || specification.unbind());
    Ok(wrap_pyfunction!(send, py)?.into_any())
}

/// Send *value* as a message to a dataspace (or any entity); raises NotAValue.
#[pyfunction]
fn send<'py>(target: Bound<'py, PyAny>, value: Bound<'py, PyAny>) -> PyResult<()> {
    let py = target.py();
    let (names, actors) = (Names::of(py)?, ActorNames::of(py)?);
    let (Some(turn), true) = (current_turn::turn(py), is_exactly(&target, &names.reference)) else {
        let send = SEND.get(py).expect("a kernel is made of its specification");
        return send.bind(py).call1((target, value)).map(|_| ());
    };
    let form = frozen(names, &value, 0)?;
    let actor = actors.actor.get(&actors.facet.get(&target)?)?;
    let value = if actors.raw.holds(&target)? { form } else { thawed(names, &form, 0)? };
    let pending = actors.pending.get(&turn)?;
    let event = event(MESSAGE.of(py), target, value, None)?;
    match noted(&pending, &actor)? {
        Some(events) => events.append(event),
        None if actors.system.has(&actor, &actors.turn_system.get(&turn)?)? => open(&pending, &actor, event),
        None => Err(PyErr::from_value(actors.foreign.bind(py).call1((actor,))?)),
    }
}

// ------------------------------------------------------------------------------------------------ the loop of a turn

pub fn deliver_kernel(specification: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    Ok(wrap_pyfunction!(deliver, specification.py())?.into_any())
}

/// Call a handler with what is captured, as `OnMessage.message` and `OnAsserted.assert_` do.
#[inline]
fn call(handler: &Bound<'_, PyAny>, captures: &Bound<'_, PyAny>) -> PyResult<()> {
    handler.call1(captures.cast::<PyTuple>()?).map(|_| ())
}

/// Let a dataspace handle what is neither interest nor a sync, as its methods do; whether that was all.
#[inline]
fn handle_event<'py>(
    actors: &ActorNames,
    dataspace: &Bound<'py, PyAny>,
    kind: &Bound<'py, PyAny>,
    value: &Bound<'py, PyAny>,
    handle: &Bound<'py, PyAny>,
) -> PyResult<bool> {
    let py = dataspace.py();
    let gate = actors.gate.get(dataspace)?;
    let Ok(gate) = gate.cast_exact::<Gate>() else { return Ok(false) };
    if kind.is(MESSAGE.of(py)) {
        gate.get().send(value.clone())?;
        return Ok(true);
    }
    let comes = kind.is(ASSERT.of(py));
    if !comes && !kind.is(RETRACT.of(py)) {
        return Ok(false);
    }
    if is_exactly(handle, &actors.bulk_handle) {
        return Ok(false);
    }
    if !comes && actors.brief.is_true(handle) {
        let passing = actors.passing.get(dataspace)?.cast_into::<PyDict>()?;
        if !passing.is_empty() && take_out(&passing, handle)? {
            gate.get().passed(); // else it reached somebody
            return Ok(true);
        }
    }
    let form = if comes { value.clone() } else { actors.form.get(handle)? };
    if let Ok(compound) = form.cast_exact::<PyTuple>() {
        if compound.as_slice().first().is_some_and(|head| head.is(&actors.interest)) {
            return Ok(false);
        }
    }
    if comes {
        if actors.brief.is_true(handle) && gate.get().audience(&form)? == 0 {
            actors.passing.get(dataspace)?.cast::<PyDict>()?.set_item(handle, py.None())?;
            return Ok(true);
        }
        gate.get().add(form)?;
    } else {
        gate.get().remove(form)?;
    }
    Ok(true)
}

/// Call the method of an entity for one event.
#[inline]
fn notify<'py>(
    actors: &ActorNames,
    turn: &Bound<'py, PyAny>,
    entity: &Bound<'py, PyAny>,
    kind: &Bound<'py, PyAny>,
    value: &Bound<'py, PyAny>,
    handle: &Bound<'py, PyAny>,
) -> PyResult<()> {
    let py = entity.py();
    if kind.is(MESSAGE.of(py)) {
        if actors.on_message.fits(entity) {
            return call(&actors.on_message.get(entity)?, value);
        }
        if !note_message(turn, entity, value)? {
            entity.call_method1(intern!(py, "message"), (value,))?;
        }
    } else if kind.is(ASSERT.of(py)) {
        if actors.on_asserted.fits(entity) {
            return call(&actors.on_asserted.get(entity)?, value);
        }
        entity.call_method1(intern!(py, "assert_"), (value, handle))?;
    } else if kind.is(RETRACT.of(py)) {
        if actors.on_asserted.fits(entity) {
            return Ok(()); // it does nothing, as each entity's that has none of its own
        }
        entity.call_method1(intern!(py, "retract"), (handle,))?;
    } else {
        entity.call_method1(intern!(py, "sync"), (value,))?;
    }
    Ok(())
}

/// Let one entity, whose facet lives, handle an event.
#[inline]
fn handle<'py>(
    actors: &ActorNames,
    turn: &Bound<'py, PyAny>,
    target: &Bound<'py, PyAny>,
    facet: Bound<'py, PyAny>,
    (kind, value, handle): (&Bound<'py, PyAny>, &Bound<'py, PyAny>, &Bound<'py, PyAny>),
) -> PyResult<()> {
    actors.turn_facet.set(turn, facet)?;
    let entity = actors.entity.get(target)?;
    if actors.gate.fits(&entity) && handle_event(actors, &entity, kind, value, handle)? {
        return Ok(());
    }
    notify(actors, turn, &entity, kind, value, handle)
}

/// The events of a batch after which signals are looked at.
const BETWEEN_SIGNALS: usize = 16;

/// Handle these events, one after the other, in the turn of their actor.
#[pyfunction]
fn deliver<'py>(turn: Bound<'py, PyAny>, events: Bound<'py, PyAny>) -> PyResult<()> {
    deliver_all(&turn, &events)
}

pub fn deliver_all<'py>(turn: &Bound<'py, PyAny>, events: &Bound<'py, PyAny>) -> PyResult<()> {
    let py = turn.py();
    let (names, actors) = (Names::of(py)?, ActorNames::of(py)?);
    let events = events.cast::<PyList>()?;
    let mut at = 0;
    while at < events.len() {
        let event = events.get_item(at)?.cast_into::<PyTuple>()?;
        at += 1;
        let [kind, target, value, by] = event.as_slice() else {
            return Err(PyValueError::new_err("an event has a kind, a target, a value and a handle"));
        };
        if is_exactly(target, &names.reference) {
            let facet = actors.facet.get(target)?;
            if actors.alive.holds(&facet)? {
                handle(actors, turn, target, facet, (kind, value, by))?;
            } else if kind.is(ASSERT.of(py)) || kind.is(SYNC.of(py)) {
                actors.refuse.bind(py).call1((turn, kind, target, value, by))?;
            }
        } else if kind.is(ENTER.of(py)) {
            if actors.alive.holds(target)? {
                actors.turn_facet.set(turn, target.clone())?;
                match value.cast_exact::<Arrival>() {
                    Ok(arrival) => arrival.get().__call__(py)?,
                    Err(_) => value.call0().map(|_| ())?,
                }
            }
        } else {
            for target in target.cast::<PyTuple>()?.iter_borrowed() {
                let facet = actors.facet.get(&target)?;
                if actors.alive.holds(&facet)? {
                    handle(actors, turn, &target, facet, (kind, value, by))?;
                }
            }
        }
        if at % BETWEEN_SIGNALS == 0 || at >= events.len() {
            py.check_signals()?;
        }
    }
    Ok(())
}
