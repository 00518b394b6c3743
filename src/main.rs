//! The `evals` program: hands its arguments to the library and its answer to the shell.

fn main() -> std::process::ExitCode {
    evals::cli::main()
}
