//! Fields, and the dataflow blocks that run again when these change.
//!
//! Their specifications are in `syndicate/actors`: `read_field` and `write_field` in `field.py`, `settle_facets` in
//! `turn.py`, with what it comes to in `dataflow.py`, and `Computed` in `verbs.py`.

use crate::frozen::{frozen, specified, Names};
use crate::current_turn;
use crate::object_slots::{bound_to, slots_of, take_out, Slot};
use crate::turns::{any, note_assertion, note_retraction, TurnNames};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyFrozenSet, PyInt, PyString, PyTuple, PyType};

static READ: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static WRITE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static SETTLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static FIELD_NAMES: PyOnceLock<FieldNames> = PyOnceLock::new();
static COMPUTED_NAMES: PyOnceLock<ComputedNames> = PyOnceLock::new();

/// The most blocks of a turn that run here: far below the number from which they are counted one by one.
const FEW: usize = 100;

slots_of! {
    /// Those of a field.
    FieldSlots { turn: "_turn", value: "_value", actor: "actor", readers: "readers", writers: "writers" }
}

slots_of! {
    /// Those of a turn that only fields and blocks look at.
    FlowSlots { actor: "actor", facet: "facet", block: "block", writer: "writer", settling: "settling" }
}

slots_of! {
    /// Those of a block.
    BlockSlots { facet: "facet", function: "fn", reads: "reads", running: "running", unordered: "unordered" }
}

slots_of! {
    /// Those of a computed assertion.
    ComputedSlots { block: "block", early: "early", facet: "facet", function: "fn", handle: "handle", target: "target" }
}

/// What `syndicate.actors` calls by these names.
struct FieldNames {
    field: FieldSlots,
    turn: FlowSlots,
    block: BlockSlots,
    heights: Slot,
    alive: Slot,
    atoms: Py<PyFrozenSet>,
    unchanged: Py<PyAny>,
}

impl FieldNames {
    fn of(py: Python<'_>) -> PyResult<&FieldNames> {
        FIELD_NAMES.get_or_try_init(py, || {
            let class = |module: &str, name: &str| -> PyResult<Bound<'_, PyType>> {
                Ok(py.import(module)?.getattr(name)?.cast_into::<PyType>()?)
            };
            let module = py.import("syndicate.actors.field")?;
            Ok(FieldNames {
                field: FieldSlots::of(&class("syndicate.actors.field", "Field")?)?,
                turn: FlowSlots::of(&class("syndicate.actors.turn", "Turn")?)?,
                block: BlockSlots::of(&class("syndicate.actors.facet", "Block")?)?,
                heights: Slot::of(&class("syndicate.actors.dataflow", "Settling")?, "heights")?,
                alive: Slot::of(&class("syndicate.actors.facet", "Facet")?, "alive")?,
                atoms: module.getattr("_ATOMS")?.cast_into::<PyFrozenSet>()?.unbind(),
                unchanged: module.getattr("unchanged")?.unbind(),
            })
        })
    }
}

/// What `syndicate.actors.verbs` calls by these names: it is not there before something is asserted.
struct ComputedNames {
    slots: ComputedSlots,
    renew: Py<PyAny>,
}

impl ComputedNames {
    fn of(py: Python<'_>) -> PyResult<&ComputedNames> {
        COMPUTED_NAMES.get_or_try_init(py, || {
            let class = py.import("syndicate.actors.verbs")?.getattr("Computed")?.cast_into::<PyType>()?;
            Ok(ComputedNames { slots: ComputedSlots::of(&class)?, renew: class.getattr("_renew")?.unbind() })
        })
    }
}

// ------------------------------------------------------------------------------------------------ fields

pub fn read_kernel(specification: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let py = specification.py();
    READ.get_or_init(py, || specification.unbind());
    Ok(wrap_pyfunction!(read_field, py)?.into_any())
}

pub fn write_kernel(specification: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let py = specification.py();
    WRITE.get_or_init(py, || specification.unbind());
    Ok(wrap_pyfunction!(write_field, py)?.into_any())
}

