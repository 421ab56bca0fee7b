//! The usual packets of a session, done and written at once: `relay/session/usual_packets.py`.
//!
//! A packet is usual if it is a Turn of messages, assertions and retractions at dataspaces, of values without references.
//! All others are left to the session, and nothing of them is done here.

use crate::membrane::weigh;
use crate::delivery::{event, noted, open, ActorNames, Kind, ASSERT, MESSAGE, RETRACT};
use crate::frozen::{is_exactly, is_leaf, Names};
use crate::index::Gate;
use crate::msgpack::{self, Msgpack};
use crate::packets::{self, Most, Read};
use crate::preserves::Preserves;
use crate::object_slots::Slot;
use crate::packet_scanner::asserts_more;
use crate::turns::{note_assertion, note_retraction, TurnNames};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyTuple, PyType};
use std::collections::HashSet;

/// What a note costs: `relay.session.backlog`.
const ENTRY: i64 = 256;

static SESSION_NAMES: PyOnceLock<SessionNames> = PyOnceLock::new();

/// What `relay` calls by these names.
struct SessionNames {
    assert: Py<PyAny>,
    retract: Py<PyAny>,
    message: Py<PyAny>,
    observe: Py<PyAny>,
    interest: Py<PyAny>,
    reference: Py<PyType>,
    crossing: Slot,
    count: Slot,
    numbers: Slot,
    alike: Slot,
    most: Slot,
    bytes: Slot,
    size: Slot,
    assertion_form: Slot,
    assertion_handle: Slot,
    assertion_key: Slot,
    assertion_pins: Slot,
    assertion_size: Slot,
    index: Slot,
    exports: Slot,
    crossings: Slot,
    oid: Slot,
    sent: Slot,
    asserted: i64, // the most assertions of a packet that are done at once
    most_alike: i64, // and the most different ones of one hash
}

impl SessionNames {
    fn of(py: Python<'_>) -> PyResult<&SessionNames> {
        SESSION_NAMES.get_or_try_init(py, || {
            let class = |module: &str, name: &str| -> PyResult<Bound<'_, PyType>> {
                Ok(py.import(module)?.getattr(name)?.cast_into::<PyType>()?)
            };
            let packets = py.import("relay.protocol.packets")?;
            let interest = py.import("syndicate.index.interest")?;
            let crossing = class("relay.session.membrane", "Crossing")?;
            let assertions = class("relay.session.peer_assertions", "PeerAssertions")?;
            let assertion = class("relay.session.peer_assertions", "PeerAssertion")?;
            let membrane = class("relay.session.membrane", "Membrane")?;
            let proxy = class("relay.session.proxy", "Proxy")?;
            Ok(SessionNames {
                assert: packets.getattr("A")?.unbind(),
                retract: packets.getattr("R")?.unbind(),
                message: packets.getattr("M")?.unbind(),
                observe: interest.getattr("OBSERVE")?.unbind(),
                interest: interest.getattr("INTEREST")?.unbind(),
                reference: class("relay.protocol.packets", "WireRef")?.unbind(),
                crossing: Slot::of(&crossing, "ref")?,
                count: Slot::of(&crossing, "count")?,
                numbers: Slot::of(&assertions, "_assertions")?,
                alike: Slot::of(&assertions, "_alike")?,
                most: Slot::of(&assertions, "_most")?,
                bytes: Slot::of(&assertions, "_bytes")?,
                size: Slot::of(&assertions, "size")?,
                assertion_form: Slot::of(&assertion, "form")?,
                assertion_handle: Slot::of(&assertion, "handle")?,
                assertion_key: Slot::of(&assertion, "key")?,
                assertion_pins: Slot::of(&assertion, "pins")?,
                assertion_size: Slot::of(&assertion, "size")?,
                index: Slot::of(&class("syndicate.actors.dataspace", "Dataspace")?, "index")?,
                exports: Slot::of(&membrane, "exports")?,
                crossings: Slot::of(&membrane, "_crossings")?,
                oid: Slot::of(&proxy, "oid")?,
                sent: Slot::of(&proxy, "sent")?,
                asserted: py.import("relay.session.state")?.getattr("PART")?.extract()?,
                most_alike: py.import("relay.session.peer_assertions")?.getattr("ALIKE")?.extract()?,
            })
        })
    }
}

