//! The command: preprocesses, translates, compiles and links as a C compiler does (Split-C 3).
//!
//! Its options are those of C compilers (`-Idir`, `-O2`, `-save-temps`), which libraries for
//! options cannot express; so it reads them itself. What it does not know it hands to the C
//! compiler if it begins with `-f`, `-m`, `-W` or `-g`, and refuses otherwise. Nothing is left
//! behind in the directory for temporary files.

use crate::{Settings, Translation, manual, translate};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// What an error of the driver says.
type Outcome<T> = Result<T, String>;

#[derive(Default)]
struct Options {
    inputs: Vec<Input>,
    output: Option<PathBuf>,
    stop: Stop,
    optimise: bool,
    split_phase: bool,
    warnings: bool,
    verbose: bool,
    save: bool,
    /// For the preprocessor and the compiler.
    preprocess: Vec<OsString>,
    compile: Vec<OsString>,
    /// For the linker, beside the files.
    link: Vec<OsString>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Stop {
    #[default]
    Never,
    Preprocessed,
    C,
    Assembler,
    Object,
}

enum Input {
    Source(PathBuf),
    /// An object, a library or `-lname`: in the order of the command line.
    Link(OsString),
}

/// Runs the command with these arguments.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    match run_command(arguments) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("splitcc: error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run_command(arguments: Vec<OsString>) -> Outcome<ExitCode> {
    if arguments.iter().any(|a| a == "--help" || a == "-help") {
        print!("{}", manual::help());
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.iter().any(|a| a == "--manual") {
        print!("{}", manual::page());
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.iter().any(|a| a == "--version") {
        println!("splitcc {}", env!("CARGO_PKG_VERSION"));
        return Ok(ExitCode::SUCCESS);
    }
    let options = parse(arguments)?;
    if options.inputs.is_empty() {
        return Err(
            "no input files; name at least one .sc, .c or .o file (--help shows the options)"
                .into(),
        );
    }
    let sources = options
        .inputs
        .iter()
        .filter(|input| matches!(input, Input::Source(_)))
        .count();
    if options.output.is_some() && options.stop != Stop::Never && sources > 1 {
        return Err(
            "-o with -c, -S or -E takes one source file; leave -o out, or run once for each file"
                .into(),
        );
    }
    let home = Home::find()?;
    let scratch = Scratch::new()?;
    let mut objects: Vec<OsString> = Vec::new();
    let mut failed = false;
    for (number, input) in options.inputs.iter().enumerate() {
        match input {
            Input::Link(file) => objects.push(file.clone()),
            Input::Source(source) => match compile(source, number, &options, &home, &scratch)? {
                Some(object) => objects.push(object.into_os_string()),
                None => failed = true,
            },
        }
    }
    if failed {
        return Ok(ExitCode::FAILURE);
    }
    if options.stop != Stop::Never {
        return Ok(ExitCode::SUCCESS);
    }
    link(&objects, &options, &home, &scratch)
}

fn parse(arguments: Vec<OsString>) -> Outcome<Options> {
    let mut options = Options {
        warnings: true,
        split_phase: true,
        ..Options::default()
    };
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy().into_owned();
        if !text.starts_with('-') || text == "-" {
            options.inputs.push(input(argument, &text)?);
            continue;
        }
        let mut value = |name: &str| {
            arguments
                .next()
                .ok_or_else(|| format!("'{name}' needs a value; write it behind the option"))
        };
        match &*text {
            "-c" => options.stop = Stop::Object,
            "-S" => options.stop = Stop::Assembler,
            "-E" => options.stop = Stop::Preprocessed,
            "-emit-c" => options.stop = Stop::C,
            "-o" => options.output = Some(value("-o")?.into()),
            "-w" => {
                options.warnings = false;
                options.compile.push(argument);
            }
            "-v" => options.verbose = true,
            "-save-temps" => options.save = true,
            "-fno-split-phase" => options.split_phase = false,
            "-fsplit-phase" => options.split_phase = true,
            "-I" | "-D" | "-U" | "-include" | "-isystem" | "-idirafter" | "-iquote" => {
                let value = value(&text)?;
                options.preprocess.extend([argument, value]);
            }
            "-L" | "-T" | "-u" | "-Xlinker" => {
                let value = value(&text)?;
                options.link.extend([argument, value]);
            }
            "-l" => {
                let mut library = OsString::from("-l");
                library.push(value("-l")?);
                options.inputs.push(Input::Link(library));
            }
            "-pthread" | "-pg" | "-pipe" => {
                options.compile.push(argument.clone());
                options.link.push(argument);
            }
            "-static" | "-pie" | "-shared" => {
                return Err(format!(
                    "'{text}' is not possible: a Split-C program is linked at a fixed address, with the runtime as a library"
                ));
            }
            "-s" | "-rdynamic" => options.link.push(argument),
            "-ansi" | "-traditional" | "-pedantic" => {}
            "-M" | "-MM" | "-MD" | "-MMD" | "-MP" => options.preprocess.push(argument),
            "-MF" | "-MT" | "-MQ" => {
                let value = value(&text)?;
                options.preprocess.extend([argument, value]);
            }
            _ if text.starts_with("-o") => options.output = Some(text[2..].into()),
            _ if text.starts_with("-O") => {
                options.optimise = text != "-O0";
                options.preprocess.push(argument.clone());
                options.compile.push(argument);
            }
            _ if text.starts_with("-I") || text.starts_with("-D") || text.starts_with("-U") => {
                options.preprocess.push(argument)
            }
            _ if text.starts_with("-L") || text.starts_with("-Wl,") => options.link.push(argument),
            _ if text.starts_with("-l") => options.inputs.push(Input::Link(argument)),
            // The dialect is GNU's; all that the standards before it have is in it.
            _ if text.starts_with("-std=") => {}
            _ if text.starts_with("-g")
                || text.starts_with("-f")
                || text.starts_with("-m")
                || text.starts_with("-W") =>
            {
                options.compile.push(argument.clone());
                if !text.starts_with("-W") {
                    options.preprocess.push(argument);
                }
            }
            _ => return Err(format!("unknown option '{text}'; --help shows the options")),
        }
    }
    Ok(options)
}

fn input(argument: OsString, text: &str) -> Outcome<Input> {
    let path = Path::new(&argument);
    match path.extension().and_then(OsStr::to_str) {
        Some("c" | "sc" | "i") => Ok(Input::Source(path.into())),
        Some("o" | "a" | "so" | "s" | "S") => Ok(Input::Link(argument)),
        _ if text.contains(".so.") => Ok(Input::Link(argument)),
        _ => Err(format!(
            "'{text}': unknown kind of file; sources end in .sc or .c, objects in .o, libraries in .a or .so"
        )),
    }
}

/// Where headers and library are.
struct Home {
    include: PathBuf,
    library: PathBuf,
}

impl Home {
    fn find() -> Outcome<Self> {
        if let Some(home) = std::env::var_os("SPLITC_HOME") {
            let home = PathBuf::from(home);
            let include = home.join("include");
            if !include.join("splitc_abi.h").is_file() {
                return Err(format!(
                    "SPLITC_HOME is '{}', but there is no include/splitc_abi.h in it",
                    home.display()
                ));
            }
            return Ok(Self {
                include,
                library: home.join("lib"),
            });
        }
        let program = std::env::current_exe()
            .map_err(|error| format!("cannot find the program itself: {error}"))?;
        let program = program.canonicalize().unwrap_or(program);
        let directory = program.parent().unwrap_or(Path::new("/"));
        for ancestor in directory.ancestors() {
            // In the repository: the library lies beside the program, in the target directory.
            let include = ancestor.join("faces/splitc/include");
            if include.join("splitc_abi.h").is_file() {
                return Ok(Self {
                    include,
                    library: Self::newest_library(directory),
                });
            }
        }
        // Installed: prefix/bin, prefix/include, prefix/lib.
        if let Some(prefix) = directory.parent() {
            let include = prefix.join("include");
            if include.join("splitc_abi.h").is_file() {
                return Ok(Self {
                    include,
                    library: prefix.join("lib"),
                });
            }
        }
        Err("cannot find the headers of Split-C; set SPLITC_HOME to the directory that holds include/ and lib/".into())
    }
}

impl Home {
    /// Cargo puts a library beside the program, or into `deps` if it was built for another package:
    /// the newer counts.
    fn newest_library(directory: &Path) -> PathBuf {
        let built = |directory: &Path| {
            let file = std::fs::metadata(directory.join("libsplitc.so")).ok()?;
            file.modified().ok()
        };
        let deps = directory.join("deps");
        if built(&deps) > built(directory) {
            deps
        } else {
            directory.into()
        }
    }
}

/// A directory for temporary files that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Outcome<Self> {
        use std::os::unix::fs::DirBuilderExt;
        let base = std::env::temp_dir();
        for attempt in 0..1000u32 {
            let path = base.join(format!("splitcc-{}-{attempt}", std::process::id()));
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(format!(
                        "cannot make the directory '{}': {error}",
                        path.display()
                    ));
                }
            }
        }
        Err(format!(
            "'{}' is full of directories named splitcc-...; remove them",
            base.display()
        ))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Best effort: the system clears the directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The C compiler, as a command. `CC` may hold arguments.
