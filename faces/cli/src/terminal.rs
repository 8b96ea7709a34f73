//! What people see on a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on standard error if that is a terminal and people look at it, otherwise nothing.
fn bar(total: Option<u64>, label: &str, template: &str, quiet: bool) -> ProgressBar {
    let target = match quiet {
        true => ProgressDrawTarget::hidden(),
        false => ProgressDrawTarget::stderr(),
    };
    let bar = ProgressBar::with_draw_target(total, target).with_message(label.to_owned());
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// A bar that counts bytes.
pub fn bytes_bar(total_bytes: Option<u64>, label: &str) -> ProgressBar {
    let template = match total_bytes {
        Some(_) => "{msg} {bar:30} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta}",
        None => "{msg} {spinner} {bytes} {binary_bytes_per_sec} {elapsed}",
    };
    let bar = bar(total_bytes, label, template, false);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// A bar that counts steps.
pub fn steps_bar(steps: u64, label: &str, quiet: bool) -> ProgressBar {
    bar(Some(steps), label, "{msg:32} {bar:30} {pos}/{len}", quiet)
}

/// What counts without an end in sight.
pub fn spinner(quiet: bool) -> ProgressBar {
    bar(Some(0), "", "{spinner} {pos} {msg} {elapsed}", quiet)
}

/// A table in the style of this program.
pub fn table(header: &[&str]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table
        .load_preset(comfy_table::presets::UTF8_HORIZONTAL_ONLY)
        .set_header(header.to_vec());
    table
}
