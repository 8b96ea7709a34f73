//! What people see on a terminal.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on standard error if that is a terminal, otherwise nothing.
pub(crate) fn bytes_bar(total_bytes: Option<u64>, label: &str) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(total_bytes, target).with_message(label.to_owned());
    let template = match total_bytes {
        Some(_) => "{msg} {bar:30} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta}",
        None => "{msg} {spinner} {bytes} {binary_bytes_per_sec} {elapsed}",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// A bar that counts steps.
pub(crate) fn steps_bar(steps: u64, label: &str, quiet: bool) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() && !quiet {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(steps), target).with_message(label.to_owned());
    if let Ok(style) = ProgressStyle::with_template("{msg:32} {bar:30} {pos}/{len}") {
        bar.set_style(style);
    }
    bar
}

/// What counts without an end in sight.
pub(crate) fn spinner(quiet: bool) -> ProgressBar {
    let bar = steps_bar(0, "", quiet);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {pos} {msg} {elapsed}") {
        bar.set_style(style);
    }
    bar
}

/// A table in the style of this program.
pub(crate) fn table(header: &[&str]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table
        .load_preset(comfy_table::presets::UTF8_HORIZONTAL_ONLY)
        .set_header(header.to_vec());
    table
}
