//! The six modes of a lock, as those of the VMS lock manager.

use std::fmt;

/// The mode of a lock. Two locks of one resource are held together only if their modes are
/// [compatible](Mode::is_compatible).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mode {
    /// NL, null: grants nothing, and keeps the resource with its value block.
    Nl,
    /// CR, concurrent read: reads, while others may write.
    Cr,
    /// CW, concurrent write: writes, while others may write.
    Cw,
    /// PR, protected read: reads, and nobody writes. The usual shared lock.
    Pr,
    /// PW, protected write: writes, and nobody else does. The usual update lock.
    Pw,
    /// EX, exclusive: nobody else reads or writes.
    Ex,
}

/// The matrix of the VMS lock manager, row by row.
#[cfg(test)]
pub(crate) const MATRIX: [&str; 6] = ["111111", "111110", "111000", "110100", "110000", "100000"];

pub(crate) const MODES: [Mode; 6] = [Mode::Nl, Mode::Cr, Mode::Cw, Mode::Pr, Mode::Pw, Mode::Ex];

impl Mode {
    /// The modes that may be held beside it, a bit for each.
    const fn beside(self) -> u8 {
        match self {
            Self::Nl => 0b11_1111,
            Self::Cr => 0b01_1111,
            Self::Cw => 0b00_0111,
            Self::Pr => 0b00_1011,
            Self::Pw => 0b00_0011,
            Self::Ex => 0b00_0001,
        }
    }

    /// True if one holder may have a lock in this mode while another one has the other mode.
    pub const fn is_compatible(self, other: Self) -> bool {
        self.beside() >> (other as u8) & 1 == 1
    }

    /// True if it excludes nothing that the other mode does not exclude: a conversion from the
    /// other one to it is granted at once.
    pub const fn is_weaker_or_same(self, other: Self) -> bool {
        other.beside() & !self.beside() == 0
    }

    /// True if its holder may write the value block: PW and EX.
    pub const fn writes_value(self) -> bool {
        matches!(self, Self::Pw | Self::Ex)
    }

    pub(crate) fn of_code(code: u8) -> Option<Self> {
        MODES.get(usize::from(code)).copied()
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nl => "NL",
            Self::Cr => "CR",
            Self::Cw => "CW",
            Self::Pr => "PR",
            Self::Pw => "PW",
            Self::Ex => "EX",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_compatible_as_in_the_matrix() {
        for (row, one) in MATRIX.into_iter().zip(MODES) {
            let found: String = MODES
                .map(|other| if one.is_compatible(other) { '1' } else { '0' })
                .iter()
                .collect();
            assert_eq!(found, row, "{one}");
            assert_eq!(Mode::of_code(one as u8), Some(one));
        }
        assert_eq!(Mode::of_code(6), None);
    }

    #[test]
    fn a_weaker_mode_excludes_less() {
        for (one, other) in MODES
            .iter()
            .flat_map(|one| MODES.map(|other| (*one, other)))
        {
            let excludes = |mode: Mode| MODES.map(|third| !mode.is_compatible(third));
            let less = excludes(one)
                .iter()
                .zip(excludes(other))
                .all(|(a, b)| !a || b);
            assert_eq!(one.is_weaker_or_same(other), less, "{one} {other}");
        }
        assert!(!Mode::Cw.is_weaker_or_same(Mode::Pr) && !Mode::Pr.is_weaker_or_same(Mode::Cw));
    }
}
