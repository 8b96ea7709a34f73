//! Formats of buffers: whether their bytes are data, or addresses that no peer may see or choose.

/// Types that are addresses: objects, pointers, texts elsewhere, functions.
const ADDRESSES: &[u8] = b"O&PzZX";

/// Returns true if memory of that format (PEP 3118, as `struct`, NumPy and ctypes write it) holds
/// addresses.
pub(crate) fn holds_addresses(format: &[u8]) -> bool {
    let mut rest = format;
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        match first {
            // A field's name, which may be any text. One that could be types as well counts as
            // such.
            b':' => {
                let Some(end) = rest.iter().position(|&byte| byte == b':') else {
                    return format.iter().any(|byte| ADDRESSES.contains(byte));
                };
                let (name, after) = rest.split_at(end);
                let is_odd = name.iter().any(|byte| b"<>=!@^{}".contains(byte));
                if is_odd && name.iter().any(|byte| ADDRESSES.contains(byte)) {
                    return true;
                }
                rest = &after[1..];
            }
            // Complex numbers.
            b'Z' if matches!(rest.first(), Some(b'f' | b'd' | b'g')) => rest = &rest[1..],
            address if ADDRESSES.contains(&address) => return true,
            _ => {}
        }
    }
    false
}
