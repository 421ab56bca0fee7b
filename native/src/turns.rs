//! Turns: what an actor notes as it asserts and retracts, and the loop that takes one turn after the other.
//!
//! Their specifications are in `syndicate/actors`: `note_assertion` and `note_retraction` in `turn.py`, `assert_` in
//! `verbs.py`, `take_turns` in `actor.py`, `System.drain` in `system.py`.

use crate::delivery::{deliver_all, event, noted, open, ActorNames, ASSERT, RETRACT};
use crate::frozen::{frozen, is_exactly, thawed, Names};
use crate::fields::settle;
use crate::current_turn;
use crate::session_bytes::flush_session;
use crate::object_slots::{answer, bound_to, slots_of, take_out, BuiltinMethod, Definition, Slot};
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};

static ASSERT_VERB: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static RETRACT_METHOD: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static TURN_NAMES: PyOnceLock<TurnNames> = PyOnceLock::new();
static SYSTEM_NAMES: PyOnceLock<SystemNames> = PyOnceLock::new();

/// The events after which a slice looks at the time, and whether there is something else to look at.
const EVENTS: isize = 16;

slots_of! {
    /// Those of an actor system.
    SystemSlots {
        queue: "queue", after: "_after", parked: "_parked", parked_until: "_parked_until", until_idle: "_until_idle",
        quiet: "_quiet", interrupt: "interrupt", failure: "failure", signals: "signals", timers: "_timers",
        tasks: "_tasks", actors: "actors", turn: "turn", piece: "_piece", postponed: "_postponed", lanes: "lanes",
        outdated: "_outdated", meter: "meter", chronicle: "chronicle", taken: "taken", inlet: "inlet",
    }
}

/// The class of actor systems.
pub struct SystemNames {
    pub class: Py<PyType>,
    pub slots: SystemSlots,
    large: isize, // the most events of a batch that need no lane
    drain: Py<PyAny>,
    take_open: Py<PyAny>,
    module: Py<PyAny>, // whose clock it is
}

impl SystemNames {
    pub fn of(py: Python<'_>) -> PyResult<&SystemNames> {
        SYSTEM_NAMES.get_or_try_init(py, || {
            let module = py.import("syndicate.actors.system")?;
            let class = module.getattr("System")?.cast_into::<PyType>()?;
            let large = module.getattr("LARGE")?.extract()?;
            Ok(SystemNames {
                slots: SystemSlots::of(&class)?,
                large,
                drain: class.getattr("drain")?.unbind(),
                take_open: module.getattr("take_open")?.unbind(),
                module: module.into_any().unbind(),
                class: class.unbind(),
            })
        })
    }
}

/// The slots of what `syndicate.actors` calls by these names.
pub struct TurnNames {
    pub append: BuiltinMethod,
    popleft: BuiltinMethod,
    pub popitem: BuiltinMethod,
    actor: Slot,
    pub damaged: Slot,
    pub suspects: Slot,
    pub afterwards: Slot,
    pub journal: Slot,
    tracing: Slot,
    pub late: Slot,
    queue: Slot,
    pub handles: Slot,
    handle_facet: Slot,
    pub handle_target: Slot,
    pub handle_form: Slot,
}

impl TurnNames {
    pub fn of(py: Python<'_>) -> PyResult<&TurnNames> {
        TURN_NAMES.get_or_try_init(py, || {
            let module = py.import("syndicate.actors.turn")?;
            let turn = module.getattr("Turn")?.cast_into::<PyType>()?;
            let handle = module.getattr("Handle")?.cast_into::<PyType>()?;
            let facets = py.import("syndicate.actors.facet")?;
            let queue = py.import("collections")?.getattr("deque")?.cast_into::<PyType>()?;
            let facet = facets.getattr("Facet")?.cast_into::<PyType>()?;
            Ok(TurnNames {
                append: BuiltinMethod::with(&queue, "append")?,
                popleft: BuiltinMethod::without(&queue, "popleft")?,
                popitem: BuiltinMethod::without(&py.get_type::<PyDict>(), "popitem")?,
                actor: Slot::of(&turn, "actor")?,
                damaged: Slot::of(&turn, "damaged")?,
                suspects: Slot::of(&turn, "suspects")?,
                afterwards: Slot::of(&turn, "afterwards")?,
                journal: Slot::of(&turn, "journal")?,
                tracing: Slot::of(&turn, "tracing")?,
                late: Slot::of(&turn, "late")?,
                queue: Slot::of(&turn, "queue")?,
                handles: Slot::of(&facet, "handles")?,
                handle_facet: Slot::of(&handle, "facet")?,
                handle_target: Slot::of(&handle, "target")?,
                handle_form: Slot::of(&handle, "form")?,
            })
        })
    }
}

