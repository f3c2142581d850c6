//! Lists the ranking models: each file of `src/rank` but `mod.rs` is one, under the name of the file.

use std::{env, fs, path::Path};

fn main() {
    println!("cargo::rerun-if-changed=src/rank");
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo names it")).join("src/rank");
    let mut names: Vec<String> = fs::read_dir(&folder)
        .expect("src/rank can be read")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_suffix(".rs").map(str::to_owned))
        .filter(|name| name != "mod")
        .collect();
    names.sort();
    let mut out = String::new();
    for name in &names {
        let path = folder.join(format!("{name}.rs"));
        out += &format!("#[path = {path:?}]\npub mod {name};\n");
    }
    out += "/// Use the model of that name; `None` if there is none here.\n";
    out +=
        "pub fn with_model<U: Use>(name: &str, parameters: &[f64], user: U) -> Option<U::Output> {\n    match name {\n";
    for name in &names {
        out += &format!("        {name:?} => Some(user.with({name}::model(parameters))),\n");
    }
    out += "        _ => None,\n    }\n}\n\npub const MODELS: &[&str] = &[";
    out += &names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    out += "];\n";
    let to = Path::new(&env::var("OUT_DIR").expect("cargo names it")).join("models.rs");
    fs::write(to, out).expect("the list of models can be written");
}