/// What a codec reads and writes by: its `tables`.
struct Tables<'a, 'py> {
    preserves: bool,
    symbols: &'a Bound<'py, PyDict>,
    references: &'a Bound<'py, PyDict>,
    written: &'a Bound<'py, PyDict>,
    most: Most,
}

impl<'a, 'py> Tables<'a, 'py> {
    fn of(tables: &'a Bound<'py, PyTuple>) -> PyResult<Tables<'a, 'py>> {
        let [name, symbols, references, written, nodes, levels, bytes] = tables.as_slice() else {
            return Err(PyValueError::new_err("a codec has a name, three tables and three limits"));
        };
        Ok(Tables {
            preserves: name.cast::<PyString>()?.to_str()? == "preserves",
            symbols: symbols.cast()?,
            references: references.cast()?,
            written: written.cast()?,
            most: Most { nodes: nodes.extract()?, levels: levels.extract()?, bytes: bytes.extract()? },
        })
    }

    fn read(&self, data: &Bound<'py, PyBytes>, at: usize) -> PyResult<Read<'py>> {
        if self.preserves {
            packets::read::<Preserves>(data, at, self.symbols, self.references, self.most)
        } else {
            packets::read::<Msgpack>(data, at, self.symbols, self.references, self.most)
        }
    }

    fn write(&self, form: &Bound<'py, PyAny>, reference: &Bound<'py, PyType>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        if self.preserves {
            packets::write::<Preserves>(form, self.written, reference, self.most)
        } else {
            packets::write::<Msgpack>(form, self.written, reference, self.most)
        }
    }
}

#[inline]
fn number_of(object: &Bound<'_, PyAny>) -> Option<i64> {
    object.is_exact_instance_of::<PyInt>().then(|| object.extract().ok()).flatten().filter(|number| *number >= 0)
}

#[inline]
fn head_of<'py>(form: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match form.cast_exact::<PyTuple>() {
        Ok(items) if !items.is_empty() => Ok(items.as_slice()[0].clone()),
        _ => Ok(form.py().None().into_bound(form.py())),
    }
}

fn count(names: &SessionNames, crossing: &Bound<'_, PyAny>) -> PyResult<i64> {
    names.count.get(crossing)?.extract()
}

fn set_count(names: &SessionNames, crossing: &Bound<'_, PyAny>, count: i64) -> PyResult<()> {
    names.count.set(crossing, count.into_pyobject(crossing.py())?.into_any())
}

/// Count back, as `Membrane.release` does.
fn release<'py>(names: &SessionNames, membrane: &Bound<'py, PyAny>, pins: &Bound<'py, PyAny>) -> PyResult<()> {
    for crossing in pins.cast::<PyList>()?.iter() {
        let count = count(names, &crossing)?;
        if count > 1 {
            set_count(names, &crossing, count - 1)?;
        } else {
            membrane.call_method1(intern!(membrane.py(), "release"), ((crossing,),))?;
        }
    }
    Ok(())
}

// ------------------------------------------------------------------------------------------------ in

/// The dataspace of ours that a reference is of itself, and nothing before it.
fn dataspace<'py>(
    names: &Names,
    actors: &ActorNames,
    session: &SessionNames,
    target: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !is_exactly(target, &names.reference) || !actors.raw.holds(target)? {
        return Ok(None);
    }
    let entity = actors.entity.get(target)?;
    Ok(if session.index.fits(&entity) { Some(entity) } else { None })
}

/// `PeerAssertions.add`, where *numbers* are those that are in use.
fn remember<'py>(
    names: &SessionNames,
    assertions: &Bound<'py, PyAny>,
    numbers: &Bound<'py, PyDict>,
    number: i64,
    form: &Bound<'py, PyAny>,
    pins: Bound<'py, PyList>,
    size: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let py = form.py();
    let alike = names.alike.get(assertions)?.cast_into::<PyDict>()?;
    let key = form.hash()?.into_pyobject(py)?.into_any();
    if alike.contains(&key)? {
        return assertions.call_method1(intern!(py, "add"), (number, form, pins, size));
    }
    let assertion = names.assertion_form.allocate(py)?;
    names.assertion_handle.set(&assertion, py.None().into_bound(py))?;
    names.assertion_form.set(&assertion, form.clone())?;
    names.assertion_pins.set(&assertion, pins.into_any())?;
    names.assertion_key.set(&assertion, key.clone())?;
    names.assertion_size.set(&assertion, size.into_pyobject(py)?.into_any())?;
    alike.set_item(key, &assertion)?;
    numbers.set_item(number, &assertion)?;
    let all: i64 = names.size.get(assertions)?.extract()?;
    names.size.set(assertions, (all + size).into_pyobject(py)?.into_any())?;
    Ok(assertion)
}

