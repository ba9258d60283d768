# Paths come from the servers, and what is behind -- is a command line of its own.
_lockkeeper_or_servers() {
    local at whole found path words=()
    for ((at = 1; at < COMP_CWORD; at++)); do
        if [[ ${COMP_WORDS[at]} == -- ]]; then
            _lockkeeper_program $((at + 1))
            return
        fi
    done
    # As it was typed: COMP_WORDS is cut at colons, too. A backslash quotes.
    whole=${COMP_LINE:0:COMP_POINT}
    # shellcheck disable=SC2162
    read -a words <<<"$whole"
    [[ $whole == *[[:space:]] ]] && words+=("")
    if found=$(command lockkeeper __paths "${words[@]}" 2>/dev/null); then
        local begun=${words[${#words[@]} - 1]}
        # What is before the last of these, which cut words, stays on the line. A word begins with its @.
        local breaks=${COMP_WORDBREAKS//[!:=@]/} kept=
        [[ -n $breaks ]] && kept=${begun%"${begun##*[$breaks]}"}
        kept=${kept%@}
        COMPREPLY=()
        while IFS= read -r path; do
            [[ -n $path ]] || continue
            printf -v path %q "${path#"$kept"}"
            COMPREPLY+=("$path")
        done <<<"$found"
        # A file of this machine is no node.
        compopt +o default +o bashdefault 2>/dev/null
        return 0
    fi
    _lockkeeper "$@"
}

# The number of the program's word.
_lockkeeper_program() {
    if declare -F _comp_command_offset >/dev/null; then
        _comp_command_offset "$1"
    elif declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    elif ((COMP_CWORD == $1)); then
        # shellcheck disable=SC2207
        COMPREPLY=($(compgen -c -- "${COMP_WORDS[COMP_CWORD]}"))
    elif [[ $(complete -p "${COMP_WORDS[$1]}" 2>/dev/null) =~ \ -F\ ([^ ]+)\  ]]; then
        local function=${BASH_REMATCH[1]} line=${COMP_LINE#* -- }
        local COMP_POINT=$((COMP_POINT - ${#COMP_LINE} + ${#line})) COMP_LINE=$line
        local COMP_CWORD=$((COMP_CWORD - $1)) COMP_WORDS=("${COMP_WORDS[@]:$1}")
        "$function" "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    fi
}

if [[ ${BASH_VERSINFO[0]} -eq 4 && ${BASH_VERSINFO[1]} -ge 4 || ${BASH_VERSINFO[0]} -gt 4 ]]; then
    complete -F _lockkeeper_or_servers -o nosort -o bashdefault -o default lockkeeper
else
    complete -F _lockkeeper_or_servers -o bashdefault -o default lockkeeper
fi