// ------------------------------------------------------------------------------------------------ what a turn notes

/// A new handle, with its slots filled as its `__init__` does.
fn handle<'py>(
    names: &TurnNames,
    facet: &Bound<'py, PyAny>,
    target: &Bound<'py, PyAny>,
    form: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let handle = names.handle_form.allocate(facet.py())?;
    names.handle_facet.set(&handle, facet.clone())?;
    names.handle_target.set(&handle, target.clone())?;
    names.handle_form.set(&handle, form.clone())?;
    ActorNames::of(facet.py())?.brief.flag(&handle, false)?;
    Ok(handle)
}

/// Note that *facet* asserts *form*.  In a dead facet nothing happens, and the handle is not live.
#[pyfunction]
pub fn note_assertion<'py>(
    turn: Bound<'py, PyAny>,
    facet: Bound<'py, PyAny>,
    target: Bound<'py, PyAny>,
    form: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = turn.py();
    let (names, actors) = (TurnNames::of(py)?, ActorNames::of(py)?);
    let handle = handle(names, &facet, &target, &form)?;
    if !actors.alive.holds(&facet)? {
        return Ok(handle);
    }
    let actor = actors.actor.get(&actors.facet.get(&target)?)?;
    let value = if actors.raw.holds(&target)? { form } else { thawed(Names::of(py)?, &form, 0)? };
    let pending = actors.pending.get(&turn)?;
    let event = event(ASSERT.of(py), target, value, Some(handle.clone()))?;
    match noted(&pending, &actor)? {
        Some(events) => events.append(event)?,
        None if actors.system.has(&actor, &actors.turn_system.get(&turn)?)? => open(&pending, &actor, event)?,
        None => return Err(PyErr::from_value(actors.foreign.bind(py).call1((actor,))?)),
    }
    names.handles.get(&facet)?.cast::<PyDict>()?.set_item(&handle, py.None())?;
    Ok(handle)
}

/// Note that what *handle* is known by goes, if its facet still asserts it.
#[pyfunction]
pub fn note_retraction<'py>(turn: Bound<'py, PyAny>, handle: Bound<'py, PyAny>) -> PyResult<()> {
    let py = turn.py();
    let (names, actors) = (TurnNames::of(py)?, ActorNames::of(py)?);
    let handles = names.handles.get(&names.handle_facet.get(&handle)?)?.cast_into::<PyDict>()?;
    if !take_out(&handles, &handle)? {
        return Ok(());
    }
    let target = names.handle_target.get(&handle)?;
    let actor = actors.actor.get(&actors.facet.get(&target)?)?;
    let late = names.late.get(&turn)?;
    let event = event(RETRACT.of(py), target, py.None().into_bound(py), Some(handle))?;
    if let Some(events) = noted(&late, &actor)? {
        return events.append(event);
    }
    open(&late, &actor, event)?;
    let pending = actors.pending.get(&turn)?.cast_into::<PyDict>()?;
    if !pending.contains(&actor)? {
        pending.set_item(&actor, PyList::empty(py))?;
    }
    Ok(())
}

pub fn assert_kernel(specification: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let py = specification.py();
    ASSERT_VERB.get_or_init(py, || specification.unbind());
    Ok(wrap_pyfunction!(assert_, py)?.into_any())
}