/// An event that is understood.
struct Act<'py> {
    kind: &'static Kind,
    target: Bound<'py, PyAny>,
    value: Bound<'py, PyAny>,
    dataspace: Bound<'py, PyAny>,
    /// Of an assertion: what counts it, and its number.  Of a retraction: the assertion, and its number.
    other: Bound<'py, PyAny>,
    number: i64,
}

struct Doing<'a, 'py> {
    names: &'a Names,
    actors: &'a ActorNames,
    session: &'a SessionNames,
    turns: &'a TurnNames,
    turn: &'a Bound<'py, PyAny>,
    facet: &'a Bound<'py, PyAny>,
    membrane: &'a Bound<'py, PyAny>,
    exports: Bound<'py, PyDict>,
    assertions: &'a Bound<'py, PyAny>,
    numbers: Bound<'py, PyDict>,
    /// What the last dataspaces say of their constructors.
    audiences: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>, i64)>,
}

impl<'py> Doing<'_, 'py> {
    fn dataspace(&self, target: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        dataspace(self.names, self.actors, self.session, target)
    }

    fn is_usual(&self, value: &Bound<'py, PyAny>) -> PyResult<bool> {
        Ok(is_leaf(self.names, value) && !head_of(value)?.is(&self.session.observe))
    }

    /// What the events of a packet say; `None` if one of them is not usual.
    fn understood(&self, form: &Bound<'py, PyAny>, most: usize) -> PyResult<Option<Vec<Act<'py>>>> {
        let Ok(entries) = form.cast_exact::<PyTuple>() else { return Ok(None) };
        if entries.len() < 2 || entries.len() > most + 1 || !entries.get_borrowed_item(0)?.is(&self.names.seq) {
            return Ok(None);
        }
        let mut acts = Vec::with_capacity(entries.len() - 1);
        let mut seen = HashSet::new();
        let (mut retracted, mut more, mut bytes) = (false, 0, 0);
        for entry in entries.iter_borrowed().skip(1) {
            let Some(act) = self.event(&entry)? else { return Ok(None) };
            if act.kind.is(&ASSERT) {
                more += 1;
                bytes += ENTRY + weigh(self.names, &act.value, 0)?;
                if retracted || more > self.session.asserted || self.is_crowded(&act.value)? {
                    return Ok(None);
                }
            }
            retracted = retracted || act.kind.is(&RETRACT);
            if entries.len() > 2 && !act.kind.is(&MESSAGE) && !seen.insert(act.number) {
                return Ok(None);
            }
            acts.push(act);
        }
        if more > 0 {
            let (names, assertions) = (self.session, self.assertions);
            let size: i64 = names.size.get(assertions)?.extract()?;
            if self.numbers.len() as i64 + more > names.most.get(assertions)?.extract()?
                || size + bytes > names.bytes.get(assertions)?.extract()?
            {
                return Ok(None);
            }
        }
        Ok(Some(acts))
    }

    /// Whether a packet may bring too many different assertions of one hash: the session says what is wrong.
    fn is_crowded(&self, value: &Bound<'py, PyAny>) -> PyResult<bool> {
        let alike = self.session.alike.get(self.assertions)?.cast_into::<PyDict>()?;
        let Some(there) = alike.get_item(value.hash()?)? else { return Ok(false) };
        Ok(there.cast::<PyDict>().is_ok_and(|forms| forms.len() as i64 + self.session.asserted > self.session.most_alike))
    }

    fn event(&self, entry: &Bound<'py, PyAny>) -> PyResult<Option<Act<'py>>> {
        let Ok(entry) = entry.cast_exact::<PyTuple>() else { return Ok(None) };
        let [head, oid, event] = entry.as_slice() else { return Ok(None) };
        if !head.is(&self.names.seq) {
            return Ok(None);
        }
        let (Some(_), Ok(event)) = (number_of(oid), event.cast_exact::<PyTuple>()) else { return Ok(None) };
        let Some((kind, parts)) = event.as_slice().split_first() else { return Ok(None) };
        if kind.is(&self.session.retract) {
            let [number] = parts else { return Ok(None) };
            let Some(assertion) = self.numbers.get_item(number)? else { return Ok(None) };
            let Some(number) = number_of(number) else { return Ok(None) };
            let handle = self.session.assertion_handle.get(&assertion)?;
            if !self.turns.handle_form.fits(&handle) {
                return Ok(None);
            }
            let (target, value) = (self.turns.handle_target.get(&handle)?, self.turns.handle_form.get(&handle)?);
            if head_of(&value)?.is(&self.session.interest) {
                return Ok(None);
            }
            let Some(dataspace) = self.dataspace(&target)? else { return Ok(None) };
            return Ok(Some(Act { kind: &RETRACT, target, value, dataspace, other: assertion, number }));
        }
        let (kind, value, handle) = match parts {
            [value] if kind.is(&self.session.message) => (&MESSAGE, value, None),
            [value, handle] if kind.is(&self.session.assert) => (&ASSERT, value, Some(handle)),
            _ => return Ok(None),
        };
        if !self.is_usual(value)? {
            return Ok(None);
        }
        let Some(crossing) = self.exports.get_item(oid)? else { return Ok(None) };
        let target = self.session.crossing.get(&crossing)?;
        let Some(dataspace) = self.dataspace(&target)? else { return Ok(None) };
        let mut number = 0;
        if let Some(handle) = handle {
            match number_of(handle) {
                Some(found) if !self.numbers.contains(handle)? => number = found,
                _ => return Ok(None),
            }
        }
        Ok(Some(Act { kind, target, value: value.clone(), dataspace, other: crossing, number }))
    }

    /// What an event can reach, as `Reach` counts it: whom it does if a look-up shows more than half of what is *left*.
    fn reach(&mut self, act: &Act<'py>, left: i64) -> PyResult<i64> {
        let most = self.most(act)?;
        if 2 * most <= left {
            return Ok(most);
        }
        let gate = self.actors.gate.get(&act.dataspace)?;
        match gate.cast_exact::<Gate>() {
            Ok(gate) => gate.get().audience(&act.value),
            Err(_) => {
                let index = self.session.index.get(&act.dataspace)?;
                index.call_method1(intern!(index.py(), "audience"), (&act.value,))?.extract()
            }
        }
    }

    /// The most that a value of this constructor can reach: a look-up.
    fn most(&mut self, act: &Act<'py>) -> PyResult<i64> {
        let head = head_of(&act.value)?;
        for (dataspace, constructor, cost) in &self.audiences {
            if dataspace.is(&act.dataspace) && constructor.is(&head) {
                return Ok(*cost);
            }
        }
        let index = self.session.index.get(&act.dataspace)?;
        let cost = index.call_method1(intern!(head.py(), "reach"), (&head,))?.extract()?;
        if self.audiences.len() > 8 {
            self.audiences.clear();
        }
        self.audiences.push((act.dataspace.clone(), head, cost));
        Ok(cost)
    }

    fn act(&self, act: Act<'py>) -> PyResult<()> {
        let py = self.turn.py();
        if act.kind.is(&MESSAGE) {
            let actor = self.actors.actor.get(&self.actors.facet.get(&act.target)?)?;
            let pending = self.actors.pending.get(self.turn)?;
            let event = event(MESSAGE.of(py), act.target, act.value, None)?;
            return match noted(&pending, &actor)? {
                Some(events) => events.append(event),
                None if self.actors.system.get(&actor)?.is(&self.actors.turn_system.get(self.turn)?) => {
                    open(&pending, &actor, event)
                }
                None => Err(PyErr::from_value(self.actors.foreign.bind(py).call1((actor,))?)),
            };
        }
        if act.kind.is(&ASSERT) {
            let names = self.session;
            set_count(names, &act.other, count(names, &act.other)? + 1)?;
            let pins = PyList::new(py, [&act.other])?;
            let size = ENTRY + weigh(self.names, &act.value, 0)?;
            let assertion = remember(names, self.assertions, &self.numbers, act.number, &act.value, pins, size)?;
            let handle = note_assertion(self.turn.clone(), self.facet.clone(), act.target, act.value)?;
            return names.assertion_handle.set(&assertion, handle);
        }
        self.forget(act.number, &act.other)?;
        note_retraction(self.turn.clone(), self.session.assertion_handle.get(&act.other)?)?;
        release(self.session, self.membrane, &self.session.assertion_pins.get(&act.other)?)
    }

    /// `PeerAssertions.remove`.
    fn forget(&self, number: i64, assertion: &Bound<'py, PyAny>) -> PyResult<()> {
        let (py, names) = (assertion.py(), self.session);
        let alike = names.alike.get(self.assertions)?.cast_into::<PyDict>()?;
        let key = names.assertion_key.get(assertion)?;
        if !alike.get_item(&key)?.is_some_and(|only| only.is(assertion)) {
            return self.assertions.call_method1(intern!(py, "remove"), (number,)).map(|_| ());
        }
        alike.del_item(key)?;
        self.numbers.del_item(number)?;
        let all: i64 = names.size.get(self.assertions)?.extract()?;
        let size: i64 = names.assertion_size.get(assertion)?.extract()?;
        names.size.set(self.assertions, (all - size).into_pyobject(py)?.into_any())
    }

    fn is_late(&self) -> PyResult<bool> {
        Ok(!self.turns.late.get(self.turn)?.cast::<PyDict>()?.is_empty())
    }
}

/// What was done of the bytes: where the rest begins, whether that is the beginning of a packet, packets, events, what
/// they reach, how many assert and how many retract, and the only event so far, if what it reaches was not asked.
pub type Done<'py> = (usize, bool, usize, usize, i64, i64, i64, Option<Bound<'py, PyAny>>);