fn c_compiler() -> Command {
    let cc = std::env::var("CC").unwrap_or_default();
    let mut words = cc.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("cc"));
    command.args(words);
    command
}

fn show(command: &Command, options: &Options) {
    if options.verbose {
        let mut line = command.get_program().to_string_lossy().into_owned();
        for argument in command.get_args() {
            line.push(' ');
            line.push_str(&argument.to_string_lossy());
        }
        eprintln!(" {line}");
    }
}

fn cannot_start(command: &Command, error: &std::io::Error) -> String {
    let program = command.get_program().to_string_lossy().into_owned();
    format!("cannot run the C compiler '{program}': {error}; install one, or name it in CC")
}

/// The dialect: GNU's C17, with `inline` as it was when programs were written.
const DIALECT: [&str; 2] = ["-std=gnu17", "-fgnu89-inline"];

/// What makes old C pass: common variables in headers, types that pun, warnings where newer
/// compilers have errors.
const OLD_C: [&str; 9] = [
    "-fcommon",
    "-fno-strict-aliasing",
    "-fno-pie",
    "-Wno-implicit-int",
    "-Wno-error=implicit-function-declaration",
    "-Wno-error=int-conversion",
    "-Wno-error=incompatible-pointer-types",
    "-Wno-builtin-declaration-mismatch",
    "-Wno-attribute-alias",
];

