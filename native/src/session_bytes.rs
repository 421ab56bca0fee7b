//! A hop: bytes of a peer into the turn that does what they say, and what a turn notes for a peer into bytes.
//!
//! `Session.feed` and `Session._flush` in `relay/session/session.py` specify the two, `Proxy` in
//! `relay/session/proxy.py` what is between them.

use crate::delivery::{ASSERT, MESSAGE, RETRACT};
use crate::usual_packets::{done_of, say_usual, Done};
use crate::poller::wake_link;
use crate::object_slots::{bound_to, slots_of, Slot};
use crate::turns::TurnNames;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyList, PyTuple, PyType};

/// What is said again for many, once it is so large: `relay.session.shared_bytes`.
const LARGE: usize = 1 << 12;
/// The most events that are encoded without a look at their size: `relay.session.session`.
const FEW: usize = 64;
/// The events after which a peer lets others have their turns, and what they may reach: `relay.session.session`, `reach`.
const SHARE: usize = 64;
const ENOUGH: i64 = 1 << 12;

static HOP_NAMES: PyOnceLock<HopNames> = PyOnceLock::new();

slots_of! {
    /// Those of a session.
    SessionSlots {
        facet: "facet", codec: "codec", limits: "limits", membrane: "membrane", outbox: "outbox", backlog: "backlog",
        assertions: "assertions", debt: "_debt", intake: "_intake", trail: "_trail", noted: "_noted", turns: "_turns",
        gulp: "_gulp", busy: "busy", silent: "_silent", untrusted: "untrusted", ping: "ping", packets_in: "packets_in",
        events_in: "events_in", bytes_in: "bytes_in", asserts_in: "asserts_in", retracts_in: "retracts_in",
        retracts_out: "retracts_out", last_handle: "last_handle", wake: "_wake", pings: "pings",
    }
}

slots_of! {
    /// Those of an outbox.
    OutboxSlots {
        queue: "_queue", flying: "_flying", waiting: "waiting", unsent: "unsent", events: "events", bytes: "bytes",
        packets: "packets", said: "said",
    }
}

slots_of! {
    /// Those of the limits of a connection.
    LimitsSlots { ahead: "ahead", debt: "debt", idle: "idle", liveness: "liveness" }
}

slots_of! {
    /// Those of the codec of one encoding.
    CodecSlots { tables: "tables", rest: "_rest" }
}

slots_of! {
    /// Those of a debt.
    DebtSlots { bytes: "bytes", handled: "_handled", small: "_small" }
}

/// What `relay.session` calls by these names.
pub struct HopNames {
    session_class: Py<PyType>,
    flush: Py<PyAny>,
    pub session: SessionSlots,
    pub outbox: OutboxSlots,
    pub debt: DebtSlots,
    pub limits: LimitsSlots,
    preserves: CodecSlots,
    taken: Slot, // of a packet in Preserves that has not fully arrived
    msgpack: CodecSlots,
    alive: Slot,
    agreed: Slot,
    pieces: Slot,
    cut: Slot,
    entries: Slot,
    pub stale: Slot,
    said: Py<PyAny>,
    parts: Slot,
    no_notes: Py<PyAny>,
}

