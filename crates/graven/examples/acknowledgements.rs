//! Prints the table of `docs/explanation/acknowledgements.md`: what one transaction does under each design.

fn main() {
    match graven::acknowledgement::table(&graven::standard()) {
        Ok(table) => print!("{table}"),
        Err(why) => {
            eprintln!("{why}");
            std::process::exit(1);
        }
    }
}