/// Do what the usual packets from a place in *data* say, until another one comes, or until it is enough for a turn.
#[pyfunction]
#[pyo3(signature = (turn, facet, membrane, assertions, tables, data, at, events, share, enough, /))]
#[allow(clippy::too_many_arguments)]
pub fn do_usual<'py>(
    turn: Bound<'py, PyAny>,
    facet: Bound<'py, PyAny>,
    membrane: Bound<'py, PyAny>,
    assertions: Bound<'py, PyAny>,
    tables: Bound<'py, PyTuple>,
    data: Bound<'py, PyBytes>,
    at: usize,
    events: usize,
    share: usize,
    enough: i64,
) -> PyResult<Done<'py>> {
    done_of(turn, facet, membrane, assertions, tables, &data, at, events, share, enough)
}

#[allow(clippy::too_many_arguments)]
pub fn done_of<'py>(
    turn: Bound<'py, PyAny>,
    facet: Bound<'py, PyAny>,
    membrane: Bound<'py, PyAny>,
    assertions: Bound<'py, PyAny>,
    tables: Bound<'py, PyTuple>,
    data: &Bound<'py, PyBytes>,
    mut at: usize,
    events: usize,
    share: usize,
    enough: i64,
) -> PyResult<Done<'py>> {
    let py = turn.py();
    let tables = Tables::of(&tables)?;
    let session = SessionNames::of(py)?;
    let mut doing = Doing {
        names: Names::of(py)?,
        actors: ActorNames::of(py)?,
        session,
        turns: TurnNames::of(py)?,
        turn: &turn,
        facet: &facet,
        membrane: &membrane,
        exports: session.exports.get(&membrane)?.cast_into()?,
        numbers: session.numbers.get(&assertions)?.cast_into()?,
        assertions: &assertions,
        audiences: Vec::new(),
    };
    let (mut packets, mut done, mut reached, mut asserted, mut retracted) = (0, 0, 0, 0, 0);
    let mut only: Option<Act<'py>> = None; // the only event so far, whose reach nobody needs unless another one comes
    let mut short = false;
    while at < data.as_bytes().len() {
        let bytes = data.as_bytes();
        if !tables.preserves
            && (msgpack::items(bytes, at).is_some_and(|items| items > events + 1)
                || asserts_more(bytes, at, session.asserted as usize))
        {
            break; // nothing of it is read here that is read again elsewhere
        }
        let (form, end) = match tables.read(data, at)? {
            Read::Whole(form, end) => (form, end),
            Read::Short => {
                short = true;
                break;
            }
            Read::Rare => break,
        };
        if doing.is_late()? {
            turn.call_method0(intern!(py, "hand_over"))?;
        }
        if done >= share {
            break;
        }
        let Some(acts) = doing.understood(&form, events)? else { break };
        if packets > 0 || acts.len() > 1 {
            let mut total = reached;
            if let Some(act) = &only {
                total += doing.reach(act, enough - total)?;
                if total > enough {
                    break; // too much, and goes at any rate
                }
            }
            (reached, only) = (total, None);
            for act in &acts {
                total += doing.reach(act, enough - total)?;
            }
            if total > enough {
                break;
            }
            reached = total;
        } else if let Some(act) = acts.first() {
            let (target, value, dataspace, other) =
                (act.target.clone(), act.value.clone(), act.dataspace.clone(), act.other.clone());
            only = Some(Act { kind: act.kind, target, value, dataspace, other, number: act.number });
        }
        (packets, done, at) = (packets + 1, done + acts.len(), end);
        for act in acts {
            asserted += i64::from(act.kind.is(&ASSERT));
            retracted += i64::from(act.kind.is(&RETRACT));
            doing.act(act)?;
        }
    }
    if only.is_some() {
        asserted = 0; // whoever asks what it reaches counts it
    }
    let only = only.map(|act| event(act.kind.of(py), act.target, act.value, Some(act.other))).transpose()?;
    Ok((at, short, packets, done, reached, asserted, retracted, only))
}