/// Assert *value* for as long as the current facet lives, or until the returned handle is retracted.
#[pyfunction]
fn assert_<'py>(target: Bound<'py, PyAny>, value: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = target.py();
    let (names, actors) = (Names::of(py)?, ActorNames::of(py)?);
    // SAFETY: an object has a type.
    let record = names.recent(unsafe { ffi::Py_TYPE(value.as_ptr()) });
    let usual = record.is_some() || names.freezers.bind(py).contains(value.get_type())?;
    match current_turn::turn(py) {
        Some(turn) if usual && is_exactly(&target, &names.reference) => {
            let form = match record {
                Some(record) => record.freeze(names, &value, 0)?,
                None => frozen(names, &value, 0)?,
            };
            let facet = actors.turn_facet.get(&turn)?;
            note_assertion(turn, facet, target, form)
        }
        _ => ASSERT_VERB.get(py).expect("a kernel is made of its specification").bind(py).call1((target, value)),
    }
}

/// Stands in a class for its method `retract` until there is the class, which a method of CPython's knows.
#[pyclass(frozen, module = "syndicate._native")]
struct RetractMethod;

#[pymethods]
impl RetractMethod {
    fn __set_name__(&self, class: Bound<'_, PyType>, name: Bound<'_, PyAny>) -> PyResult<()> {
        // SAFETY: the definition is static, and the class is one.
        let method = unsafe {
            let definition = (&raw const RETRACT_DEFINITION.0).cast_mut();
            Bound::from_owned_ptr_or_err(class.py(), ffi::PyDescr_NewMethod(class.as_type_ptr(), definition))?
        };
        class.setattr(name.cast::<PyString>()?, method)
    }
}

pub fn retract_kernel(specification: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let py = specification.py();
    RETRACT_METHOD.get_or_init(py, || specification.unbind());
    Ok(Bound::new(py, RetractMethod)?.into_any())
}

static RETRACT_DEFINITION: Definition = Definition(ffi::PyMethodDef {
    ml_name: c"retract".as_ptr(),
    ml_meth: ffi::PyMethodDefPointer { PyCFunction: retract },
    ml_flags: ffi::METH_NOARGS,
    ml_doc: c"retract($self, /)\n--\n\nTake the assertion back; no effect if it is gone already.".as_ptr(),
});

/// Take an assertion back, in a turn of its actor.
unsafe extern "C" fn retract(handle: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    let py = Python::assume_attached();
    answer(py, || {
        let handle = Bound::from_borrowed_ptr(py, handle);
        let (names, actors) = (TurnNames::of(py)?, ActorNames::of(py)?);
        if let Some(turn) = current_turn::turn(py) {
            let actor = actors.actor.get(&names.handle_facet.get(&handle)?)?;
            if names.actor.has(&turn, &actor)? {
                return note_retraction(turn, handle);
            }
        }
        RETRACT_METHOD.get(py).expect("a kernel is made of its specification").bind(py).call1((handle,)).map(|_| ())
    })
}

// ------------------------------------------------------------------------------------------------ one turn after the other

/// Whether a container that a turn notes things in has any.
#[inline]
pub fn any(container: Bound<'_, PyAny>) -> PyResult<bool> {
    if let Ok(dictionary) = container.cast_exact::<PyDict>() {
        return Ok(!dictionary.is_empty());
    }
    match container.cast_exact::<PyList>() {
        Ok(list) => Ok(!list.is_empty()),
        Err(_) => container.is_truthy(),
    }
}

/// Handle a batch, and settle what that has damaged.
fn handle_batch<'py>(names: &TurnNames, turn: &Bound<'py, PyAny>, events: &Bound<'py, PyList>) -> PyResult<()> {
    deliver_all(turn, events.as_any())?;
    if any(names.damaged.get(turn)?)? || any(names.suspects.get(turn)?)? {
        settle(turn, 0)?;
    }
    Ok(())
}

/// Put what was deferred behind what was not, as `Turn.seal` does.
fn seal(pending: &Bound<'_, PyDict>, late: Bound<'_, PyDict>) -> PyResult<()> {
    if late.is_empty() {
        return Ok(());
    }
    for (actor, events) in late.iter() {
        match noted(pending.as_any(), &actor)? {
            Some(earlier) if !earlier.is_empty() => {
                for event in events.cast::<PyList>()?.iter() {
                    earlier.append(event)?;
                }
            }
            _ => pending.set_item(actor, events)?,
        }
    }
    late.clear();
    Ok(())
}