impl HopNames {
    pub fn of(py: Python<'_>) -> PyResult<&HopNames> {
        HOP_NAMES.get_or_try_init(py, || {
            let class = |module: &str, name: &str| -> PyResult<Bound<'_, PyType>> {
                Ok(py.import(module)?.getattr(name)?.cast_into::<PyType>()?)
            };
            let session = class("relay.session.session", "Session")?;
            let backlog = class("relay.session.backlog", "Backlog")?;
            let intake = class("relay.session.intake", "Intake")?;
            let preserves = class("relay.protocol.codec.preserves", "Preserves")?;
            Ok(HopNames {
                session: SessionSlots::of(&session)?,
                flush: session.getattr("_flush")?.unbind(),
                session_class: session.unbind(),
                outbox: OutboxSlots::of(&class("relay.session.outbox", "Outbox")?)?,
                debt: DebtSlots::of(&class("relay.session.intake", "Debt")?)?,
                alive: Slot::of(&class("syndicate.actors.facet", "Facet")?, "alive")?,
                agreed: Slot::of(&class("relay.session.causes", "PacketTrail")?, "agreed")?,
                pieces: Slot::of(&intake, "pieces")?,
                cut: Slot::of(&intake, "cut")?,
                entries: Slot::of(&backlog, "entries")?,
                stale: Slot::of(&backlog, "_stale")?,
                limits: LimitsSlots::of(&class("relay.protocol.limits", "Limits")?)?,
                preserves: CodecSlots::of(&preserves)?,
                taken: Slot::of(&preserves, "_taken")?,
                msgpack: CodecSlots::of(&class("relay.protocol.codec.msgpack", "Msgpack")?)?,
                parts: Slot::of(&class("relay.session.shared_bytes", "Repetition")?, "parts")?,
                said: py.import("relay.session.shared_bytes")?.getattr("said")?.unbind(),
                no_notes: py.import("relay.session.state")?.getattr("NO_NOTES")?.unbind(),
            })
        })
    }

    /// Whether no turn is needed for a ping of a peer: the conditions of `Session.hear`.
    pub fn pings(&self, session: &Bound<'_, PyAny>) -> PyResult<bool> {
        let slots = &self.session;
        let (codec, intake) = (slots.codec.get(session)?, slots.intake.get(session)?);
        Ok(self.msgpack.rest.fits(&codec)
            && self.msgpack.rest.get(&codec)?.is_empty()?
            && self.pieces.get(&intake)?.cast::<PyList>()?.is_empty()
            && self.cut.get(&intake)?.cast::<PyBytes>()?.as_bytes().is_empty()
            && !slots.busy.holds(session)?
            && !slots.untrusted.holds(session)?
            && !slots.silent.holds(session)?
            && slots.packets_in.number(session)? > 0
            && self.alive.holds(&slots.facet.get(session)?)?)
    }

    /// Take so many pings for heard, without a turn: the rest of `Session.hear`.
    pub fn hear(&self, session: &Bound<'_, PyAny>, count: usize) -> PyResult<()> {
        self.session.bytes_in.add(session, count as i64)?;
        self.session.packets_in.add(session, count as i64)?;
        self.session.pings.flag(session, true)
    }

    /// Whether more is to be sent than is encoded: `Session.behind`.
    pub fn behind(&self, session: &Bound<'_, PyAny>) -> PyResult<bool> {
        let turns = self.session.turns.get(session)?;
        Ok(!turns.cast::<PyList>()?.is_empty() || self.entries.holds(&self.session.backlog.get(session)?)?)
    }
}

impl HopNames {
    /// The slots of a codec, if it is one of those whose packets kernels read and write.
    fn codec(&self, codec: &Bound<'_, PyAny>) -> Option<&CodecSlots> {
        [&self.preserves, &self.msgpack].into_iter().find(|slots| slots.tables.fits(codec))
    }

    /// What a codec reads and writes by, if kernels may.
    fn tables<'py>(&self, codec: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let Some(slots) = self.codec(codec) else { return Ok(None) };
        let tables = slots.tables.get(codec)?;
        Ok(if tables.is_none() { None } else { Some(tables.cast_into()?) })
    }

    /// Whether a codec that has tables has a packet which has not fully arrived: `partial` in its class.
    fn is_partial(&self, codec: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Some(slots) = self.codec(codec) else { return Ok(true) };
        Ok(!slots.rest.get(codec)?.is_empty()? || (self.taken.fits(codec) && self.taken.holds(codec)?))
    }
}

/// What was done of the next bytes of a peer.
pub enum Taken<'py> {
    Nothing,
    All,
    Some(Done<'py>),
}

