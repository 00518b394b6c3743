//! The `evals` program: calls the library and returns its exit code.

fn main() -> std::process::ExitCode {
    evals::internal::main()
}
