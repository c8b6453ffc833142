//! The program `powderkeg`. All of it is in the library; see [`powderkeg::cli`].

fn main() -> std::process::ExitCode {
    powderkeg::cli::main()
}