/// What `field.value` is; a dataflow block that reads it runs again when it changes.
#[pyfunction]
fn read_field(field: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let py = field.py();
    let names = FieldNames::of(py)?;
    let turn = names.field.turn.get(&field)?;
    let (actor, block) = (names.turn.actor.get(&turn)?, names.turn.block.get(&turn)?);
    if !actor.is_none() && !actor.is(&names.field.actor.get(&field)?) {
        return specified(py, &READ).call1((field,));
    }
    if !block.is_none() {
        if any(names.field.writers.get(&field)?)? {
            return specified(py, &READ).call1((field,));
        }
        names.block.reads.get(&block)?.cast::<PyDict>()?.set_item(&field, py.None())?;
        names.field.readers.get(&field)?.cast::<PyDict>()?.set_item(&block, py.None())?;
    }
    names.field.value.get(&field)
}

/// Whether *new* is the same value as *old*, and neither can have changed inside.
fn is_unchanged(names: &FieldNames, old: &Bound<'_, PyAny>, new: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = new.py();
    let plain = new.is_exact_instance_of::<PyInt>() || new.is_exact_instance_of::<PyString>();
    if plain || names.atoms.bind(py).as_any().contains(new.get_type())? {
        return Ok(new.get_type().is(old.get_type()) && new.eq(old)?);
    }
    names.unchanged.bind(py).call1((old, new))?.is_truthy()
}

/// What `field.value = value` does.
#[pyfunction]
fn write_field(field: Bound<'_, PyAny>, value: Bound<'_, PyAny>) -> PyResult<()> {
    let py = field.py();
    let (names, turns) = (FieldNames::of(py)?, TurnNames::of(py)?);
    let turn = names.field.turn.get(&field)?;
    let writer = names.turn.writer.get(&turn)?;
    if !names.turn.actor.get(&turn)?.is(&names.field.actor.get(&field)?)
        || !turns.journal.get(&turn)?.is_none()
        || !(writer.is_none() || names.field.writers.get(&field)?.contains(&writer)?)
    {
        return specified(py, &WRITE).call1((field, value)).map(|_| ());
    }
    let old = names.field.value.get(&field)?;
    names.field.value.set(&field, value.clone())?;
    let readers = names.field.readers.get(&field)?.cast_into::<PyDict>()?;
    if !readers.is_empty() && !is_unchanged(names, &old, &value)? {
        let damaged = turns.damaged.get(&turn)?.cast_into::<PyDict>()?;
        for (block, nothing) in readers.iter() {
            damaged.set_item(block, nothing)?;
        }
    }
    Ok(())
}

// ------------------------------------------------------------------------------------------------ blocks

pub fn settle_kernel(specification: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let py = specification.py();
    SETTLE.get_or_init(py, || specification.unbind());
    Ok(wrap_pyfunction!(settle_facets, py)?.into_any())
}

/// Run damaged dataflow blocks and stop the facets that turned out to be inert, until neither is left to do.
#[pyfunction]
#[pyo3(signature = (turn, blocks = 0))]
fn settle_facets(turn: Bound<'_, PyAny>, blocks: usize) -> PyResult<()> {
    settle(&turn, blocks)
}

/// The same: what is damaged alone runs here, and all else where it is specified.
pub fn settle(turn: &Bound<'_, PyAny>, mut blocks: usize) -> PyResult<()> {
    let py = turn.py();
    let (names, turns) = (FieldNames::of(py)?, TurnNames::of(py)?);
    let outer = names.turn.facet.get(turn)?;
    loop {
        let damaged = turns.damaged.get(turn)?.cast_into::<PyDict>()?;
        let lone = damaged.len() == 1
            && blocks < FEW
            && names.heights.get(&names.turn.settling.get(turn)?)?.is_empty()?;
        if !lone {
            if damaged.is_empty() && !any(turns.suspects.get(turn)?)? {
                return Ok(());
            }
            return specified(py, &SETTLE).call1((turn, blocks)).map(|_| ());
        }
        let item = turns.popitem.call0(&damaged)?.cast_into::<PyTuple>()?;
        blocks += 1;
        run_block(names, turn, &item.get_item(0)?)?;
        names.turn.facet.set(turn, outer.clone())?;
    }
}