/// Do what is to be done when a turn has committed; a session's `_flush` without a call.
fn afterwards_call(act: &Bound<'_, PyAny>) -> PyResult<()> {
    if flush_session(act)? {
        return Ok(());
    }
    act.call0().map(|_| ())
}

/// Hand over what a turn has noted.
fn hand_over<'py>(
    names: &TurnNames,
    queue: &Bound<'py, PyAny>,
    turn: &Bound<'py, PyAny>,
    actor: &Bound<'py, PyAny>,
    events: &Bound<'py, PyList>,
) -> PyResult<()> {
    let py = turn.py();
    if !names.tracing.is_none(turn)? {
        return actor.call_method1(intern!(py, "_commit"), (turn, events)).map(|_| ());
    }
    let afterwards = names.afterwards.get(turn)?;
    if any(afterwards.clone())? {
        if !names.journal.is_none(turn)? {
            return actor.call_method1(intern!(py, "_commit"), (turn, events)).map(|_| ());
        }
        names.afterwards.set(turn, PyList::empty(py).into_any())?;
        for act in afterwards.cast_into::<PyList>()?.iter() {
            if let Err(error) = afterwards_call(&act) {
                return actor.call_method1(intern!(py, "_uncommitted"), (turn, error.into_value(py), events)).map(|_| ());
            }
        }
    }
    let pending = ActorNames::of(py)?.pending.get(turn)?.cast_into::<PyDict>()?;
    if pending.is_empty() {
        return Ok(());
    }
    seal(&pending, names.late.get(turn)?.cast_into::<PyDict>()?)?;
    // all is taken out before anything is made: what the collector runs then may note more, for the next turn
    let mut noted = pending.iter();
    let (first, others) = (noted.next(), noted.collect::<Vec<_>>()); // of none, which is most often, it has no memory
    pending.clear();
    for (actor, events) in first.into_iter().chain(others) {
        names.append.call1(queue, PyTuple::new(py, [actor, events])?.as_any())?;
    }
    Ok(())
}

/// Handle one batch as a turn, as `Actor.take` does.
fn take<'py>(
    names: &TurnNames,
    queue: &Bound<'py, PyAny>,
    turn: &Bound<'py, PyAny>,
    actor: &Bound<'py, PyAny>,
    events: &Bound<'py, PyList>,
) -> PyResult<()> {
    let py = turn.py();
    names.actor.set(turn, actor.clone())?;
    let done = match handle_batch(names, turn, events) {
        Ok(()) => hand_over(names, queue, turn, actor, events),
        Err(error) => actor.call_method1(intern!(py, "_failed"), (turn, error.into_value(py), events)).map(|_| ()),
    };
    ActorNames::of(py)?.turn_facet.set(turn, py.None().into_bound(py))?;
    names.actor.set(turn, py.None().into_bound(py))?;
    done
}

/// Take turns from the queue until *left* events are handled, none is there, or the next batch has more than *most*, or is
/// one of *unless*, by its identity, or in steps, which is no plain list.
#[pyfunction]
#[pyo3(signature = (turn, most, left, unless=None))]
pub fn take_turns<'py>(
    turn: Bound<'py, PyAny>,
    most: isize,
    mut left: isize,
    unless: Option<Bound<'py, PyAny>>,
) -> PyResult<isize> {
    let py = turn.py();
    let names = TurnNames::of(py)?;
    let queue = names.queue.get(&turn)?;
    while left > 0 && queue.len()? > 0 {
        let batch = names.popleft.call0(&queue)?.cast_into::<PyTuple>()?;
        let [actor, events] = batch.as_slice() else {
            return Err(PyValueError::new_err("a batch is of an actor, and has events"));
        };
        let events = events.cast::<PyList>()?;
        let size = events.len() as isize;
        let aside = match &unless {
            Some(unless) => any(unless.clone())? && unless.contains(events.as_ptr() as usize)?,
            None => false,
        };
        if size > most || aside || !events.is_exact_instance_of::<PyList>() {
            queue.call_method1(intern!(py, "appendleft"), (batch,))?;
            break;
        }
        take(names, &queue, &turn, actor, events)?;
        left -= size;
    }
    Ok(left)
}

