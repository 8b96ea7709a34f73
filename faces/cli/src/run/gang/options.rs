//! The option `--gang`.

use std::time::Duration;

/// The shortest quantum: a launcher that is woken some tenths of a millisecond late still keeps
/// turns apart.
const QUANTUM_MIN: Duration = Duration::from_millis(1);
/// The longest: half of the time that a handshake may take, since a stopped process answers none.
const QUANTUM_MAX: Duration = Duration::from_millis(500);
/// With more, processes would hardly run at the same time, and could not connect.
const SKEW_MAX: f64 = 0.9;
const SEED_DEFAULT: u64 = 1;

/// The schedule that is asked for.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct GangOptions {
    /// Time that a job has the processors before the other one has them.
    pub(crate) quantum: Duration,
    /// The part of it by which the process that is most out of step comes later than the first.
    pub(crate) skew: f64,
    /// Decides which processes come how late.
    pub(crate) seed: u64,
    /// True if the other job computes; otherwise it is nothing.
    pub(crate) has_null: bool,
}

impl GangOptions {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split(',');
        let mut options = Self {
            quantum: quantum(words.next().unwrap_or_default())?,
            skew: 0.0,
            seed: SEED_DEFAULT,
            has_null: false,
        };
        for word in words {
            match word.split_once('=') {
                Some(("skew", part)) => options.skew = skew(part)?,
                Some(("seed", number)) => options.seed = seed(number)?,
                None if word == "null" => options.has_null = true,
                _ => {
                    return Err(format!(
                        "{word:?} is unknown: skew=P, seed=N or null follow the quantum"
                    ));
                }
            }
        }
        Ok(options)
    }
}

fn quantum(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: f64 = digits.parse().map_err(|_| {
        format!("{text:?} is no time: a quantum is a number with a unit, such as 10ms")
    })?;
    let seconds = match &text[digits.len()..] {
        "us" => number * 1e-6,
        "ms" => number * 1e-3,
        "s" => number,
        "" => return Err(format!("{text:?} has no unit: say {text}ms")),
        unit => return Err(format!("{unit:?} is no unit of a quantum: say us, ms or s")),
    };
    let quantum = Duration::try_from_secs_f64(seconds).ok();
    quantum
        .filter(|quantum| (QUANTUM_MIN..=QUANTUM_MAX).contains(quantum))
        .ok_or_else(|| format!("{text:?} is out of bounds: a quantum is 1ms to 500ms"))
}

fn skew(text: &str) -> Result<f64, String> {
    let skew = text.parse().ok();
    skew.filter(|skew| (0.0..=SKEW_MAX).contains(skew))
        .ok_or_else(|| {
            format!("skew={text} is no part of a quantum: it is 0 to {SKEW_MAX}, such as skew=0.1")
        })
}

fn seed(text: &str) -> Result<u64, String> {
    let seed = text.parse();
    seed.map_err(|_| format!("seed={text}: it is a whole number, such as seed={SEED_DEFAULT}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_read() {
        let all = GangOptions::parse("2.5ms,skew=0.25,null,seed=7").unwrap();
        let expected = GangOptions {
            quantum: Duration::from_micros(2_500),
            skew: 0.25,
            seed: 7,
            has_null: true,
        };
        assert_eq!(all, expected);
        let least = GangOptions::parse("1000us").unwrap();
        assert_eq!(least.quantum, Duration::from_millis(1));
        assert_eq!((least.skew, least.has_null), (0.0, false));
        assert!(GangOptions::parse("0.5s,skew=0.9").is_ok());
    }

    #[test]
    fn the_remedy_is_named() {
        for (bad, remedy) in [
            ("", "10ms"),
            ("10", "10ms"),
            ("ms", "10ms"),
            ("-10ms", "1ms to 500ms"),
            ("10min", "us, ms or s"),
            ("999us", "1ms to 500ms"),
            ("501ms", "1ms to 500ms"),
            ("nanms", "10ms"),
            ("1e400s", "1ms to 500ms"),
            ("10ms,skew=1", "0 to 0.9"),
            ("10ms,skew=-0.1", "0 to 0.9"),
            ("10ms,skew=nan", "0 to 0.9"),
            ("10ms,skew", "skew=P"),
            ("10ms,seed=x", "seed=1"),
            ("10ms,nul", "null"),
            ("10ms,", "null"),
        ] {
            let error = GangOptions::parse(bad).unwrap_err();
            assert!(error.contains(remedy), "{bad:?}: {error}");
        }
    }
}
