//! The heads of a packet of msgpack, one after the other: `relay/protocol/codec/packet_scanner.py`.

use crate::msgpack::{REFERENCE, REFERENCE_NODES};
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
    let number = |at: usize, width: usize| bytes[at..at + width].iter().fold(0, |n, byte| n << 8 | usize::from(*byte));
    while left > 0 && at < bytes.len() {
        let tag = bytes[at];
        let array = match tag {
            0x90..=0x9F => Some(0),
            0xDC => Some(2),
            0xDD => Some(4),
            _ => None,
        };
        if let Some(width) = array {
            if at + width >= bytes.len() {
                break;
            }
            let count = if width == 0 { usize::from(tag & 15) } else { number(at + 1, width) };
            at += 1 + width;
            nodes += count;
            if nodes > most || open.len() > levels {
                return Ok(None);
            }
            open.push(left - 1);
            left = count;
        } else {
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
                _ => return Ok(None),
            };
            let extension = matches!(tag, 0xD4..=0xD8 | 0xC7..=0xC9);
            let head = width + usize::from(extension);
            if head > 0 && at + head >= bytes.len() {
                break;
            }
            if extension && bytes[at + head] == REFERENCE {
                nodes += REFERENCE_NODES;
            }
            if nodes > most {
                return Ok(None);
            }
            at += 1 + head + if width == 0 { size } else { number(at + 1, width) };
            left -= 1;
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
