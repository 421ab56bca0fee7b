//! Frames of WebSocket: `relay.transport.websocket_frames.whole_frames`.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

const BINARY: u8 = 0x82;
const MASKED: u8 = 0x80;

/// The payloads of the whole binary frames from *at* on, and where what comes next begins.
#[pyfunction]
#[pyo3(signature = (data, at, masked, most, /))]
pub fn whole_frames<'py>(
    py: Python<'py>,
    data: &[u8],
    mut at: usize,
    masked: bool,
    most: usize,
) -> (Bound<'py, PyBytes>, usize) {
    let mut payloads: Vec<u8> = Vec::new();
    let mask = if masked { MASKED } else { 0 };
    while data.len() >= at + 2 && data[at] == BINARY && data[at + 1] & MASKED == mask {
        let mut length = usize::from(data[at + 1] & 127);
        let mut start = at + 2;
        if length == 126 {
            if data.len() < start + 2 {
                break;
            }
            length = usize::from(u16::from_be_bytes([data[start], data[start + 1]]));
            start += 2;
            if length < 126 {
                break;
            }
        } else if length == 127 {
            break;
        }
        let head = if masked { 4 } else { 0 };
        let end = start + head + length;
        if end > data.len() || length > most {
            break;
        }
        let payload = &data[start + head..end];
        if masked {
            let key = &data[start..start + 4];
            payloads.extend(payload.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key));
        } else {
            payloads.extend_from_slice(payload);
        }
        at = end;
    }
    (PyBytes::new(py, &payloads), at)
}
