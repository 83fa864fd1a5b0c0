package main

// completionScripts ask the program itself, by the name that the person
// typed, so that a script never speaks of another version's flags. Words are
// passed on as they are; nothing is evaluated.
var completionScripts = map[string]string{
	"bash": `# bash completion of wirewait: source <(wirewait completion bash)
_wirewait() {
	local IFS=$'\n'
	COMPREPLY=($("$1" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _wirewait wirewait
`,
	// As a file named _wirewait in $fpath the first line registers it and the
	// first use runs the whole file; sourced, compdef registers it.
	"zsh": `#compdef wirewait
# zsh completion of wirewait: source <(wirewait completion zsh), after compinit
_wirewait() {
	local -a found
	found=("${(@f)$("$words[1]" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ -n "$found[1]" ]]; then
		compadd -- "$found[@]"
	else
		_files
	fi
}
if [[ "$funcstack[1]" = _wirewait ]]; then
	_wirewait "$@"
else
	compdef _wirewait wirewait
fi
`,
}
