//! to come
#[derive(clap::Args)]
pub(crate) struct Arguments {}
pub(crate) fn run(_: &Arguments) -> anyhow::Result<std::process::ExitCode> { Ok(std::process::ExitCode::SUCCESS) }
