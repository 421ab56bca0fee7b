//! Native kernels: the hottest functions of `syndicate`, each beside the Python that specifies it.
//!
//! A kernel has no behaviour, no option and no error text of its own.  For whatever is rare it calls its specification,
//! the Python function or class of the same name.  `docs/design/native.md` says what is here, and why.

mod arrangement;
mod current_turn;
mod delivery;
mod elements;
mod extremes;
mod fields;
mod frozen;
mod hash_table;
mod index;
mod index_table;
mod join;
mod membrane;
mod msgpack;
mod object_slots;
mod packet_scanner;
mod packets;
mod pipeline;
mod poller;
mod preserves;
mod record_class;
mod session_bytes;
mod turns;
mod usual_packets;
mod websocket_frames;
mod word_loop;
mod words;

use pyo3::exceptions::PyLookupError;
use pyo3::prelude::*;

/// What Python and this library agree on: `syndicate.native.INTERFACE`, which must be the same.
const INTERFACE: u32 = 21;

/// The kernel in the place of a Python function or class, which it keeps for what is rare.
#[pyfunction]
fn kernel<'py>(name: &str, specification: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = specification.py();
    match name {
        "freeze" => frozen::freeze_kernel(specification),
        "thaw" => frozen::thaw_kernel(specification),
        "sealed" => Ok(wrap_pyfunction!(frozen::sealed, py)?.into_any()),
        "record_freezer" => frozen::record_kernel(specification),
        "make_at_once" => Ok(wrap_pyfunction!(record_class::make_at_once, py)?.into_any()),
        "store_of" => Ok(wrap_pyfunction!(frozen::store_of, py)?.into_any()),
        "factory" => Ok(wrap_pyfunction!(index_table::factory, py)?.into_any()),
        "Gate" => Ok(py.get_type::<index::Gate>().into_any()),
        "Here" => Ok(py.get_type::<current_turn::Here>().into_any()),
        "Telling" => Ok(py.get_type::<delivery::Telling>().into_any()),
        "send" => delivery::send_kernel(specification),
        "assert_" => turns::assert_kernel(specification),
        "note_assertion" => Ok(wrap_pyfunction!(turns::note_assertion, py)?.into_any()),
        "note_retraction" => Ok(wrap_pyfunction!(turns::note_retraction, py)?.into_any()),
        "retract" => turns::retract_kernel(specification),
        "settle_facets" => fields::settle_kernel(specification),
        "read_field" => fields::read_kernel(specification),
        "write_field" => fields::write_kernel(specification),
        "take_all" => Ok(wrap_pyfunction!(turns::take_all, py)?.into_any()),
        "take_turns" => Ok(wrap_pyfunction!(turns::take_turns, py)?.into_any()),
        "free_some" => Ok(wrap_pyfunction!(turns::free_some, py)?.into_any()),
        "deliver" => delivery::deliver_kernel(specification),
        "crossed" => membrane::crossed_kernel(specification),
        "weight" => membrane::weight_kernel(specification),
        "words" => words::words_kernel(specification),
        "read_msgpack" => Ok(wrap_pyfunction!(msgpack::read_msgpack, py)?.into_any()),
        "read_items" => Ok(wrap_pyfunction!(msgpack::read_items, py)?.into_any()),
        "write_msgpack" => Ok(wrap_pyfunction!(msgpack::write_msgpack, py)?.into_any()),
        "pass_heads" => Ok(wrap_pyfunction!(packet_scanner::pass_heads, py)?.into_any()),
        "read_preserves" => Ok(wrap_pyfunction!(preserves::read_preserves, py)?.into_any()),
        "write_preserves" => Ok(wrap_pyfunction!(preserves::write_preserves, py)?.into_any()),
        "whole_frames" => Ok(wrap_pyfunction!(websocket_frames::whole_frames, py)?.into_any()),
        "do_usual" => Ok(wrap_pyfunction!(usual_packets::do_usual, py)?.into_any()),
        "understand_usual" => Ok(wrap_pyfunction!(usual_packets::understand_usual, py)?.into_any()),
        "act_usual" => Ok(wrap_pyfunction!(usual_packets::act_usual, py)?.into_any()),
        "say_usual" => Ok(wrap_pyfunction!(usual_packets::say_usual, py)?.into_any()),
        "ask_idle" => Ok(wrap_pyfunction!(poller::ask_idle, py)?.into_any()),
        "make_round" => Ok(wrap_pyfunction!(poller::make_round, py)?.into_any()),
        "make_rounds" => Ok(wrap_pyfunction!(poller::make_rounds, py)?.into_any()),
        "Tap" => poller::tap_kernel(specification),
        "Proxy" => session_bytes::proxy_kernel(specification),
        _ => Err(PyLookupError::new_err(format!("no native kernel is called {name}"))),
    }
}

#[pymodule(gil_used = true)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("INTERFACE", INTERFACE)?;
    module.add("FEW", packets::FEW)?;
    module.add("SOURCES", env!("SYNDICATE_SOURCES"))?;
    module.add_function(wrap_pyfunction!(kernel, module)?)
}