/// The command that preprocesses a source.
fn preprocessor(source: &Path, options: &Options, home: &Home) -> Command {
    let mut command = c_compiler();
    command
        .args(DIALECT)
        .args(["-E", "-D__SPLITC__=1"])
        .arg("-isystem")
        .arg(home.include.join("split-c/old"))
        .arg("-isystem")
        .arg(&home.include);
    command
        .args(&options.preprocess)
        .args(["-include", "split-c/compiler.h", "-x", "c"])
        .arg(source);
    command
}

/// What came of reading a source.
struct Attempt {
    /// What the preprocessor and the front end said.
    messages: String,
    /// The preprocessed text, if there is one.
    text: Option<String>,
    translation: Option<Translation>,
}

impl Attempt {
    fn is_good(&self) -> bool {
        self.translation
            .as_ref()
            .is_some_and(|translation| translation.c_text.is_some())
    }
}

/// Preprocesses and translates.
fn read(mut command: Command, options: &Options) -> Outcome<Attempt> {
    show(&command, options);
    let output = command
        .output()
        .map_err(|error| cannot_start(&command, &error))?;
    let mut messages = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        return Ok(Attempt {
            messages,
            text: None,
            translation: None,
        });
    }
    let text = decode(output.stdout);
    let settings = Settings {
        split_phase: options.optimise && options.split_phase,
        warnings: options.warnings,
    };
    let translation = translate(&text, settings);
    messages.push_str(&translation.messages);
    Ok(Attempt {
        messages,
        text: Some(text),
        translation: Some(translation),
    })
}