/// Run a block whose turn it is, as `Settling.settle` does.
fn run_block<'py>(names: &FieldNames, turn: &Bound<'py, PyAny>, block: &Bound<'py, PyAny>) -> PyResult<()> {
    let py = turn.py();
    let facet = names.block.facet.get(block)?;
    if !names.alive.holds(&facet)? {
        return Ok(());
    }
    unread(names, block)?;
    names.turn.block.set(turn, block.clone())?;
    names.turn.writer.set(turn, block.clone())?;
    names.turn.facet.set(turn, facet)?;
    names.block.running.flag(block, true)?;
    let function = names.block.function.get(block)?;
    let computed = ComputedNames::of(py)?;
    match bound_to(&function, &computed.renew)? {
        Some(assertion) if computed.slots.function.fits(&assertion) => renew(computed, names, turn, &assertion)?,
        _ => function.call0().map(|_| ())?,
    }
    names.block.running.flag(block, false)?;
    names.block.unordered.flag(block, false)?;
    names.turn.block.set(turn, py.None().into_bound(py))?;
    names.turn.writer.set(turn, py.None().into_bound(py))?;
    if !names.alive.holds(&names.block.facet.get(block)?)? {
        block.call_method0(pyo3::intern!(py, "forget"))?;
    }
    Ok(())
}

/// Let a block stop being run by what it read.
fn unread(names: &FieldNames, block: &Bound<'_, PyAny>) -> PyResult<()> {
    let reads = names.block.reads.get(block)?.cast_into::<PyDict>()?;
    if reads.is_empty() {
        return Ok(());
    }
    for (field, _) in reads.iter() {
        take_out(names.field.readers.get(&field)?.cast::<PyDict>()?, block)?;
    }
    reads.clear();
    Ok(())
}

/// Assert what a function computes in the place of what it did before, as `Computed._renew` does.
fn renew<'py>(
    computed: &ComputedNames,
    names: &FieldNames,
    turn: &Bound<'py, PyAny>,
    assertion: &Bound<'py, PyAny>,
) -> PyResult<()> {
    let py = turn.py();
    let slots = &computed.slots;
    let function = slots.function.get(assertion)?;
    if function.is_none() {
        return Ok(());
    }
    let value = function.call0()?;
    let usual = !value.is_none()
        && current_turn::turn(py).is_some_and(|running| running.is(turn))
        && TurnNames::of(py)?.journal.get(turn)?.is_none()
        && slots.early.get(assertion)?.is_none()
        && !names.block.unordered.holds(&slots.block.get(assertion)?)?;
    if !usual {
        return assertion.call_method1(pyo3::intern!(py, "_show"), (value,)).map(|_| ());
    }
    let (facet, target) = (slots.facet.get(assertion)?, slots.target.get(assertion)?);
    let form = frozen(Names::of(py)?, &value, 0)?;
    let old = slots.handle.get(assertion)?;
    if !old.is_none() && is_live(&old, &facet, &target)? && form.eq(TurnNames::of(py)?.handle_form.get(&old)?)? {
        return Ok(());
    }
    let handle = note_assertion(turn.clone(), facet, target, form)?;
    slots.handle.set(assertion, handle)?;
    if old.is_none() {
        return Ok(());
    }
    note_retraction(turn.clone(), old)
}

/// Whether an assertion of *facet* at *target* is there.
fn is_live(handle: &Bound<'_, PyAny>, facet: &Bound<'_, PyAny>, target: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = handle.py();
    let actors = crate::delivery::ActorNames::of(py)?;
    Ok(TurnNames::of(py)?.handles.get(facet)?.contains(handle)? && actors.alive.holds(&actors.facet.get(target)?)?)
}
