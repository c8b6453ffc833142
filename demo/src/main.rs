//! The program `powderkeg`. All its code is in the library; see [`powderkeg::cli`].

fn main() -> std::process::ExitCode {
    powderkeg::cli::main()
}
