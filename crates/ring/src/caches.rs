//! How large the processor's caches are, as the kernel tells: how far copies may spread before
//! they push out what is still wanted.
//!
//! Asked once per process. What is not told is taken to be as on a common server.

use std::path::Path;
use std::sync::OnceLock;

/// Sizes of the data caches that copies between two processors pass through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caches {
    /// What one processor has for itself: its second level.
    pub private_bytes: usize,
    /// What processors have together: the last level.
    pub shared_bytes: usize,
}

impl Caches {
    /// A common server's.
    pub const USUAL: Self = Self {
        private_bytes: 1 << 20,
        shared_bytes: 32 << 20,
    };

    /// This machine's. Reads a few small files when first called.
    pub fn here() -> Self {
        static HERE: OnceLock<Caches> = OnceLock::new();
        *HERE.get_or_init(|| {
            let told = Path::new("/sys/devices/system/cpu/cpu0/cache");
            Self::told_by((0..8).map(|index| told.join(format!("index{index}"))))
        })
    }

    fn told_by(indices: impl Iterator<Item = impl AsRef<Path>>) -> Self {
        let mut levels = [None; 4];
        for index in indices {
            let read = |name: &str| std::fs::read_to_string(index.as_ref().join(name)).ok();
            let (Some(level), Some(kind), Some(size)) = (read("level"), read("type"), read("size"))
            else {
                continue;
            };
            let place = level.trim().parse::<usize>().ok();
            if let (Some(place), Some(bytes)) = (place, size_bytes(&size))
                && kind.trim() != "Instruction"
                && let Some(found) = levels.get_mut(place)
            {
                *found = Some(bytes);
            }
        }
        let private_bytes = levels[2].or(levels[1]);
        let shared_bytes = levels[3].or(levels[2]);
        Self {
            private_bytes: private_bytes.unwrap_or(Self::USUAL.private_bytes),
            shared_bytes: shared_bytes.unwrap_or(Self::USUAL.shared_bytes),
        }
    }

    /// From how many bytes on, written one after the other, the first are not in the cache
    /// any more when the last are written; it is then better not to put them there at all.
    pub const fn outgrown_bytes(self) -> usize {
        // Half, as what is copied was somewhere before: `docs/performance.md`.
        self.shared_bytes / 2
    }

    /// How much a sender and a receiver should have between them: lines that have left the
    /// private cache of the one that wrote them last are fetched sooner than lines in it.
    pub fn window_bytes(self) -> usize {
        (4 * self.private_bytes).min(self.shared_bytes / 4)
    }
}

/// A size as the kernel writes it: `1024K`.
fn size_bytes(text: &str) -> Option<usize> {
    let text = text.trim();
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        _ => (text, 0),
    };
    let number: usize = digits.parse().ok().filter(|&number| number > 0)?;
    number.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_the_kernel_writes_them() {
        assert_eq!(size_bytes("32K\n"), Some(32 << 10));
        assert_eq!(size_bytes("8M"), Some(8 << 20));
        assert_eq!(size_bytes("512"), Some(512));
        for wrong in ["", "K", "0K", "-1K", "1G", "18446744073709551615K"] {
            assert_eq!(size_bytes(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn what_is_not_told_is_as_usual() {
        assert_eq!(
            Caches::told_by(["/nonexistent"].iter().map(Path::new)),
            Caches::USUAL
        );
    }

    #[test]
    fn this_machine_has_sizes_that_can_be_used() {
        let here = Caches::here();
        assert!(here.window_bytes() > 0 && here.window_bytes() <= here.shared_bytes);
        assert!(here.outgrown_bytes() > 0);
        assert_eq!(here, Caches::here());
    }
}