/// Understand as many of *entries*, from the first, as assert usual values: `Session._understood`.
#[pyfunction]
#[pyo3(signature = (membrane, assertions, entries, /))]
pub fn understand_usual<'py>(
    membrane: Bound<'py, PyAny>,
    assertions: Bound<'py, PyAny>,
    entries: Bound<'py, PyList>,
) -> PyResult<Bound<'py, PyList>> {
    let py = membrane.py();
    let (names, session, actors) = (Names::of(py)?, SessionNames::of(py)?, ActorNames::of(py)?);
    let exports = session.exports.get(&membrane)?.cast_into::<PyDict>()?;
    let numbers = session.numbers.get(&assertions)?.cast_into::<PyDict>()?;
    let understood = PyList::empty(py);
    let most: i64 = session.most.get(&assertions)?.extract()?;
    let bytes: i64 = session.bytes.get(&assertions)?.extract()?;
    for entry in entries.iter() {
        let Ok(entry) = entry.cast_into_exact::<PyTuple>() else { break };
        let (oid, event) = (entry.get_item(0)?, entry.get_item(1)?);
        let Ok(event) = event.cast_into_exact::<PyTuple>() else { break };
        if !event.get_borrowed_item(0)?.is(&session.assert) || event.len() != 3 {
            break;
        }
        let (value, handle) = (event.get_item(1)?, event.get_item(2)?);
        let (Some(crossing), Some(number)) = (exports.get_item(oid)?, number_of(&handle)) else { break };
        let target = session.crossing.get(&crossing)?;
        if !is_leaf(names, &value)
            || head_of(&value)?.is(&session.observe)
            || dataspace(names, actors, session, &target)?.is_none()
            || numbers.contains(&handle)?
        {
            break;
        }
        let size = ENTRY + weigh(names, &value, 0)?;
        if numbers.len() as i64 >= most || session.size.number(&assertions)? + size > bytes {
            break;
        }
        set_count(session, &crossing, count(session, &crossing)? + 1)?;
        let pins = PyList::new(py, [&crossing])?;
        let assertion = remember(session, &assertions, &numbers, number, &value, pins, size)?;
        understood.append(PyTuple::new(py, [ASSERT.of(py).bind(py), &target, &value, &assertion])?)?;
    }
    Ok(understood)
}