/// Do the usual packets that *data*, the next bytes of a peer, are, if nothing else of it is on its way in:
/// `Session.feed`, as far as the kernel `do_usual` goes.
pub fn taken_in<'py>(
    session: &Bound<'py, PyAny>,
    turn: Bound<'py, PyAny>,
    data: &Bound<'py, PyBytes>,
) -> PyResult<Taken<'py>> {
    let py = turn.py();
    let names = HopNames::of(py)?;
    let slots = &names.session;
    let codec = slots.codec.get(session)?;
    let Some(tables) = names.tables(&codec)? else { return Ok(Taken::Nothing) };
    let (intake, facet) = (slots.intake.get(session)?, slots.facet.get(session)?);
    if slots.busy.holds(session)?
        || slots.untrusted.holds(session)?
        || slots.silent.holds(session)?
        || slots.packets_in.number(session)? == 0
        || !names.alive.holds(&facet)?
        || names.agreed.holds(&slots.trail.get(session)?)?
        || !names.pieces.get(&intake)?.cast::<PyList>()?.is_empty()
        || !names.cut.get(&intake)?.cast::<PyBytes>()?.as_bytes().is_empty()
        || names.is_partial(&codec)?
    {
        return Ok(Taken::Nothing);
    }
    let (assertions, membrane) = (slots.assertions.get(session)?, slots.membrane.get(session)?);
    let most = slots.gulp.get(session)?.extract()?;
    let done = done_of(turn, facet, membrane, assertions, tables, data, 0, most, SHARE, ENOUGH)?;
    let (at, _, packets, events, _, asserted, retracted, only): &Done<'py> = &done;
    let size = data.as_bytes().len();
    if *at < size {
        return Ok(Taken::Some(done));
    }
    let asserts = match only {
        Some(act) if act.get_item(0)?.is(ASSERT.of(py)) => asserted + 1,
        _ => *asserted,
    };
    slots.packets_in.add(session, *packets as i64)?;
    slots.events_in.add(session, *events as i64)?;
    slots.bytes_in.add(session, size as i64)?;
    slots.asserts_in.add(session, asserts)?;
    slots.retracts_in.add(session, *retracted)?;
    let debt = slots.debt.get(session)?;
    let owed = names.debt.bytes.number(&debt)?;
    if owed <= names.debt.small.number(&debt)? {
        names.debt.bytes.put(&debt, owed - size as i64 - names.debt.handled.number(&debt)?)?;
        names.debt.handled.put(&debt, 0)?;
    } else {
        debt.call_method1(intern!(py, "done"), (size,))?;
    }
    Ok(Taken::All)
}

/// Whether the last large packet may be what *notes* say.
fn is_said(names: &HopNames, notes: &Bound<'_, PyList>) -> PyResult<bool> {
    let parts = names.parts.get(names.said.bind(notes.py()))?.cast_into::<PyTuple>()?;
    if parts.is_empty() || notes.len() != 1 {
        return Ok(false);
    }
    let value = notes.get_item(0)?.get_item(2)?;
    let Ok(value) = value.cast_exact::<PyTuple>() else { return Ok(false) };
    Ok(value.len() == parts.len() && value.iter_borrowed().zip(parts.iter_borrowed()).all(|(one, other)| one.is(&other)))
}

