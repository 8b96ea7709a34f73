//! Deliberate bugs are for the simulator's tests alone: no other manifest names the feature that switches them on, and it
//! is nobody's default.

/// Who may name the feature: who has it, and who tests with it.
const MAY: [&str; 2] = ["crates/engine/Cargo.toml", "crates/sim/Cargo.toml"];
const FEATURE: &str = "mutations";

/// What is wrong with the manifests, each with its name.
pub(crate) fn check(manifests: &[(String, String)]) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, text) in manifests {
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            if !line.contains(FEATURE) {
                continue;
            }
            let is_default = line.trim_start().starts_with("default");
            let depends = line.contains("features = [");
            if !MAY.contains(&name.as_str()) || is_default || (depends && !is_ours(line)) {
                problems.push(format!(
                    "{name}:{}: the feature `{FEATURE}` is for the simulator's tests alone",
                    number + 1
                ));
            }
        }
    }
    problems
}

/// Whether the line only says which test needs the feature.
fn is_ours(line: &str) -> bool {
    line.trim_start().starts_with("required-features")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(name: &str, text: &str) -> usize {
        check(&[(name.to_owned(), text.to_owned())]).len()
    }

    #[test]
    fn only_the_simulator_switches_bugs_on_and_never_by_default() {
        let ours = "[features]\nmutations = [\"hamlyn-engine/mutations\"]\n\
                    [[test]]\nname = \"mutations\"\nrequired-features = [\"mutations\"]\n";
        for name in MAY {
            assert_eq!(problems(name, ours), 0);
            assert_eq!(problems(name, "default = [\"mutations\"]"), 1);
            let always = "hamlyn-engine = { workspace = true, features = [\"mutations\"] }";
            assert_eq!(problems(name, always), 1);
        }
        for name in [
            "faces/cli/Cargo.toml",
            "crates/hamlyn/Cargo.toml",
            "Cargo.toml",
        ] {
            assert_eq!(problems(name, ours), 3);
            assert_eq!(problems(name, "# no mutations here"), 0);
        }
    }
}