/// Do as many of *acts*, from the first, as assert something at a dataspace: `Session._act`.
#[pyfunction]
#[pyo3(signature = (turn, facet, acts, /))]
pub fn act_usual<'py>(turn: Bound<'py, PyAny>, facet: Bound<'py, PyAny>, acts: Bound<'py, PyAny>) -> PyResult<usize> {
    let py = turn.py();
    let (names, session, actors) = (Names::of(py)?, SessionNames::of(py)?, ActorNames::of(py)?);
    let Ok(acts) = acts.cast_into_exact::<PyList>() else { return Ok(0) };
    let mut done = 0;
    for act in acts.iter() {
        let Ok(act) = act.cast_into_exact::<PyTuple>() else { break };
        let (kind, target, assertion) = (act.get_item(0)?, act.get_item(1)?, act.get_item(3)?);
        if !kind.is(ASSERT.of(py)) || target.is_none() || dataspace(names, actors, session, &target)?.is_none() {
            break;
        }
        let handle = note_assertion(turn.clone(), facet.clone(), target, act.get_item(2)?)?;
        session.assertion_handle.set(&assertion, handle)?;
        done += 1;
    }
    Ok(done)
}

// ------------------------------------------------------------------------------------------------ out

/// What is known of a note when all of them are to be written.
enum Saying<'py> {
    Message,
    Assert { proxy: Bound<'py, PyAny>, handle: Bound<'py, PyAny>, value: Bound<'py, PyAny>, crossing: Bound<'py, PyAny> },
    Retract { sent: Bound<'py, PyDict>, handle: Bound<'py, PyAny>, pins: Bound<'py, PyAny> },
}