/// Queue what a turn has noted for the peer as one packet, if that is usual and nothing else waits; whether it is done.
fn said_now<'py>(session: &Bound<'py, PyAny>, notes: Bound<'py, PyList>) -> PyResult<bool> {
    let py = notes.py();
    let names = HopNames::of(py)?;
    let slots = &names.session;
    let Some(tables) = names.tables(&slots.codec.get(session)?)? else { return Ok(false) };
    let (outbox, said, limits) = (slots.outbox.get(session)?, names.said.bind(py), slots.limits.get(session)?);
    let waiting = names.outbox.waiting.number(&outbox)?;
    if notes.len() > FEW
        || slots.silent.holds(session)?
        || names.behind(session)?
        || names.agreed.holds(&slots.trail.get(session)?)?
        || names.outbox.unsent.holds(&outbox)?
        || waiting > names.limits.ahead.number(&limits)?
        || is_said(names, &notes)?
    {
        return Ok(false);
    }
    let last = slots.last_handle.number(session)?;
    let Some((packet, number)) = say_usual(slots.membrane.get(session)?, tables, notes.clone(), last)? else {
        return Ok(false);
    };
    slots.last_handle.add(session, number - last)?;
    let retract = RETRACT.of(py);
    let mut retracted = 0;
    for note in notes.iter() {
        retracted += i64::from(note.cast_into::<PyTuple>()?.get_borrowed_item(0)?.is(retract));
    }
    slots.retracts_out.add(session, retracted)?;
    names.outbox.queue.get(&outbox)?.cast::<PyList>()?.append(&packet)?;
    let size = packet.as_bytes().len();
    names.outbox.waiting.put(&outbox, waiting + size as i64)?;
    names.outbox.events.add(&outbox, notes.len() as i64)?;
    if size >= LARGE && notes.len() == 1 {
        said.call_method1(intern!(py, "remember"), (notes, outbox, limits))?;
    }
    Ok(true)
}

/// Do what a bound `Session._flush` does, if *act* is one and what it says is usual; whether it is done.
pub fn flush_session(act: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = act.py();
    if CLASS.get(py).is_none() {
        return Ok(false); // there is no session yet
    }
    let names = HopNames::of(py)?;
    let Some(session) = bound_to(act, &names.flush)?.filter(|session| session.get_type().is(&names.session_class)) else {
        return Ok(false);
    };
    let notes = names.session.noted.get(&session)?.cast_into::<PyList>()?;
    if !said_now(&session, notes)? {
        return Ok(false);
    }
    names.session.noted.set(&session, names.no_notes.bind(py).clone())?;
    let wake = names.session.wake.get(&session)?;
    if !wake_link(&wake)? {
        wake.call0()?;
    }
    Ok(true)
}

// ------------------------------------------------------------------------------------------------ a proxy

static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static SESSION_OF: PyOnceLock<Slot> = PyOnceLock::new();

/// The class of proxies as it is; its messages are noted by `note_message` from now on.
pub fn proxy_kernel(specification: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    CLASS.get_or_init(specification.py(), || specification.clone().unbind());
    Ok(specification)
}

/// Note a message for a proxy's peer, as `Proxy.message` and `Session.note` do; False if *entity* is not one of a session.
#[inline]
pub fn note_message<'py>(turn: &Bound<'py, PyAny>, entity: &Bound<'py, PyAny>, value: &Bound<'py, PyAny>) -> PyResult<bool> {
    let py = turn.py();
    let Some(class) = CLASS.get(py) else { return Ok(false) };
    if !entity.get_type().is(class) {
        return Ok(false);
    }
    let session = SESSION_OF.get_or_try_init(py, || Slot::of(class.bind(py).cast()?, "session"))?.get(entity)?;
    let names = HopNames::of(py)?;
    if !session.get_type().is(&names.session_class) {
        return Ok(false);
    }
    if names.session.silent.holds(&session)? {
        return Ok(true);
    }
    let mut noted = names.session.noted.get(&session)?.cast_into::<PyList>()?;
    if noted.is_empty() {
        noted = PyList::empty(py); // that of all sessions is nobody's
        names.session.noted.set(&session, noted.clone().into_any())?;
        let afterwards = TurnNames::of(py)?.afterwards.get(turn)?;
        afterwards.cast::<PyList>()?.append(session.getattr(intern!(py, "_flush"))?)?;
    }
    let none = py.None();
    noted.append(PyTuple::new(py, [MESSAGE.of(py).bind(py), entity, value, none.bind(py)])?)?;
    Ok(true)
}