/// Whether a system has nothing to look at between turns: what `System._most` asks.
fn usual<'py>(slots: &SystemSlots, system: &Bound<'py, PyAny>) -> PyResult<bool> {
    Ok(!slots.lanes.holds(system)?
        && !slots.outdated.holds(system)?
        && slots.meter.is_none(system)?
        && slots.chronicle.is_none(system)?)
}

/// Take turns until the clock says *end*, or there is something else to look at; true if no turn is left.
#[pyfunction]
#[pyo3(signature = (system, end, clock, /))]
pub fn take_all<'py>(system: Bound<'py, PyAny>, end: f64, clock: Bound<'py, PyAny>) -> PyResult<bool> {
    let py = system.py();
    let names = SystemNames::of(py)?;
    let slots = &names.slots;
    if !system.get_type().is(&names.class) || !slots.piece.get(&system)?.is_none() {
        return Ok(false);
    }
    let (queue, turn) = (slots.queue.get(&system)?, slots.turn.get(&system)?);
    let outer = current_turn::replace(Some(turn.clone().unbind()));
    let some = || -> PyResult<Option<bool>> {
        if queue.is_empty()? {
            return Ok(Some(!slots.postponed.holds(&system)?));
        }
        let events = queue.get_item(0)?.get_item(1)?;
        let laned = events.len()? as isize > names.large || !events.is_exact_instance_of::<PyList>();
        if laned || !usual(slots, &system)? || clock.call0()?.extract::<f64>()? >= end {
            return Ok(Some(false));
        }
        let left = take_turns(turn.clone(), names.large, EVENTS, None)?;
        slots.taken.add(&system, (EVENTS - left) as i64)?;
        Ok(None)
    };
    let done = loop {
        match some() {
            Ok(None) => (),
            Ok(Some(done)) => break Ok(done),
            Err(error) => break Err(error),
        }
    };
    drop(current_turn::replace(outer));
    done
}

/// Take turns for so many *seconds*: `System.drain`, which is called where turns are not all there is to do.
pub fn drain(system: &Bound<'_, PyAny>, seconds: f64) -> PyResult<()> {
    let py = system.py();
    let names = SystemNames::of(py)?;
    let method = system.getattr(intern!(py, "drain"))?;
    let mut left = seconds;
    if bound_to(&method, &names.drain)?.is_some() {
        let stopwatch = system.getattr(intern!(py, "stopwatch"))?;
        let clock = if stopwatch.is_none() { names.module.bind(py).getattr(intern!(py, "perf_counter"))? } else { stopwatch };
        let end = clock.call0()?.extract::<f64>()? + seconds;
        if names.take_open.bind(py).call1((system, end, &clock))?.is_truthy()? {
            return Ok(());
        }
        left = (end - clock.call0()?.extract::<f64>()?).max(0.0);
    }
    method.call1((left,)).map(|_| ())
}

/// Free the last of *things*, if nobody else knows them, compounds part by part; *most* of these at once.
#[pyfunction]
#[pyo3(signature = (things, most, /))]
pub fn free_some(things: Bound<'_, PyList>, most: usize) -> PyResult<()> {
    let mut parts = Vec::new();
    for _ in 0..most {
        let last = things.len();
        let thing = match parts.pop() {
            Some(part) => part,
            None if last == 0 => break,
            None => {
                let thing = things.get_item(last - 1)?;
                things.del_slice(last - 1, last)?;
                thing
            }
        };
        if let Ok(tuple) = thing.cast_exact::<PyTuple>() {
            if thing.get_refcnt() == 1 {
                parts.extend(tuple.iter());
            }
        }
    }
    parts.into_iter().try_for_each(|part| things.append(part))
}