/// The bytes of the packet that says *notes*, and the number of its last assertion; `None` if one of them is not usual.
#[pyfunction]
#[pyo3(signature = (membrane, tables, notes, last, /))]
pub fn say_usual<'py>(
    membrane: Bound<'py, PyAny>,
    tables: Bound<'py, PyTuple>,
    notes: Bound<'py, PyList>,
    last: i64,
) -> PyResult<Option<(Bound<'py, PyBytes>, i64)>> {
    let py = notes.py();
    let (names, session) = (Names::of(py)?, SessionNames::of(py)?);
    let crossings = session.crossings.get(&membrane)?.cast_into::<PyDict>()?;
    let seq = names.seq.bind(py);
    let mut entries = Vec::with_capacity(notes.len() + 1);
    entries.push(seq.clone());
    let mut said = Vec::with_capacity(notes.len());
    let (mut number, mut over) = (last, false);
    for note in notes.iter() {
        let Ok(note) = note.cast_exact::<PyTuple>() else { return Ok(None) };
        let [kind, proxy, value, handle] = note.as_slice() else { return Ok(None) };
        let event = if kind.is(RETRACT.of(py)) {
            over = true;
            let sent = session.sent.get(proxy)?.cast_into::<PyDict>()?;
            let Some(entry) = sent.get_item(handle)? else { return Ok(None) };
            let entry = entry.cast_into::<PyTuple>()?;
            said.push(Saying::Retract { sent, handle: handle.clone(), pins: entry.get_item(1)? });
            PyTuple::new(py, [session.retract.bind(py), &entry.get_item(0)?])?
        } else if over || !is_leaf(names, value) {
            return Ok(None);
        } else if kind.is(MESSAGE.of(py)) {
            said.push(Saying::Message);
            PyTuple::new(py, [session.message.bind(py), value])?
        } else if kind.is(ASSERT.of(py)) {
            let Some(crossing) = crossings.get_item(proxy.getattr(intern!(py, "ref"))?)? else { return Ok(None) };
            number += 1;
            let event = [session.assert.bind(py).clone(), value.clone(), number.into_pyobject(py)?.into_any()];
            said.push(Saying::Assert { proxy: proxy.clone(), handle: handle.clone(), value: value.clone(), crossing });
            PyTuple::new(py, event)?
        } else {
            return Ok(None);
        };
        entries.push(PyTuple::new(py, [seq, &session.oid.get(proxy)?, event.as_any()])?.into_any());
    }
    let form = PyTuple::new(py, entries)?.into_any();
    let Some(packet) = Tables::of(&tables)?.write(&form, session.reference.bind(py))? else { return Ok(None) };
    number = last;
    for saying in said {
        match saying {
            Saying::Message => (),
            Saying::Assert { proxy, handle, value, crossing } => {
                number += 1;
                set_count(session, &crossing, count(session, &crossing)? + 1)?;
                let pins = PyList::new(py, [crossing])?;
                let entry = [number.into_pyobject(py)?.into_any(), pins.into_any(), value];
                let sent = session.sent.get(&proxy)?.cast_into::<PyDict>()?;
                sent.set_item(handle, PyTuple::new(py, entry)?)?;
            }
            Saying::Retract { sent, handle, pins } => {
                sent.del_item(handle)?;
                release(session, &membrane, &pins)?;
            }
        }
    }
    Ok(Some((packet, number)))
}
