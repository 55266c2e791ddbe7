//! Adds the names of bundled models and cabinets to completion scripts, which know files only.

use clap::Command;
use clap_complete::Shell;

use crate::help;

/// Ids of the arguments that take a model.
const MODEL: [&str; 2] = ["model", "file"];

/// Adds the names to the script of a shell; scripts of shells other than bash, zsh and fish stay as
/// they are.
pub fn add(script: &str, shell: Shell, program: &Command) -> String {
    let takes_model = |command: &&Command| {
        command
            .get_positionals()
            .any(|one| MODEL.contains(&one.get_id().as_str()))
    };
    let commands: Vec<&str> = program
        .get_subcommands()
        .filter(takes_model)
        .map(Command::get_name)
        .collect();
    let (models, cabinets) = (
        help::model_names().join(" "),
        help::cabinet_names().join(" "),
    );
    let name = program.get_name();
    match shell {
        Shell::Bash => format!(
            "{script}\n{}",
            bash(name, &commands.join("|"), &models, &cabinets)
        ),
        Shell::Zsh => zsh(script, &models, &cabinets),
        Shell::Fish => format!(
            "{script}\n{}",
            fish(name, &commands.join(" "), &models, &cabinets)
        ),
        _ => script.to_owned(),
    }
}

/// Returns a function around that of the script, which adds the names where a model or a cabinet
/// may stand.
fn bash(name: &str, commands: &str, models: &str, cabinets: &str) -> String {
    format!(
        r#"_{name}_bundled() {{
    _{name} "$@"
    local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}" names=""
    case "$cur:${{COMP_WORDS[1]}}" in
        -*) return 0 ;;
        *:{commands_in_case}) ;;
        *) return 0 ;;
    esac
    case "$prev" in
        --cabinet) names="{cabinets}" ;;
        -*) return 0 ;;
        *) [[ $COMP_CWORD -gt 1 ]] && names="{models}" ;;
    esac
    [[ -n $names ]] || return 0
    COMPREPLY=()
    local word
    while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W "$names" -- "$cur"; compgen -f -- "$cur")
    compopt -o filenames 2>/dev/null
    return 0
}}
complete -F _{name}_bundled -o bashdefault -o default {name}"#,
        commands_in_case = commands.replace('|', "|*:"),
    )
}

/// Replaces the files of the arguments that take a model or a cabinet.
fn zsh(script: &str, models: &str, cabinets: &str) -> String {
    let functions = format!(
        "(( $+functions[_ondes_models] )) ||\n_ondes_models() {{\n    \
         _alternative 'models:bundled model:({models})' 'files:file:_files'\n}}\n\
         (( $+functions[_ondes_cabinets] )) ||\n_ondes_cabinets() {{\n    \
         _alternative 'cabinets:bundled cabinet:({cabinets})' 'files:file:_files'\n}}\n"
    );
    let is_model = |line: &str| {
        MODEL
            .iter()
            .any(|id| line.trim_start().starts_with(&format!("':{id} -- ")))
    };
    let replaced = |line: &str| {
        let names = match line {
            model if is_model(model) => "_ondes_models",
            cabinet if cabinet.trim_start().starts_with("'--cabinet=") => "_ondes_cabinets",
            other => return other.to_owned(),
        };
        line.replace(":_files'", &format!(":{names}'"))
    };
    let lines: Vec<String> = script.lines().map(replaced).collect();
    // The first line tells zsh what the script completes.
    let (first, rest) = lines
        .split_first()
        .map_or((String::new(), &[][..]), |(first, rest)| {
            (first.clone(), rest)
        });
    format!("{first}\n\n{functions}{}\n", rest.join("\n"))
}

fn fish(name: &str, commands: &str, models: &str, cabinets: &str) -> String {
    let condition = format!("-n \"__fish_seen_subcommand_from {commands}\"");
    format!(
        "complete -c {name} {condition} -a \"{models}\" -d 'Bundled model'\n\
         complete -c {name} {condition} -l cabinet -r -a \"{cabinets}\" -d 'Bundled cabinet'"
    )
}
