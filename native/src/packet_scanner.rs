//! The heads of a packet of msgpack, one after the other: `relay/protocol/codec/packet_scanner.py`.

use crate::msgpack::{items, REFERENCE, REFERENCE_NODES, SYMBOL};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

/// The place behind the last head that has come, how many values are left of the compound there, and how many nodes
/// there were; `None`, and *around* as it was, if something is wrong.
#[pyfunction]
#[pyo3(signature = (data, at, left, nodes, around, most, levels, /))]
pub fn pass_heads(
    data: Bound<'_, PyBytes>,
    mut at: usize,
    mut left: usize,
    mut nodes: usize,
    around: Bound<'_, PyList>,
    most: usize,
    levels: usize,
) -> PyResult<Option<(usize, usize, usize)>> {
    let bytes = data.as_bytes();
    let mut open: Vec<usize> = around.extract()?;
    while left > 0 && at < bytes.len() {
        match head(bytes, at) {
            Head::Array(count, next) => {
                nodes += count;
                if nodes > most || open.len() > levels {
                    return Ok(None);
                }
                open.push(left - 1);
                (at, left) = (next, count);
            }
            Head::Atom(code, next) => {
                if code == Some(REFERENCE) {
                    nodes += REFERENCE_NODES;
                }
                if nodes > most {
                    return Ok(None);
                }
                (at, left) = (next, left - 1);
            }
            Head::Short => break,
            Head::Wrong => return Ok(None),
        }
        while left == 0 {
            match open.pop() {
                Some(before) => left = before,
                None => break,
            }
        }
    }
    around.set_slice(0, around.len(), PyList::new(around.py(), open)?.as_any())?;
    Ok(Some((at, left, nodes)))
}

/// What is at a place of a packet.
enum Head {
    /// So many values follow, from that place on.
    Array(usize, usize),
    /// A value without parts, the code of its extension if it is one, and where the next begins.
    Atom(Option<u8>, usize),
    /// Not all of the head has come.
    Short,
    /// No value of ours.
    Wrong,
}

fn head(bytes: &[u8], at: usize) -> Head {
    let number = |at: usize, width: usize| bytes[at..at + width].iter().fold(0, |n, byte| n << 8 | usize::from(*byte));
    let Some(&tag) = bytes.get(at) else { return Head::Short };
    let array = match tag {
        0x90..=0x9F => Some(0),
        0xDC => Some(2),
        0xDD => Some(4),
        _ => None,
    };
    if let Some(width) = array {
        if at + width >= bytes.len() {
            return Head::Short;
        }
        let count = if width == 0 { usize::from(tag & 15) } else { number(at + 1, width) };
        return Head::Array(count, at + 1 + width);
    }
    let (width, size) = match tag {
        0x00..=0x7F | 0xE0..=0xFF | 0xC0 | 0xC2 | 0xC3 => (0, 0),
        0xA0..=0xBF => (0, usize::from(tag - 0xA0)),
        0xCC..=0xCF => (0, 1 << (tag - 0xCC)),
        0xD0..=0xD3 => (0, 1 << (tag - 0xD0)),
        0xCA | 0xCB => (0, 4 << (tag - 0xCA)),
        0xD4..=0xD8 => (0, 1 << (tag - 0xD4)),
        0xC4..=0xC6 => (1 << (tag - 0xC4), 0),
        0xD9..=0xDB => (1 << (tag - 0xD9), 0),
        0xC7..=0xC9 => (1 << (tag - 0xC7), 0),
        _ => return Head::Wrong,
    };
    let extension = matches!(tag, 0xD4..=0xD8 | 0xC7..=0xC9);
    let length = width + usize::from(extension);
    if length > 0 && at + length >= bytes.len() {
        return Head::Short;
    }
    let next = at + 1 + length + if width == 0 { size } else { number(at + 1, width) };
    Head::Atom(extension.then(|| bytes[at + length]), next)
}

/// Whether the long packet *at* a place has more than so many assertions, as far as that shows without reading it.
pub fn asserts_more(bytes: &[u8], mut at: usize, most: usize) -> bool {
    const ASSERT: [u8; 3] = [0xD4, SYMBOL, b'A'];
    if !items(bytes, at).is_some_and(|items| items > most + 1) {
        return false;
    }
    let mut around = [0; LEVELS]; // what is left behind each compound that is open
    let (mut open, mut left, mut count) = (0, 1, 0);
    while left > 0 {
        match head(bytes, at) {
            Head::Array(size, next) if open < LEVELS => {
                around[open] = left - 1;
                (open, left, at) = (open + 1, size, next);
                count += usize::from(open == EVENT && bytes[at..].starts_with(&ASSERT));
                if count > most {
                    return true;
                }
            }
            Head::Atom(_, next) => (left, at) = (left - 1, next),
            _ => return false,
        }
        while left == 0 && open > 0 {
            open -= 1;
            left = around[open];
        }
    }
    false
}

/// Compounds that are passed over, one in the other; what is deeper is read.
const LEVELS: usize = 16;
/// An event is in an entry, which is in a packet.
const EVENT: usize = 3;
