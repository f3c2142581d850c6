//! A hash that never changes: it orders equal scores, on every node alike.

/// FNV-1a, finished by a multiplicative mix; never 0, except for the empty string.
pub fn stable_hash(text: &[u8]) -> u64 {
    if text.is_empty() {
        return 0;
    }
    let mut value = 0xCBF2_9CE4_8422_2325u64;
    for &byte in text {
        value = (value ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
    }
    value ^= value >> 32;
    value = value.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    value ^= value >> 32;
    value | u64::from(value == 0)
}