/// Compiles one source. `None`: there were errors, which have been shown.
fn compile(
    source: &Path,
    number: usize,
    options: &Options,
    home: &Home,
    scratch: &Scratch,
) -> Outcome<Option<PathBuf>> {
    if !source.is_file() {
        return Err(format!("{}: no such file", source.display()));
    }
    let stem = source
        .file_stem()
        .unwrap_or(OsStr::new("program"))
        .to_owned();
    if options.stop == Stop::Preprocessed {
        let mut command = preprocessor(source, options, home);
        if let Some(output) = &options.output {
            command.arg("-o").arg(output);
        }
        show(&command, options);
        let status = command
            .status()
            .map_err(|error| cannot_start(&command, &error))?;
        return Ok(status.success().then(PathBuf::new));
    }
    let mut attempt = read(preprocessor(source, options, home), options)?;
    if attempt.messages.contains("missing terminating") && !attempt.is_good() {
        // A literal over several lines, as compilers of the 1990s took it?
        let original = std::fs::read(source).unwrap_or_default();
        if let Some(continued) = crate::old_strings::continued(&decode(original)) {
            let copy = scratch.0.join(format!("{number}.c"));
            let text = format!("# 1 \"{}\"\n{continued}", source.display());
            std::fs::write(&copy, text)
                .map_err(|error| format!("cannot write '{}': {error}", copy.display()))?;
            let mut command = preprocessor(&copy, options, home);
            command
                .arg("-iquote")
                .arg(source.parent().unwrap_or(Path::new("")).join("."));
            let second = read(command, options)?;
            if second.is_good() {
                attempt = second;
            }
        }
    }
    eprint!("{}", attempt.messages);
    let (Some(text), Some(translation)) = (attempt.text, attempt.translation) else {
        return Ok(None);
    };
    let Some(c_text) = translation.c_text else {
        return Ok(None);
    };
    let with_extension = |extension: &str| {
        let mut name = stem.clone();
        name.push(extension);
        PathBuf::from(name)
    };
    let write = |path: &Path, text: &str| {
        std::fs::write(path, text)
            .map_err(|error| format!("cannot write '{}': {error}", path.display()))
    };
    if options.stop == Stop::C {
        match &options.output {
            Some(path) => write(path, &c_text)?,
            None => print!("{c_text}"),
        }
        return Ok(Some(PathBuf::new()));
    }
    if options.save {
        write(&with_extension(".i"), &text)?;
        write(&with_extension(".splitc.i"), &c_text)?;
    }
    let c_file = scratch.0.join(format!("{number}.i"));
    // By its first line a C compiler knows the name of the source, which it writes into the table
    // of lines.
    write(
        &c_file,
        &format!("# 1 {:?}\n{c_text}", source.display().to_string()),
    )?;
    let (flag, extension) = if options.stop == Stop::Assembler {
        ("-S", ".s")
    } else {
        ("-c", ".o")
    };
    let object = match (&options.output, options.stop) {
        (Some(output), Stop::Object | Stop::Assembler) => output.clone(),
        (None, Stop::Object | Stop::Assembler) => with_extension(extension),
        _ => scratch.0.join(format!("{number}.o")),
    };
    let mut command = c_compiler();
    // With a table of lines, the linker says where a name is used that nobody defines.
    command.args(DIALECT).args(OLD_C).arg("-g1");
    command.args(&options.compile);
    command
        .args([flag, "-x", "cpp-output"])
        .arg(&c_file)
        .arg("-o")
        .arg(&object);
    show(&command, options);
    let status = command
        .status()
        .map_err(|error| cannot_start(&command, &error))?;
    Ok(status.success().then_some(object))
}

/// A source that is no UTF-8 is read byte by byte; comments in other alphabets are the usual case.
fn decode(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| latin_1(error.as_bytes()))
}

fn latin_1(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|&byte| if byte < 0x80 { byte as char } else { '?' })
        .collect()
}

/// The main function of every program.
const START: &str = r#"
extern char __data_start, _end;
extern int splitc_start(int, char **, int (*)(int, char **), void *, void *);
extern int splitc_program(int, char **);
int main(int argc, char **argv) { return splitc_start(argc, argv, splitc_program, &__data_start, &_end); }
"#;

fn link(
    objects: &[OsString],
    options: &Options,
    home: &Home,
    scratch: &Scratch,
) -> Outcome<ExitCode> {
    let library = home.library.join("libsplitc.so");
    if !library.is_file() {
        return Err(format!(
            "the runtime '{}' is not there; build it (cargo build -p hamlyn-splitc-c), or set SPLITC_HOME",
            library.display()
        ));
    }
    let start = scratch.0.join("start.c");
    std::fs::write(&start, START)
        .map_err(|error| format!("cannot write '{}': {error}", start.display()))?;
    let output = options.output.clone().unwrap_or_else(|| "a.out".into());
    let mut command = c_compiler();
    command
        .args(["-fno-pie", "-no-pie", "-w"])
        .arg(&start)
        .args(objects)
        .args(&options.link);
    command
        .arg("-L")
        .arg(&home.library)
        .arg("-lsplitc")
        .arg("-lm");
    let mut path = OsString::from("-Wl,-rpath,");
    path.push(&home.library);
    command
        .arg(path)
        .arg("-o")
        .arg(&output)
        .stderr(Stdio::piped());
    show(&command, options);
    let result = command
        .output()
        .map_err(|error| cannot_start(&command, &error))?;
    let messages = String::from_utf8_lossy(&result.stderr);
    eprint!("{messages}");
    if result.status.success() {
        return Ok(ExitCode::SUCCESS);
    }
    if messages.contains("splitc_program") {
        eprintln!("splitcc: error: no file defines splitc_main; a Split-C program begins there");
    }
    Ok(ExitCode::FAILURE)
}
